"""Blocking work off the event loop, on a bounded number of threads."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
MAX_THREADS = min(32, (os.cpu_count() or 1) + 4)
_pools: dict[int, ThreadPoolExecutor] = {}
_guard = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    """The process's threads; a forked child gets its own."""
    with _guard:
        pool = _pools.get(os.getpid())
        if pool is None:
            pool = _pools[os.getpid()] = ThreadPoolExecutor(MAX_THREADS, "memhybrid")
        return pool


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function on one of our threads, with the caller's context variables."""
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool(), call)
