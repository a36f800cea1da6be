"""The stores that this process has open: one for each collection, shared by all that open it, closed by the last."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from memhybrid.concurrency import afterwards
from memhybrid.errors import ConfigError, EmbedderError
from memhybrid.protocols import Embedder
from memhybrid.store import Store

_open_stores: dict[tuple[str, ...], tuple[Store, int]] = {}
_open_guard = threading.Lock()
_inside = threading.local()


@contextmanager
def _guarded() -> Generator[None, None, None]:
    with _open_guard:
        _inside.guard = True
        try:
            yield
        finally:
            _inside.guard = False


def shared(
    key: tuple[str, ...], make: Callable[[], Store], embedder: Embedder, settings: Mapping[str, str], backend: Any
) -> Store:
    """The process's one store for a key, made if there is none: two objects on one collection must see each other's writes.

    Two with other `settings` (scope keys, analyzer, …) would undo each other's state, so the second is refused. The `backend` that
    the caller has opened is closed where no new store took it.
    """
    try:
        store = _shared(key, make, embedder, settings)
    except BaseException:
        backend.close()
        raise
    if store.backend is not backend:
        store.keep(backend)
    return store


def _shared(key: tuple[str, ...], make: Callable[[], Store], embedder: Embedder, settings: Mapping[str, str]) -> Store:
    with _guarded():
        found = _open_stores.get(key)
        if found is not None and not found[0].closed:
            store, count = found
            mine, theirs = embedder.fingerprint, store.embedder.fingerprint
            if mine != theirs:
                raise EmbedderError(
                    f"this store is already open with {theirs}; it cannot be opened with {mine} at the same time"
                )
            for name, value in settings.items():
                if store.settings.get(name) != value:
                    raise ConfigError(
                        f"{name}: this store is already open in this process with {store.settings.get(name)}, not "
                        f"{value}; close that one first, or open it with the same"
                    )
            _open_stores[key] = (store, count + 1)
            return store
        store = make()
        store.settings = dict(settings)
        _open_stores[key] = (store, 1)
        return store


def let_go(key: tuple[str, ...] | None, store: Store) -> None:
    """Close a store when its last user lets go of it."""
    if getattr(_inside, "guard", False):
        # Called by somebody's own finalizer, in the middle of opening another store.
        afterwards(let_go, key, store)
        return
    with _guarded():
        found = _open_stores.get(key) if key is not None else None
        if key is not None and found is not None and found[0] is store:
            if found[1] > 1:
                _open_stores[key] = (store, found[1] - 1)
                return
            del _open_stores[key]
    store.close()


def _forget_the_parents() -> None:
    """In a forked child: its stores are its own."""
    global _open_guard  # noqa: PLW0603 - the parent may have forked while holding it
    _open_guard = threading.Lock()
    _open_stores.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parents)
