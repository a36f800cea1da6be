"""How a collection is reached. chromadb is imported only here and only when asked for."""

from __future__ import annotations

import os
import uuid
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memhybrid.backends.chroma.backend import OPENING, ChromaBackend, chroma_errors
from memhybrid.backends.chroma.changes import ChromaChanges
from memhybrid.errors import InputError, StoreError

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

_IN_MEMORY = "ephemeral"
"""Chroma's key for the one engine in memory."""
SPACE = "cosine"
EF_SEARCH = 200
"""At least twice the candidates asked for: with Chroma's default of 100, recall at 100 was 0.80 on 50,000 vectors."""


def _chromadb() -> Any:
    try:
        import chromadb
    except (ImportError, RuntimeError) as error:  # an old sqlite3 raises RuntimeError at import
        raise StoreError(f"chromadb cannot be imported: {error}") from error
    _watch_forks()
    return chromadb


_parents: list[Any] = []
_inherited: set[Path] = set()


@cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget_the_parents)


def _forget_the_parents() -> None:
    """In a forked child: Chroma's clients share engines by path, and one that was started before the fork hangs for ever.

    A new engine on a folder that the parent had open may hang as well, at the first write: SQLite does not survive a fork.
    """
    from chromadb.api.shared_system_client import SharedSystemClient

    for name in ("_identifier_to_system", "_identifier_to_refcount"):
        registry = getattr(SharedSystemClient, name, None)
        if isinstance(registry, dict):
            # Kept alive: stopping the parent's engine here could hang, too.
            _parents.append(dict(registry))
            _inherited.update(Path(key).resolve() for key in registry if isinstance(key, str) and Path(key).is_dir())
            registry.clear()


def _collection(client: Any, name: str) -> Collection:
    with chroma_errors(f"opening the collection {name!r}"):
        return client.get_or_create_collection(
            name, embedding_function=None, configuration={"hnsw": {"space": SPACE, "ef_search": EF_SEARCH}}
        )


def _settings(key: str) -> Any:
    """Those of the engine that runs for a folder or in memory, whoever started it: with any others Chroma refuses a second client.

    Else Chroma's own, as everybody's; its telemetry sends nothing since 1.0.
    """
    running = _systems().get(key)
    return _chromadb().Settings() if running is None else running.settings.model_copy()


def _opened(client: Any, name: str) -> Collection:
    """The collection of a client of ours, which is closed where it cannot be opened."""
    try:
        return _collection(client, name)
    except BaseException:
        client.close()
        raise


def _persistent_client(path: Path) -> Any:
    """Chroma's client of a folder. One whose engine could not start stays in its registry and fails for ever: it is taken out."""
    chromadb = _chromadb()
    try:
        return chromadb.PersistentClient(str(path), settings=_settings(str(path)))
    except Exception:
        from chromadb.api import ServerAPI

        system = _systems().get(str(path))
        if system is not None and not hasattr(system.instance(ServerAPI), "bindings"):
            _systems().pop(str(path), None)
        raise


def _systems() -> dict[str, Any]:
    """What Chroma has running in this process by folder; private, so nothing where it is not as expected."""
    from chromadb.api.shared_system_client import SharedSystemClient

    systems = getattr(SharedSystemClient, "_identifier_to_system", None)
    return systems if isinstance(systems, dict) else {}


def open_folder(path: Path, collection: str, *, renew: bool = False) -> ChromaBackend:
    """A collection in a local folder, made if it is not there. The path is resolved: Chroma keys its clients by its spelling.

    `renew` where another process wrote since this one last did: an engine that was open meanwhile does not know of it.
    """
    _chromadb()
    if path.resolve() in _inherited:
        raise StoreError(
            f"{path} was open in Chroma when this process forked, which its engine does not survive; use the spawn start "
            "method, or open it after the fork alone"
        )
    with OPENING:
        known = str(path) in _systems()
        with chroma_errors(f"opening the Chroma folder {path}"):
            client = _persistent_client(path)
        opened = _opened(client, collection)
        backend = ChromaBackend(client, opened, ChromaChanges(path, str(opened.id)), owned=True)
        if renew and known:
            backend.start_again()
        return backend


def recreate_collection(path: Path, name: str, metadata: dict[str, Any], space: str) -> ChromaBackend:
    """A new collection in a folder that no other client has open, with a given distance and metadata."""
    path.mkdir(parents=True, exist_ok=True)
    plain = {key: value for key, value in metadata.items() if not key.startswith("hnsw:")}
    with OPENING, chroma_errors(f"making the collection {name!r}"):
        client = _persistent_client(path)
        made = client.create_collection(
            name,
            metadata=plain or None,
            embedding_function=None,
            configuration={"hnsw": {"space": space, "ef_search": EF_SEARCH}},
        )
    return ChromaBackend(client, made, owned=True)


def open_memory(collection: str) -> ChromaBackend:
    """A collection in memory that nobody else sees: all in-memory clients of a process share one store, so the name is made unique."""
    chromadb = _chromadb()
    with OPENING:
        with chroma_errors("opening Chroma in memory"):
            client = chromadb.EphemeralClient(settings=_settings(_IN_MEMORY))
        return ChromaBackend(client, _opened(client, f"{collection[:200]}-{uuid.uuid4().hex}"))


def connect_server(
    host: str,
    port: int,
    collection: str,
    *,
    tenant: str | None,
    database: str | None,
    headers: dict[str, str] | None,
    ssl: bool,
) -> ChromaBackend:
    """A collection on a Chroma server, made if it is not there."""
    chromadb = _chromadb()
    options: dict[str, Any] = {}
    if tenant is not None:
        options["tenant"] = tenant
    if database is not None:
        options["database"] = database
    with chroma_errors(f"connecting to the Chroma server at {host}:{port}"):
        # New settings each time: HttpClient writes the host into the ones that it is given.
        client = chromadb.HttpClient(
            host=host,
            port=port,
            ssl=ssl,
            headers=headers,
            settings=chromadb.Settings(),
            **options,
        )
    return ChromaBackend(client, _opened(client, collection), owned=True)


def attach_collection(collection: Any) -> tuple[ChromaBackend, Path | None]:
    """A collection that the user has, and its folder if it lies in one."""
    chromadb = _chromadb()
    if isinstance(collection, chromadb.AsyncClientAPI) or type(collection).__name__ == "AsyncCollection":
        raise InputError(
            "collection: an async Chroma client is not supported; use HybridMemory.connect(host=…, port=…)"
        )
    if not all(callable(getattr(collection, name, None)) for name in ("upsert", "get", "delete", "query", "count")):
        raise InputError(f"collection: expected a Chroma collection, got {type(collection).__name__}")
    server = getattr(collection, "_client", None)
    folder = _folder_of(server)
    changes = ChromaChanges(folder, str(collection.id)) if folder is not None else None
    return ChromaBackend(server, collection, changes), folder


def _folder_of(server: Any) -> Path | None:
    """The local folder behind a client, None for servers and for stores in memory."""
    system = getattr(server, "_system", None)
    settings = getattr(system, "settings", None)
    if settings is None or not getattr(settings, "is_persistent", False):
        return None
    if "rust" not in str(getattr(settings, "chroma_api_impl", "")).lower():
        return None
    folder = Path(str(settings.persist_directory)).resolve()
    return folder if (folder / "chroma.sqlite3").exists() else None
