"""`memhybrid recover`: a damaged folder rebuilt from what is left in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memhybrid.commands._options import console, make_embedder, progress


def recover(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The damaged folder.")],
    embedder: Annotated[
        str | None,
        typer.Option("--embedder", metavar="E", help="Embeds the texts whose vectors are lost; as the store had it."),
    ] = None,
) -> None:
    """Rebuild a folder that Chroma cannot read any more; the damaged one is kept beside it."""
    from memhybrid import recover as work

    given = None if embedder is None else make_embedder(embedder)
    with progress("Recovering") as moved:
        report = work.recover(path, embedder=given, progress=moved)
    console().print(str(report), markup=False)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(recover)
