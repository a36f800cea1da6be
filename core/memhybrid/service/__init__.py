"""Memory over HTTP. Needs the extra "service".

    serve(path, host="127.0.0.1", port=8008, *, collection="memories", config=None, no_auth=False, embedder=None, profile="tipsy",
          scope_key="user_id", analyzer="auto", log_level="info") -> None

opens the store in `path` and serves it until it is interrupted. `config` is a JSON file with API keys and limits (`memhybrid.service.auth`,
`memhybrid.service.limits`); without one the service starts only with `no_auth=True` and only on a loopback address. `create_app(memory, …)`
gives the application for a server of your own.

    POST   /v1/memory/retrieve   find memories
    POST   /v1/memories          store memories
    DELETE /v1/memories          delete by ids or by filter
    GET    /healthz  /readyz     alive; able to answer
    GET    /openapi.json  /docs  the schema with examples
"""

from __future__ import annotations

from memhybrid.service.serving import create_app, serve

__all__ = ["create_app", "serve"]
