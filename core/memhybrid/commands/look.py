"""`memhybrid search`, `export` and `import`: a store's memories at the terminal and in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memhybrid.commands._options import ProfileOption, check_writable, console, progress
from memhybrid.commands._stores import (
    Collection,
    Embedder,
    Folder,
    ScopeKey,
    Where,
    collections,
    open_stores,
    pairs,
    require_embedder,
)
from memhybrid.errors import InputError

File = Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines with texts, metadata, vectors and usage.")]


def search(
    path: Folder,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    collection: Collection = None,
    where: Where = None,
    profile: ProfileOption = "balanced",
    k: Annotated[int, typer.Option("-k", min=1, help="Results at most.")] = 5,
    scope_key: ScopeKey = None,
    embedder: Embedder = None,
) -> None:
    """Search a store and show every hit with its signals. Nothing is changed, and it may be open elsewhere."""
    for name, memory in open_stores(path, collection, scope_key, embedder, read_only=True):
        require_embedder(name, memory)
        console().print(f"{name}\n{memory.search(query, k, where=pairs(where), profile=profile)}", markup=False)


def export(
    path: Folder, file: File, collection: Collection = None, scope_key: ScopeKey = None, embedder: Embedder = None
) -> None:
    """Write one collection with vectors and usage to a file."""
    check_writable(file, "FILE")
    for name, memory in open_stores(path, _one(path, collection), scope_key, embedder, read_only=True):
        with progress(f"Exporting {name}"):
            written = memory.export(file)
        console().print(f"{name}: {written} memories written to {file}", markup=False)


def import_(
    path: Folder,
    file: File,
    collection: Collection = None,
    scope_key: ScopeKey = None,
    embedder: Embedder = None,
    reembed: Annotated[bool, typer.Option("--reembed", help="Make the vectors anew, by the store's embedder.")] = False,
) -> None:
    """Add everything from an exported file to a store that exists; ids that it has already are replaced."""
    for name, memory in open_stores(path, _one(path, collection), scope_key, embedder, read_only=False):
        if reembed:
            require_embedder(name, memory)
        with progress(f"Importing {name}") as moved:
            read = memory.import_(file, reembed=reembed, progress=moved)
        console().print(f"{name}: {read} memories read from {file}", markup=False)


def _one(path: Path, collection: str | None) -> str:
    """The collection meant: one, since a file holds one."""
    found = [name for name, state in sorted(collections(path).items()) if state.exists()]
    if collection is None and len(found) > 1:
        raise InputError(f"{path} has the collections {found}; name one with --collection")
    return collection or (found[0] if found else "memories")


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(search)
    app.command()(export)
    app.command("import")(import_)
