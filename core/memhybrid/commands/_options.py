"""Options that several commands share, and what they mean."""

from __future__ import annotations

import importlib
import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from memhybrid.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

WIDTH = 100
"""Columns where the output is no terminal and COLUMNS does not say."""

DatasetDir = Annotated[
    Path,
    typer.Argument(metavar="DATASET_DIR", help="A folder in BEIR layout: corpus.jsonl, queries.jsonl, qrels/test.tsv."),
]
ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile", metavar="P", help="semantic, bm25, mem0, tipsy, balanced, best, or a profile's .json file."
    ),
]
EmbedderOption = Annotated[
    str,
    typer.Option("--embedder", metavar="E", help="local (English), local-multilingual, hash, or package.module:name."),
]
AnalyzerOption = Annotated[
    str, typer.Option("--analyzer", metavar="A", help="auto, spacy, fast, or the name of a spaCy pipeline.")
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Ask only N of the queries.")]


def make_embedder(text: str) -> Any:
    """What `HybridMemory.open` takes as embedder, for a name on the command line."""
    if text == "hash":
        from memhybrid.embedders import HashEmbedder

        return HashEmbedder()
    module, colon, name = text.partition(":")
    if not colon:
        return text
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"--embedder {text}: {error}") from error
    return found() if isinstance(found, type) else found


def console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal, or WIDTH columns where there is none."""
    made = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if not made.is_terminal and not os.environ.get("COLUMNS"):
        made.width = WIDTH
    return made


@contextmanager
def progress(label: str) -> Generator[Callable[[int, int], None], None, None]:
    """A bar on stderr that goes away when the work is done; a function (done, total) moves it, total 0 where nobody knows."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    err = console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=None)

        def moved(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        yield moved


def check_writable(path: Path, option: str) -> None:
    """Before long work: InputError where there is no folder for the file."""
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise InputError(f"{option} {path}: {'is a folder' if path.is_dir() else f'there is no folder {path.parent}'}")


def write_json(path: Path, value: Any) -> None:
    """The value as JSON in a file; InputError where it cannot be written."""
    try:
        path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
