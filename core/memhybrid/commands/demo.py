"""`memhybrid demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memhybrid.commands._options import EmbedderOption, ProfileOption, console, make_embedder, progress


def demo(
    dataset_dir: Annotated[
        Path | None, typer.Argument(metavar="[DATASET_DIR]", help="Your own labelled data in BEIR layout.")
    ] = None,
    embedder: EmbedderOption = "local",
    profile: ProfileOption = "balanced",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer questions: one for each signal.")] = False,
) -> None:
    """Ask a store of example memories questions that need different signals, and compare with vectors alone."""
    from memhybrid import demo as work
    from memhybrid.profiles import as_profile

    chosen = as_profile(profile)
    material = work.packaged(quick=quick) if dataset_dir is None else work.from_folder(dataset_dir, quick=quick)
    with progress(f"Building a store of {len(material.memories)} memories") as moved:
        memory = work.build(material, embedder=make_embedder(embedder), progress=moved)
    with memory:
        with progress("Asking") as moved:
            answers = work.ask(memory, material, chosen, progress=moved)
        work.show(console(), memory, material, chosen, answers)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)
