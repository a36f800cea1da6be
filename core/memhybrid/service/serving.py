"""Putting it together and running it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memhybrid.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from memhybrid.memory import HybridMemory
    from memhybrid.service.auth import Config

EXTRA = "service"


def create_app(memory: HybridMemory, config: str | Path | Mapping[str, Any] | Config | None = None) -> FastAPI:
    """The application over an open store. Without a config everybody who can reach it may do everything: serve that on loopback alone."""
    _require()
    from fastapi import FastAPI

    from memhybrid import __version__
    from memhybrid.service import problems
    from memhybrid.service.app import Service, router
    from memhybrid.service.auth import Keys, Limits, load_config
    from memhybrid.service.limits import LOOPBACK_NAMES, Gate

    loaded = None if config is None else load_config(config)
    limits = Limits() if loaded is None else loaded.limits
    app = FastAPI(title="memhybrid", version=__version__, description="Hybrid memory retrieval.", redoc_url=None)
    app.state.service = Service(memory, limits)
    app.include_router(router)
    problems.install(app)
    if loaded is None:
        app.add_middleware(Gate, limits=limits, keys=None, hosts=LOOPBACK_NAMES)
    else:
        app.add_middleware(Gate, limits=limits, keys=Keys(loaded.keys), hosts=None)
    _describe_keys(app, needed=loaded is not None)
    return app


def serve(
    path: str | Path,
    host: str = "127.0.0.1",
    port: int = 8008,
    *,
    collection: str = "memories",
    config: str | Path | Mapping[str, Any] | Config | None = None,
    no_auth: bool = False,
    embedder: Any = None,
    profile: Any = "tipsy",
    scope_key: str | Sequence[str] | None = "user_id",
    analyzer: Any = "auto",
    log_level: str = "info",
) -> None:
    """Serve the store in a folder until interrupted. ConfigError where it would be open to others without keys."""
    check_access(host, config, no_auth=no_auth)
    _require()
    import uvicorn

    from memhybrid.memory import HybridMemory
    from memhybrid.service.auth import load_config

    loaded = None if config is None else load_config(config)
    with HybridMemory.open(
        path, collection, embedder=embedder, profile=profile, scope_key=scope_key, analyzer=analyzer
    ) as memory:
        # The model is loaded before the first request, not by it.
        memory.embedder.embed_query(["ready"])
        uvicorn.run(create_app(memory, loaded), host=host, port=port, log_level=log_level, server_header=False)


def check_access(host: str, config: Any, *, no_auth: bool) -> None:
    """No key, no service; unless `no_auth` says so, and then on loopback alone."""
    if config is not None and no_auth:
        raise ConfigError("serve: give either a config with API keys or no_auth, not both")
    if config is None and not no_auth:
        raise ConfigError(
            "serve: API keys are needed: give a config file; or no_auth (--no-auth) to serve this machine alone"
        )
    if no_auth and not is_loopback(host):
        raise ConfigError(
            f"serve: without API keys only a loopback address can be served, such as 127.0.0.1, not {host}"
        )


def is_loopback(host: str) -> bool:
    """Whether a host to bind to is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _describe_keys(app: FastAPI, *, needed: bool) -> None:
    """How a key is sent, in the OpenAPI schema."""
    if not needed:
        return
    make = app.openapi

    def described() -> dict[str, Any]:
        schema = make()
        schema.setdefault("components", {})["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        for route, methods in schema["paths"].items():
            if route.startswith("/v1/"):
                for operation in methods.values():
                    operation["security"] = [{"bearer": []}, {"apiKey": []}]
        return schema

    app.openapi = described  # type: ignore[method-assign]


def _require() -> None:
    from importlib.util import find_spec

    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtraError(f"{package}, which the service needs,", EXTRA)
