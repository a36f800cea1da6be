"""Blocking work off the event loop, or beside the caller, on a bounded number of threads; and large loads without the collector."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import gc
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger("memhybrid")
MAX_THREADS = min(32, (os.cpu_count() or 1) + 4)
_pools: dict[tuple[int, str], ThreadPoolExecutor] = {}
_guard = threading.Lock()
_idle = threading.BoundedSemaphore(os.cpu_count() or 1)
_paused = threading.Lock()


def _pool(name: str, most: int = MAX_THREADS) -> ThreadPoolExecutor:
    """The process's threads of one kind; a forked child gets its own."""
    with _guard:
        pool = _pools.get((os.getpid(), name))
        if pool is None:
            pool = _pools[os.getpid(), name] = ThreadPoolExecutor(most, name)
        return pool


def in_this_process(function: Callable[P, None]) -> Callable[P, None]:
    """The function, which does nothing in a forked child: what is let go there is still the parent's, and its threads are not there."""
    maker = os.getpid()

    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        if os.getpid() == maker:
            function(*args, **kwargs)

    return call


class ProcessLock:
    """A lock that a thread may take again. A forked child has its own: whoever held its parent's is not there to let it go."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function that reads on one of our threads, with the caller's context variables."""
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool("memhybrid"), call)


async def in_write_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for one that writes, on threads of their own: writers wait for each other, and no search shall wait for them."""
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool("memhybrid-write"), call)


def aside(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
    """Start a function beside the caller where a thread is idle; the answer gives its result, or runs it now where none was.

    The function must not call `aside` itself. Worth it for what leaves Python's lock, such as a query of Chroma's index.
    """
    context = contextvars.copy_context()

    def call() -> T:
        return context.run(function, *args, **kwargs)

    def run() -> T:
        try:
            return call()
        finally:
            _idle.release()

    if not _idle.acquire(blocking=False):
        return call
    return _pool("memhybrid-aside", os.cpu_count() or 1).submit(run).result


_pending: deque[Callable[[], None]] = deque()
_wake: SimpleQueue[None] = SimpleQueue()
_settling = ProcessLock()
_state = {"ending": False, "thread": 0}


def afterwards(function: Callable[P, None], /, *args: P.args, **kwargs: P.kwargs) -> None:
    """For finalizers: run a function soon, on a thread of ours. A collection may come in the middle of anything, whatever its thread
    has locked; so this only notes what is to be done.
    """
    call = partial(function, *args, **kwargs)
    if _state["ending"]:
        call()
        return
    _pending.append(call)
    _wake.put(None)


def settle() -> None:
    """Run now what finalizers have left to do. Not for finalizers."""
    if _state["thread"] != os.getpid():
        _state["thread"] = os.getpid()
        threading.Thread(target=_settle_for_ever, name="memhybrid-afterwards", daemon=True).start()
    with _settling:
        while _pending:
            call = _pending.popleft()
            try:
                call()
            except Exception:
                log.exception("what a finalizer left to do failed")


def _settle_for_ever() -> None:
    while True:
        _wake.get()
        settle()


@atexit.register
def _end() -> None:  # pyright: ignore[reportUnusedFunction]
    """Finalizers that come at the very end run at once."""
    _state["ending"] = True
    with _settling:
        while _pending:
            _pending.popleft()()


if hasattr(os, "register_at_fork"):
    # What finalizers have left is the parent's to do.
    os.register_at_fork(after_in_child=_pending.clear)


@contextmanager
def many_objects() -> Generator[None, None, None]:
    """Without the cyclic collector: a load makes objects by the hundred thousand, none of them garbage, and each of its passes
    would walk all that the process has.
    """
    if not gc.isenabled() or not _paused.acquire(blocking=False):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        _paused.release()
