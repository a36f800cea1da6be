"""Work beside the caller."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from memhybrid.concurrency import aside, many_objects


def test_beside_or_not_the_result_is_the_functions() -> None:
    """More calls than there are threads are all answered, those beyond by the caller itself."""
    started, go = threading.Barrier((os.cpu_count() or 1) + 1), threading.Event()

    def slow(n: int) -> tuple[int, int]:
        if n >= 0:
            started.wait(30)
            go.wait(30)
        return n, threading.get_ident()

    running = [aside(slow, n) for n in range(os.cpu_count() or 1)]
    started.wait(30)
    assert aside(slow, -1)() == (-1, threading.get_ident())
    go.set()
    answers = [answer() for answer in running]
    assert [n for n, _ in answers] == list(range(len(running)))
    assert threading.get_ident() not in {thread for _, thread in answers}


def test_what_is_raised_beside_reaches_the_caller_and_frees_the_thread() -> None:
    """An error is the caller's, however often it happens."""

    def fails() -> None:
        raise ValueError("beside")

    for _ in range(2 * (os.cpu_count() or 1) + 1):
        with pytest.raises(ValueError, match="beside"):
            aside(fails)()


def test_the_collector_is_as_it_was_after_a_load() -> None:
    """Also where the load fails, and where somebody had switched it off."""

    def failing_load() -> None:
        with many_objects():
            assert not gc.isenabled()
            with many_objects():
                pass
            assert not gc.isenabled()
            raise KeyError

    assert gc.isenabled()
    with pytest.raises(KeyError):
        failing_load()
    assert gc.isenabled()
    gc.disable()
    try:
        with many_objects():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
