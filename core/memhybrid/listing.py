"""The order of listings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.errors import InputError
from memhybrid.indexes.partition import View
from memhybrid.times import parse_time


def sort_rows(view: View, rows: NDArray[np.intp], order_by: str | None) -> list[int]:
    """Rows by a metadata key, "-key" descending; without one in order of writing. Rows without the key come last, then by id."""
    if order_by is None:
        vectors = view.partition.vectors
        # An update makes a new row and keeps the slot.
        return rows.tolist() if vectors is None else rows[np.argsort(vectors.slots(rows), kind="stable")].tolist()
    if not isinstance(order_by, str) or order_by in ("", "-"):
        raise InputError(f"order_by: expected a metadata key such as 'created_at' or '-importance', got {order_by!r}")
    descending = order_by.startswith("-")
    key = order_by.removeprefix("-")
    values = view.partition.metadata.objects(key, rows.tolist())
    with_key = [(value, row) for value, row in zip(values, rows.tolist(), strict=True) if value is not None]
    without = [row for value, row in zip(values, rows.tolist(), strict=True) if value is None]
    ids = view.partition.ids
    # By id first: the sort by value is stable and keeps that among equals, in both directions.
    with_key.sort(key=lambda pair: ids[pair[1]])
    with_key.sort(key=lambda pair: _comparable(pair[0]), reverse=descending)
    return [row for _, row in with_key] + sorted(without, key=lambda row: ids[row])


def _comparable(value: Any) -> tuple[int, float, str]:
    """Numbers and times before other texts; bools as numbers; lists by their text."""
    if isinstance(value, int | float):
        return (0, float(value), "")
    moment = parse_time(value) if isinstance(value, str) else None
    if moment is not None:
        return (0, moment, "")
    return (1, 0.0, str(value))
