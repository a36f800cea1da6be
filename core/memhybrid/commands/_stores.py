"""The stores of a folder, opened as they were last opened."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memhybrid.commands._options import make_embedder
from memhybrid.errors import EmbedderError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memhybrid.memory import HybridMemory
    from memhybrid.protocols import Fingerprint, Float32

Folder = Annotated[Path, typer.Argument(metavar="PATH", help="The store's folder.")]
Collection = Annotated[
    str | None,
    typer.Option("--collection", metavar="NAME", help="Only this collection; else every one that has state here."),
]
ScopeKey = Annotated[
    list[str] | None,
    typer.Option("--scope-key", metavar="KEY", help="Repeat it for several. Not given: as the store was last opened."),
]
Embedder = Annotated[
    str | None,
    typer.Option("--embedder", metavar="E", help="Not given: the one that the store was last opened with."),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="KEY=VALUE", help="The tenant or session to look at; repeat it for several keys."),
]


def pairs(given: list[str] | None) -> dict[str, str | int | float | bool] | None:
    """KEY=VALUE as a filter; a number, true, false or "text in quotes" is read as JSON, all else as text."""
    if not given:
        return None
    out: dict[str, str | int | float | bool] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise InputError(f"--where {text}: expected KEY=VALUE")
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        out[key] = read if isinstance(read, str | int | float) else value
    return out


def require_embedder(name: str, memory: HybridMemory) -> None:
    """EmbedderError where the store was last opened with one that the command line cannot make."""
    if isinstance(memory.embedder, AsStored):
        raise EmbedderError(f"{name}: asking needs {memory.embedder.fingerprint}; give it with --embedder")


def open_stores(
    path: Path, collection: str | None, scope_key: list[str] | None, embedder: str | None, *, read_only: bool
) -> Iterator[tuple[str, HybridMemory]]:
    """The folder's stores, one after the other, as they were last opened."""
    from memhybrid.memory import HybridMemory

    found = collections(path)
    if collection is not None:
        if collection not in found:
            raise InputError(f"{path} has no collection {collection!r}; it has {sorted(found) or 'none'}")
        chosen = [collection]
    else:
        chosen = [name for name, state in sorted(found.items()) if state.exists()]
        if not chosen:
            raise InputError(f"no collection in {path} has been opened by memhybrid; name one with --collection")
    for name in chosen:
        options = opened_with(found[name])
        if scope_key:
            options["scope_key"] = scope_key
        if embedder is not None:
            options["embedder"] = make_embedder(embedder)
        with HybridMemory.open(path, name, read_only=read_only, **options) as memory:
            yield name, memory


def collections(path: Path) -> dict[str, Path]:
    """The collections of a Chroma folder and where their state is, or would be. InputError where there is no store."""
    if not (path / "chroma.sqlite3").is_file():
        raise InputError(f"there is no store in {path}: it holds no chroma.sqlite3")
    try:
        with closing(sqlite3.connect(f"{(path / 'chroma.sqlite3').resolve().as_uri()}?mode=ro", uri=True)) as db:
            rows: list[tuple[Any, Any]] = db.execute("SELECT name, id FROM collections").fetchall()
    except sqlite3.Error as error:
        raise InputError(f"cannot read {path / 'chroma.sqlite3'}: {error}") from error
    return {str(name): path / "memhybrid" / str(identity) / "cache.sqlite3" for name, identity in rows}


class AsStored:
    """Stands in for an embedder that only its owner can make: it has the fingerprint, and nothing here embeds a text."""

    def __init__(self, fingerprint: Fingerprint) -> None:
        self.fingerprint = fingerprint

    def covers(self, text: str) -> bool:
        """As embedders of other libraries say."""
        del text
        return True

    def embed_documents(self, texts: Sequence[str]) -> Float32:
        """Raises EmbedderError."""
        raise EmbedderError(f"{self.fingerprint} is needed to embed {len(texts)} texts; give it with --embedder")

    embed_query = embed_documents


def opened_with(cache: Path) -> dict[str, Any]:
    """Options of `HybridMemory.open` by which a store was last opened, as far as its state tells."""
    from memhybrid.embedders import HashEmbedder, LocalEmbedder, MultilingualEmbedder
    from memhybrid.protocols import Fingerprint
    from memhybrid.text import FastAnalyzer

    try:
        with closing(sqlite3.connect(f"{cache.resolve().as_uri()}?mode=ro", uri=True)) as db:
            meta: dict[str, str] = dict(db.execute("SELECT key, value FROM meta"))
        scope: list[str] = json.loads(meta.get("scope", "[]"))
        fingerprint = Fingerprint(*json.loads(meta["embedder"])) if "embedder" in meta else None
    except (sqlite3.Error, ValueError, TypeError):
        return {}
    options: dict[str, Any] = {"scope_key": scope or None, "late_interaction": meta.get("late") != "False"}
    if meta.get("analyzer") == FastAnalyzer().fingerprint:
        options["analyzer"] = "fast"
    if fingerprint is not None:
        packaged: list[Any] = [LocalEmbedder, MultilingualEmbedder, lambda: HashEmbedder(fingerprint.dimension)]
        fitting = (made for make in packaged if (made := make()).fingerprint == fingerprint)
        options["embedder"] = next(fitting, AsStored(fingerprint))
    return options
