"""What a foreign embedder returned, checked: bad vectors are named at once rather than stored."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from memhybrid.errors import EmbedderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memhybrid.protocols import Float32


def checked_vectors(raw: object, count: int, name: str) -> Float32:
    """What `name` returned for `count` texts as float32, shape (count, d).

    Raises EmbedderError for a wrong number of vectors, vectors of several or no dimensions, and anything in them that
    is not a finite float32, naming the position of the first text concerned.
    """
    if inspect.isawaitable(raw):
        if inspect.iscoroutine(raw):
            raw.close()  # or Python warns that it was never awaited
        raise EmbedderError(f"{name} is asynchronous; give a synchronous one: memhybrid runs it in threads")
    if isinstance(raw, np.ndarray) and raw.ndim == 0:
        raw = None  # one bare number
    if not hasattr(raw, "__len__"):
        if not hasattr(raw, "__iter__"):
            raise EmbedderError(f"{name} returned {type(raw).__name__}, not a list of vectors")
        raw = list(cast("Any", raw))
    if isinstance(raw, (str, bytes, dict)):
        raise EmbedderError(f"{name} returned {type(raw).__name__}, not a list of vectors")
    rows: Any = raw
    try:
        array: NDArray[Any] = np.asarray(rows)
    except (TypeError, ValueError, RuntimeError):  # vectors of several lengths
        array = np.empty(0, dtype=object)
    if array.ndim == 1 and array.dtype.kind in "fiu" and len(array) > 0:
        raise EmbedderError(
            f"{name} returned one vector for a list of {count} texts; "
            "it must take a list of str and return a vector for each"
        )
    if len(rows) != count:
        raise EmbedderError(f"{name} returned {len(rows)} vectors for {count} texts")
    matrix: NDArray[Any] = array
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        matrix = _row_by_row(rows, name)
    if matrix.size == 0:
        raise EmbedderError(f"{name} returned empty vectors")
    with np.errstate(over="ignore"):  # a number too large for float32 becomes inf, which is reported below
        vectors = np.ascontiguousarray(matrix, dtype=np.float32)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        position = int(np.argmin(finite))
        value = matrix[position][int(np.argmin(np.isfinite(vectors[position])))]
        raise EmbedderError(f"{name} returned {value} in the vector of text {position}; all numbers must be finite")
    return vectors


def _row_by_row(rows: Any, name: str) -> NDArray[Any]:
    """The slow way, to name the first bad vector, or to take numbers that numpy knows only as objects (Decimal)."""
    vectors: list[NDArray[Any]] = []
    for position, row in enumerate(rows):
        try:
            vector: NDArray[Any] = np.asarray(row)
            # As objects numpy keeps Decimal, which is a number, and None, which would become nan.
            good = vector.dtype.kind in "fiu" or (vector.dtype.kind == "O" and all(x is not None for x in vector.flat))
            if good:
                vector = vector.astype(np.float64)
        except (TypeError, ValueError, RuntimeError):
            good, vector = False, np.empty(0)
        if not good or vector.ndim != 1:
            raise EmbedderError(f"{name} returned something that is not a vector of numbers for text {position}")
        if vectors and len(vector) != len(vectors[0]):
            raise EmbedderError(
                f"{name} returned vectors of different dimensions: {len(vectors[0])} for text 0, "
                f"{len(vector)} for text {position}"
            )
        vectors.append(vector)
    return np.stack(vectors)
