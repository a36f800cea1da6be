"""`memhybrid diagnose`: does retrieval still follow the query?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memhybrid.commands._options import ProfileOption, check_writable, console, progress, write_json
from memhybrid.commands._stores import (
    Collection,
    Embedder,
    Folder,
    ScopeKey,
    Where,
    open_stores,
    pairs,
    require_embedder,
)
from memhybrid.errors import InputError


def diagnose(
    path: Folder,
    collection: Collection = None,
    where: Where = None,
    profile: ProfileOption = "balanced",
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="One query a line; else drawn from the store.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=0, help="Rounds of use that are simulated.")] = 10,
    k: Annotated[int, typer.Option("-k", min=1, help="Results of a query.")] = 10,
    scope_key: ScopeKey = None,
    embedder: Embedder = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the report to a file too.")] = None,
) -> None:
    """Measure whether results follow the query or usage; exit code 1 where they do not. Nothing is changed."""
    from memhybrid.diagnose import diagnose as measure

    if json is not None:
        check_writable(json, "--json")
    asked = None if queries is None else _lines(queries)
    follows = True
    reports: dict[str, object] = {}
    for name, memory in open_stores(path, collection, scope_key, embedder, read_only=True):
        require_embedder(name, memory)
        with progress(f"Asking {name}"):
            report = measure(memory, queries=asked, where=pairs(where), rounds=rounds, k=k, profile=profile)
        reports[name] = report.as_dict()
        follows = follows and report.follows_query
        console().print(f"{name}\n{report}", markup=False)
    if json is not None:
        write_json(json, reports)
    if not follows:
        raise typer.Exit(1)


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(diagnose)
