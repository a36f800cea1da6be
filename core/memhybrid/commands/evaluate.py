"""`memhybrid eval`: one system, or all of them side by side with `--compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memhybrid.commands._options import (
    AnalyzerOption,
    DatasetDir,
    EmbedderOption,
    LimitOption,
    ProfileOption,
    console,
    make_embedder,
    progress,
    write_json,
)
from memhybrid.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from memhybrid.evaluate.datasets import Dataset
    from memhybrid.evaluate.run import Evaluation


def evaluate(
    dataset_dir: DatasetDir,
    profile: ProfileOption = "balanced",
    embedder: EmbedderOption = "local",
    analyzer: AnalyzerOption = "auto",
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the numbers to a file as well.")
    ] = None,
    limit: LimitOption = None,
) -> None:
    """Measure retrieval on labelled data: recall, nDCG, MRR, sessions and latency, in total and by category."""
    from memhybrid.evaluate import datasets, run
    from memhybrid.profiles import as_profile

    chosen = as_profile(profile)
    data = first(datasets.load_dataset(dataset_dir), limit)
    with progress(f"Indexing {len(data.memories)} memories") as moved:
        memory = run.build(data, embedder=make_embedder(embedder), analyzer=analyzer, progress=moved)
    with memory, progress(f"Asking {len(data.queries)} questions") as moved:
        system = run.MemorySystem(memory, chosen, scoped=data.scoped)
        result = run.evaluate(system, data, embedder=str(memory.embedder.fingerprint), progress=moved)
    if json is not None:
        write_json(json, result.as_dict())
    console().print(table(result))


def first(data: Dataset, limit: int | None) -> Dataset:
    """The dataset with at most so many queries, spread evenly over it."""
    from dataclasses import replace

    if not data.queries:
        raise InputError(f"{data.name}: no query has a relevant memory in qrels/test.tsv")
    if limit is None or limit >= len(data.queries):
        return data
    return replace(data, queries=[data.queries[i * len(data.queries) // limit] for i in range(limit)])


def table(result: Evaluation) -> Table:
    """Metrics in total and for each category, under the latency."""
    from rich.table import Table

    names = list(result.metrics)
    latency = result.latency()
    made = Table(
        title=f"{result.dataset} · {result.system} · {result.embedder}",
        caption=f"{len(result.rows)} queries · a search takes {latency['p50']:.1f} ms (p50), {latency['p95']:.1f} ms (p95)",
    )
    made.add_column("category")
    made.add_column("queries", justify="right")
    for name in names:
        made.add_column(name, justify="right")
    for category, row in result.by_category().items():
        made.add_row(category, f"{row['queries']:.0f}", *(f"{row[n]:.4f}" for n in names))
    made.add_section()
    made.add_row("total", str(len(result.rows)), *(f"{result.metrics[n]:.4f}" for n in names), style="bold")
    return made


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("eval")(evaluate)
