"""A bar chart of systems by metric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memhybrid.errors import InputError, MissingExtraError
from memhybrid.evaluate.run import Evaluation

FORMATS = (".png", ".svg", ".pdf")


def check(path: Path) -> None:
    """Before hours of work: can this file be written, and is matplotlib there?"""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"--plot {path}: the name must end in one of {', '.join(FORMATS)}")
    if not path.resolve().parent.is_dir():
        raise InputError(f"--plot {path}: there is no folder {path.parent}")
    try:
        import matplotlib as _  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib, which the chart needs,", "eval") from error


def bars(results: Sequence[Evaluation], path: Path) -> None:
    """Write the chart: a group for each metric, a bar for each system."""
    check(path)
    from matplotlib.figure import Figure

    names = list(results[0].metrics)
    width = 0.8 / len(results)
    figure = Figure(figsize=(max(7.0, 1.9 * len(names)), 4.5), layout="constrained")
    axes = figure.subplots()
    for i, result in enumerate(results):
        heights = [result.metrics[name] for name in names]
        places = [at + (i - (len(results) - 1) / 2) * width for at in range(len(names))]
        drawn = axes.bar(places, heights, width * 0.92, label=result.system)
        if len(results) == 1:
            axes.bar_label(drawn, fmt="%.3f")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(0, 1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"{results[0].dataset}, {len(results[0].rows)} queries")
    if len(results) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(results), 4), frameon=False)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
