"""One writing process a folder. Chroma's own files lose vectors when two processes write to them."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from memhybrid.errors import StoreError, StoreLockedError

NAME = ".memhybrid.lock"
_held: dict[Path, tuple[IO[Any], int, int]] = {}
_guard = threading.Lock()


def _lock_file(file: IO[Any]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def acquire(folder: Path) -> bool:
    """Hold the folder for this process; may be called again by the same process. StoreLockedError names the holder.

    Whether another process held it since this one last did.
    """
    with _guard:
        held = _held.get(folder)
        if held is not None and held[2] == os.getpid():
            _held[folder] = (held[0], held[1] + 1, held[2])
            return False
        path = folder / NAME
        try:
            file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise StoreError(
                f"cannot write to {folder}: {error.strerror}. Make the folder writable, or copy it to where it may be "
                "written: Chroma writes even to open one for reading"
            ) from error
        if not _lock_file(file):
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise StoreLockedError(
                f"{folder} is being written by {_describe(holder)}. Two writers lose vectors: close the other one, open with "
                "read_only=True, or let both talk to a server (`chroma run --path FOLDER`, HybridMemory.connect)"
            )
        file.seek(0)
        before, mine = file.read(), json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        file.seek(0)
        file.truncate()
        file.write(mine)
        file.flush()
        _held[folder] = (file, 1, os.getpid())
        return before not in ("", mine)


def _describe(holder: str) -> str:
    try:
        data = json.loads(holder)
        return f"process {data['pid']} on {data['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _forget_the_parents() -> None:
    """In a forked child: let go of the parent's files, so that the folder is free as soon as the parent releases it."""
    global _guard  # noqa: PLW0603 - the parent may have forked while holding it
    _guard = threading.Lock()
    for file, _, _ in _held.values():
        # Closing one of two descriptors of a file does not unlock it.
        with suppress(OSError):
            file.close()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parents)


def release(folder: Path) -> None:
    """Let go once for each `acquire`."""
    with _guard:
        held = _held.get(folder)
        if held is None or held[2] != os.getpid():
            return
        file, count, pid = held
        if count > 1:
            _held[folder] = (file, count - 1, pid)
        else:
            del _held[folder]
            file.close()
