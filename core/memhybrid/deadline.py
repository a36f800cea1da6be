"""Calling what may hang: a model, somebody's service. The caller goes on when the time is over."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlineError(TimeoutError):
    """The call did not come back in time, or too many earlier ones have not."""


class Deadline:
    """Runs functions in threads of their own and waits so long and no longer.

    A call that is late is left to end by itself: nothing in Python can stop it. At most `most_hanging` of these may exist, so that a
    service that never answers does not fill the process with threads.
    """

    def __init__(self, name: str, most_hanging: int = 8) -> None:
        self._name = name
        self._most = most_hanging
        self._slots = threading.BoundedSemaphore(most_hanging)

    def call(self, seconds: float, function: Callable[..., T], *arguments: Any) -> T:
        """The function's result, or what it raises; DeadlineError after so many seconds."""
        if not self._slots.acquire(blocking=False):
            raise DeadlineError(f"{self._most} earlier calls have not come back")
        results: list[T] = []
        errors: list[BaseException] = []
        done = threading.Event()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                results.append(context.run(function, *arguments))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                errors.append(error)
            finally:
                self._slots.release()
                done.set()

        threading.Thread(target=run, name=f"memhybrid-{self._name}", daemon=True).start()
        if not done.wait(max(seconds, 0.0)):
            raise DeadlineError(f"no answer within {max(seconds, 0.0):.2f} s")
        if errors:
            raise errors[0]
        return results[0]
