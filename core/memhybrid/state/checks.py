"""Checksums of what the cache holds, and what SQLite says where its file is damaged. What is damaged is made again, never believed."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memhybrid.errors import StoreError

_PASSING = ("locked", "busy", "full", "i/o", "unable to open", "interrupted", "out of memory")


SqliteErrors = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged file raises: names in it that are no text make Python fail while it words SQLite's message."""


class CacheDamagedError(StoreError):
    """The cache does not hold what was written to it."""


def of_vector(vector: NDArray[np.float32]) -> int:
    """Of one vector as it lies in the file."""
    return crc32(np.ascontiguousarray(vector, dtype=np.float32).data)


def of_row(row: Sequence[Any]) -> int:
    """Of one row of the cache, in the order of `sidecar.COLUMNS` without the last, which is this. TypeError where a type is wrong."""
    slot, identifier, text, metadata, terms, counts, entities, covered, tokens, scope, content, vector = row
    told = f"{slot}\0{identifier}\0{scope}\0{covered}\0{vector}\0{entities}\0{metadata}\0{text}"
    return crc32(b"".join((told.encode("utf-8", "surrogatepass"), content, terms, counts, tokens or b"")))


def is_sound(row: Sequence[Any]) -> bool:
    """Whether a row, given with its checksum, is as it was written."""
    try:
        return row[-1] == of_row(row[:-1])
    except TypeError:
        return False


def of_settings(values: Mapping[str, str]) -> str:
    """Of the values about the whole cache."""
    return str(crc32(repr(sorted(map(repr, values.items()))).encode("utf-8", "surrogatepass")))


def is_damage(error: Exception) -> bool:
    """Whether the file is to blame rather than the moment: another process, a full disk."""
    return not isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError) and not any(
        sign in str(error).lower() for sign in _PASSING
    )
