"""`memhybrid serve`: a store over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memhybrid.commands._options import AnalyzerOption, EmbedderOption, make_embedder


def serve(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The store's folder, made if it is not there.")],
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535)] = 8008,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A JSON file with API keys and limits.")
    ] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Without keys, for this machine alone.")] = False,
    collection: Annotated[str, typer.Option("--collection", metavar="NAME")] = "memories",
    profile: Annotated[
        str, typer.Option("--profile", metavar="P", help="A shipped profile or a .json file.")
    ] = "tipsy",
    scope_key: Annotated[
        list[str] | None,
        typer.Option(
            "--scope-key", metavar="KEY", help="What keeps tenants apart; repeat it for several. [default: user_id]"
        ),
    ] = None,
    embedder: EmbedderOption = "local",
    analyzer: AnalyzerOption = "auto",
    log_level: Annotated[str, typer.Option("--log-level", metavar="LEVEL")] = "info",
) -> None:
    """Serve a store over HTTP until interrupted: retrieve, store and delete, with API keys that know their tenants."""
    from memhybrid.service import serve as run

    run(
        path,
        host,
        port,
        collection=collection,
        config=config,
        no_auth=no_auth,
        embedder=make_embedder(embedder),
        profile=profile,
        scope_key=scope_key or "user_id",
        analyzer=analyzer,
        log_level=log_level,
    )


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(serve)
