"""`memhybrid sync` and `memhybrid verify`: a folder's stores compared with what Chroma holds."""

from __future__ import annotations

import typer

from memhybrid.commands._options import console, progress
from memhybrid.commands._stores import Collection, Embedder, Folder, ScopeKey, open_stores

LISTED = 50
"""Problems that are printed; more are counted."""


def sync(path: Folder, collection: Collection = None, scope_key: ScopeKey = None, embedder: Embedder = None) -> None:
    """Compare a store's indexes with its Chroma collection and mend what differs."""
    out = console()
    for name, memory in open_stores(path, collection, scope_key, embedder, read_only=False):
        with progress(f"Comparing {name}"):
            report = memory.sync()
        counts = (
            f"{report.added} added, {report.updated} updated, {report.removed} removed, {report.unchanged} unchanged"
        )
        out.print(f"{name}: {counts}", markup=False)


def verify(path: Folder, collection: Collection = None, scope_key: ScopeKey = None, embedder: Embedder = None) -> None:
    """List every difference between Chroma, cache and indexes, changing nothing; exit code 1 where there is one."""
    out = console()
    found = 0
    for name, memory in open_stores(path, collection, scope_key, embedder, read_only=True):
        with progress(f"Verifying {name}"):
            report = memory.verify()
        found += len(report.problems)
        out.print(f"{name}: {report.memories} memories, {len(report.problems)} problems", markup=False)
        for problem in report.problems[:LISTED]:
            out.print(f"  {problem}", markup=False)
        if len(report.problems) > LISTED:
            out.print(f"  … and {len(report.problems) - LISTED} more")
    if found:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(sync)
    app.command()(verify)
