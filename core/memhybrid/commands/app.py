"""The application: which commands there are. One whose module is not part of this installation is not listed."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

import typer

app = typer.Typer(
    name="memhybrid",
    help="Hybrid memory retrieval over Chroma: vectors, BM25, entities and more, fused and explained.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS = {
    "demo": "memhybrid.demo",
    "evaluate": "memhybrid.evaluate.run",
    "tune": "memhybrid.evaluate.tune",
    "look": "memhybrid.search",
    "upkeep": "memhybrid.sync",
    "diagnose": "memhybrid.diagnose",
    "recover": "memhybrid.recover",
    "bench": "memhybrid.bench",
    "serve": "memhybrid.service",
}
"""File here → the module that does the work."""


def _version(wanted: bool) -> None:
    if wanted:
        from memhybrid import __version__

        typer.echo(f"memhybrid {__version__}")
        raise typer.Exit


@app.callback()
def _root(  # pyright: ignore[reportUnusedFunction] - typer calls it
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    del version


def register() -> None:
    """Add the commands whose modules exist, in the order above."""
    package = __name__.rpartition(".")[0]
    for name, needs in COMMANDS.items():
        if find_spec(f"{package}.{name}") is not None and find_spec(needs) is not None:
            importlib.import_module(f"{package}.{name}").add_to(app)


register()
