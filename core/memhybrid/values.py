"""What users hand in, checked and made plain before anything is written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timezone
from enum import Enum
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.errors import InputError, MetadataError
from memhybrid.records import Memory
from memhybrid.times import plain_scalar

MAX_TEXT = 50_000_000
LONGEST_VECTOR = 1e18
"""Chroma takes lengths in 32 bits, where the square of a longer one is infinite."""
RESERVED_PREFIXES = ("chroma:", "$", "#")


def clean_text(text: Any, name: str) -> str:
    """A text as it is stored: lone surrogates, which no store can encode, become the replacement character."""
    if not isinstance(text, str):
        raise InputError(f"{name}: expected a str, got {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise InputError(f"{name}: {len(text):,} characters; at most {MAX_TEXT:,} are taken, split it first")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def clean_id(identifier: Any, name: str = "id") -> str:
    """An id: a non-empty str that can be stored."""
    if not isinstance(identifier, str):
        raise InputError(f"{name}: expected a str, got {type(identifier).__name__} ({identifier!r})")
    if not identifier or "\x00" in identifier or clean_text(identifier, name) != identifier:
        raise InputError(f"{name}: {identifier!r} is empty or has characters that cannot be stored")
    return identifier


def clean_ids(ids: Any, name: str = "ids") -> list[str]:
    """Several ids; one str is one id; repeats are dropped."""
    if isinstance(ids, str):
        return [clean_id(ids, name)]
    if isinstance(ids, Mapping) or not isinstance(ids, Iterable):
        raise InputError(f"{name}: expected a list of ids, got {type(ids).__name__}")
    return list(dict.fromkeys(clean_id(i, name) for i in ids))


def clean_metadata(metadata: Any, owner: str) -> dict[str, Any]:
    """Metadata as it is stored. `owner` names the memory in errors. None values are left out; datetimes become ISO text."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise MetadataError(f"{owner}: metadata is a dict, got {type(metadata).__name__}")
    out: dict[str, Any] = {}
    for key, value in metadata.items():
        if not isinstance(key, str) or not key:
            raise MetadataError(f"{owner}: metadata keys are non-empty strings, got {key!r}")
        if key.startswith(RESERVED_PREFIXES) or clean_text(key, owner) != key:
            raise MetadataError(f"{owner}: metadata key {key!r} cannot be used; Chroma keeps it for itself")
        if value is None:
            continue
        out[key] = _clean_value(value, f"{owner}: metadata {key!r}")
    return out


def _clean_value(value: Any, where: str) -> Any:
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        if isinstance(value, np.ndarray):
            value = list(value) if value.ndim else [value[()]]
        items = [_clean_scalar(item, where) for item in value]
        kinds = {type(item) for item in items}
        if len(kinds) != 1:
            problem = "is an empty list" if not items else "mixes types in one list"
            raise MetadataError(
                f"{where} {problem}; Chroma stores non-empty lists of one type; leave the key out or use text"
            )
        return sorted(items) if isinstance(value, set | frozenset) else items
    return _clean_scalar(value, where)


def _clean_scalar(value: Any, where: str) -> Any:
    if isinstance(value, Enum):
        value = value.value
    value = plain_scalar(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if not -(2**63) <= value < 2**63:
            raise MetadataError(f"{where} is {value}: integers beyond 64 bits lose digits in Chroma; store it as text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise MetadataError(f"{where} is {value!r}, which Chroma turns into nothing; leave the key out instead")
        return float(value) + 0.0  # -0.0, which Chroma does not keep, becomes 0.0
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(str(value), where)
    if isinstance(value, datetime | date):
        if isinstance(value, datetime) and value.tzinfo is None:
            value = value.replace(tzinfo=timezone.utc)
        return value.isoformat()
    raise MetadataError(
        f"{where} is a {type(value).__name__}; take str, int, float, bool, a date, or a list of one of these "
        "(json.dumps keeps anything else as text)"
    )


def clean_vector(vector: Any, owner: str, dimension: int | None) -> NDArray[np.float32]:
    """An embedding as float32 (d,). Names the memory or argument where it cannot be one."""
    try:
        given = np.asarray(vector)
        if given.dtype.kind not in "fiu":
            raise TypeError
        with np.errstate(over="ignore"):
            array = given.astype(np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{owner}: expected a list of numbers as embedding, got {type(vector).__name__}") from error
    if array.ndim != 1 or not array.size:
        raise InputError(f"{owner}: expected one embedding, got an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{owner}: the embedding has NaN or infinite numbers, or numbers beyond 32 bits")
    if float(np.linalg.norm(array.astype(np.float64))) > LONGEST_VECTOR:
        raise InputError(
            f"{owner}: the embedding is longer than {LONGEST_VECTOR:g}, at which Chroma loses its direction"
        )
    if dimension is not None and array.size != dimension:
        raise InputError(f"{owner}: the embedding has {array.size} dimensions, this store has {dimension}")
    return array


def as_memory(item: Any, position: int) -> Memory:
    """One item of `add`: a text, a Memory, or a pair of text and metadata."""
    if isinstance(item, Memory):
        return item
    if isinstance(item, str):
        return Memory(text=item)
    if isinstance(item, tuple) and len(item) == 2:
        return Memory(text=item[0], metadata=item[1] or {})
    raise InputError(
        f"memories[{position}]: expected a str, a Memory or a pair (text, metadata), got {type(item).__name__}"
    )


def as_memories(items: Any) -> list[Memory]:
    """The items of `add`; one item alone is a list of one."""
    if isinstance(items, str | Memory) or (
        isinstance(items, tuple) and len(items) == 2 and isinstance(items[0], str) and isinstance(items[1], Mapping)
    ):
        items = [items]
    if isinstance(items, Mapping) or not isinstance(items, Iterable):
        raise InputError(f"memories: expected a list of str, Memory or (text, metadata), got {type(items).__name__}")
    return [as_memory(item, i) for i, item in enumerate(items)]


def content_hash(text: str, metadata: Mapping[str, Any]) -> bytes:
    """16 bytes that change whenever a memory's text or metadata does.

    The vector is compared by direction instead: Chroma gives back another length, and other last bits, than it was given.
    """
    digest = blake2b(digest_size=16)
    digest.update(text.encode("utf-8", "surrogatepass"))
    digest.update(
        b"\x00" + json.dumps(dict(metadata), sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    )
    return digest.digest()


def is_long_float(value: Any) -> bool:
    """Whether a value is, or has, a float that Chroma may round: of more than fifteen digits, very large or very small."""
    if isinstance(value, list):
        return any(is_long_float(item) for item in value)
    if not isinstance(value, float) or value == 0:
        return False
    return not 1e-4 <= abs(value) < 1e15 or float(f"{value:.15g}") != value


def positive(value: Any, name: str, *, most: int = 1_000_000) -> int:
    """A whole number from 1 to `most`."""
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name}: expected a whole number of at least 1, got {value!r}")
    if value < 1:
        raise InputError(f"{name}: expected at least 1, got {value}")
    return min(value, most)


def optional_number(value: Any, name: str) -> float | None:
    """A finite number, or None."""
    if value is None:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name}: expected a finite number, got {value!r}")
    return float(value)


def check_query(query: Any, name: str = "query") -> str:
    """A query text; an empty one is allowed and finds nothing by its words."""
    if query is None:
        raise InputError(f"{name}: expected a str, got None")
    return clean_text(query, name)


Listable = Sequence[str] | str
