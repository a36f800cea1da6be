"""`memhybrid eval`: one system, or all of them side by side with `--compare`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memhybrid.commands._options import (
    AnalyzerOption,
    DatasetDir,
    EmbedderOption,
    LimitOption,
    ProfileOption,
    check_writable,
    console,
    make_embedder,
    progress,
    write_json,
)
from memhybrid.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from memhybrid.evaluate.compare import Compared
    from memhybrid.evaluate.datasets import Dataset
    from memhybrid.evaluate.run import Evaluation
    from memhybrid.profiles import Profile

SURE = 0.01
"""Corrected p below which a difference is marked."""


def evaluate(
    dataset_dir: DatasetDir,
    profile: ProfileOption = "balanced",
    embedder: EmbedderOption = "local",
    analyzer: AnalyzerOption = "auto",
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Against vectors, BM25, LangChain, LlamaIndex, mem0 and tipsy, with tests."),
    ] = False,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the numbers to a file too.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw a bar chart (.png, .svg or .pdf).")
    ] = None,
    limit: LimitOption = None,
) -> None:
    """Measure retrieval on labelled data: recall, nDCG, MRR, sessions and latency, in total and by category."""
    from memhybrid.evaluate import datasets
    from memhybrid.profiles import as_profile

    chosen = as_profile(profile)
    if json is not None:
        check_writable(json, "--json")
    if plot is not None:
        from memhybrid.evaluate.plot import check

        check(plot)
    data = first(datasets.load_dataset(dataset_dir), limit)
    made_by = make_embedder(embedder)
    value: Any
    if compare:
        from memhybrid.evaluate.compare import compare as run_all

        compared = run_all(data, stage=progress, embedder=made_by, analyzer=analyzer, extra=chosen)
        results, value = [c.evaluation for c in compared], [c.as_dict() for c in compared]
        console().print(side_by_side(compared))
    else:
        results = [_one(data, chosen, made_by, analyzer)]
        value = results[0].as_dict()
        console().print(table(results[0]))
    if json is not None:
        write_json(json, value)
    if plot is not None:
        from memhybrid.evaluate.plot import bars

        bars(results, plot)


def _one(data: Dataset, profile: Profile, embedder: Any, analyzer: str) -> Evaluation:
    from memhybrid.evaluate import run

    with progress(f"Indexing {len(data.memories)} memories") as moved:
        memory = run.build(data, embedder=embedder, analyzer=analyzer, progress=moved)
    with memory, progress(f"Asking {len(data.queries)} questions") as moved:
        system = run.MemorySystem(memory, profile, scoped=data.scoped)
        return run.evaluate(system, data, embedder=str(memory.embedder.fingerprint), progress=moved)


def first(data: Dataset, limit: int | None) -> Dataset:
    """The dataset with at most so many queries, spread evenly over it. InputError where it has none."""
    if not data.queries:
        raise InputError(f"{data.name}: no query has a relevant memory in qrels/test.tsv")
    if limit is None or limit >= len(data.queries):
        return data
    return replace(data, queries=[data.queries[i * len(data.queries) // limit] for i in range(limit)])


def table(result: Evaluation) -> Table:
    """Metrics for each category and in total, and the latency."""
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


def side_by_side(compared: list[Compared]) -> Table:
    """A row for each system: metrics, latency, and p of the difference to the last."""
    from rich.table import Table

    base = compared[-1].evaluation
    made = Table(
        title=f"{base.dataset} · {len(base.rows)} queries · {base.embedder}",
        caption=f"p: paired randomisation against {base.system}, 10,000 rounds, Holm-corrected; bold below {SURE}. "
        "Latency without embedding the question, which costs all the same.",
    )
    names = list(base.metrics)
    made.add_column("system")
    for name in names:
        made.add_column(name.replace("session_", "session\n").replace("@", "\n@"), justify="right")
    made.add_column("p50\nms", justify="right")
    made.add_column("p\nndcg", justify="right")
    made.add_column("p\nrecall", justify="right")
    for one in compared:
        result = one.evaluation
        cells = [f"{result.metrics[n]:.4f}" for n in names]
        ps = ["", ""] if one.p_values is None else [_p(one.p_values[m]) for m in ("ndcg@10", "recall@10")]
        style = "bold" if one is compared[-1] else ""
        made.add_row(result.system, *cells, f"{result.latency()['p50']:.1f}", *ps, style=style)
    return made


def _p(value: float) -> str:
    return f"[bold]{value:.4f}[/]" if value < SURE else f"{value:.4f}"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("eval")(evaluate)
