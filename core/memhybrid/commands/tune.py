"""`memhybrid tune`: a profile fitted to labelled queries, if that helps on queries that were not fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memhybrid.commands._options import (
    AnalyzerOption,
    DatasetDir,
    EmbedderOption,
    ProfileOption,
    check_writable,
    console,
    make_embedder,
    progress,
)
from memhybrid.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from memhybrid.evaluate.tune import Tuned


def tune(
    dataset_dir: DatasetDir,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the profile is written.")] = Path(
        "profile.json"
    ),
    profile: ProfileOption = "balanced",
    embedder: EmbedderOption = "local",
    analyzer: AnalyzerOption = "auto",
) -> None:
    """Fit a profile to your own labelled queries by cross-validation; exit code 1 where that gains nothing but noise."""
    from memhybrid.evaluate import datasets, run
    from memhybrid.evaluate import tune as work
    from memhybrid.evaluate.pools import collect
    from memhybrid.profiles import as_profile

    base = as_profile(profile)
    check_writable(out, "--out")
    if out.exists():
        raise InputError(f"--out {out}: exists already; name another file")
    data = datasets.load_dataset(dataset_dir)
    if len(data.queries) < work.FEWEST:
        raise InputError(f"{data.name} has {len(data.queries)} labelled queries; fitting needs at least {work.FEWEST}")
    with progress(f"Indexing {len(data.memories)} memories") as moved:
        memory = run.build(data, embedder=make_embedder(embedder), analyzer=analyzer, progress=moved)
    with memory:
        with progress(f"Signals of {len(data.queries)} queries") as moved:
            pools = collect(memory, data, base, work.keyword_profiles(base), moved)
        with progress("Trying profiles") as moved:
            found = work.tune(pools, data.queries, base, name=f"tuned-{data.name}", progress=moved)
    screen = console()
    screen.print(table(found))
    interval = f"95 % interval {found.low:+.4f} to {found.high:+.4f}"
    screen.print(f"Held-out gain in nDCG@10: {found.gain:+.4f}, {interval}", markup=False)
    if not found.recommended:
        why = "the interval includes 0" if found.changes else f"nothing on the grid beats {base.name}"
        screen.print(f"Noise: {why}. Nothing is written; stay with {base.name}.", markup=False)
        raise typer.Exit(1)
    for name, (before, after) in found.changes.items():
        screen.print(f"  {name}: {before} → {after}", markup=False)
    found.profile.to_json(out)
    screen.print(f"Written to {out}; use it as profile={str(out)!r} or --profile {out}", markup=False)


def table(found: Tuned) -> Table:
    """nDCG@10 of each fold by the profile as it was, and by one fitted to the other folds."""
    from rich.table import Table

    made = Table(title="nDCG@10 on queries that were not fitted to", title_justify="left")
    made.add_column("held out")
    made.add_column("queries", justify="right")
    for name in (found.base.name, "fitted to the rest", "gain"):
        made.add_column(name, justify="right")
    for fold in found.folds:
        row = [f"{fold.before:.4f}", f"{fold.after:.4f}", f"{fold.after - fold.before:+.4f}"]
        made.add_row(fold.name, str(fold.queries), *row)
    made.add_section()
    total = [f"{found.before:.4f}", f"{found.after:.4f}", f"{found.gain:+.4f}"]
    made.add_row("all", str(sum(f.queries for f in found.folds)), *total, style="bold")
    return made


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tune)
