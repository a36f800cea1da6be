"""Memories that have expired or were superseded stay out of every leg unless they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.indexes.metadata import MetadataTable
from memhybrid.scope import Filter, Leaf, Node
from memhybrid.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memhybrid.indexes.partition import View
    from memhybrid.profiles import FieldMap, Profile
    from memhybrid.signals.context import Request


class _Within(Leaf):
    """A time that has not passed. Vectorised: the moment is another at each search, so that answers cannot be kept."""

    def mask(self, table: MetadataTable, n: int) -> NDArray[np.bool_]:
        column = table.column(self.key)
        if column is None:
            return np.ones(n, dtype=np.bool_)
        times = column.all_times(n)
        # What is no time does not say that the memory has expired.
        with np.errstate(invalid="ignore"):
            return ~(times <= self.identity)


def _within(key: str, now: float) -> Leaf:
    def passes(value: Any) -> bool:
        at = None if isinstance(value, list) else parse_time(value)
        return at is None or at > now

    return _Within(key, now, passes, True)


def _not_superseded(key: str) -> Leaf:
    return Leaf(key, ("superseded",), lambda value: value in ("", False), True)


def still_valid(table: MetadataTable, fields: FieldMap, now: float, where: Filter | None) -> Filter | None:
    """The filter, ANDed with validity as far as any memory of the scope has the keys for it."""
    parts: list[Filter] = [] if where is None else [where]
    parts.extend(_within(key, now) for key in (fields.expires_at, fields.valid_to) if table.column(key) is not None)
    if table.column(fields.superseded_by) is not None:
        parts.append(_not_superseded(fields.superseded_by))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Node("$and", tuple(parts))


def is_valid(metadata: Mapping[str, Any], fields: FieldMap, now: float) -> bool:
    """Whether one memory is neither expired nor superseded."""
    return all(_within(key, now).matches(metadata) for key in (fields.expires_at, fields.valid_to)) and _not_superseded(
        fields.superseded_by
    ).matches(metadata)


def valid_filter(view: View, request: Request, profile: Profile) -> Filter | None:
    """The caller's filter, and, unless outdated memories are asked for, that a memory has neither expired nor been superseded."""
    if request.include_outdated or not profile.exclude_outdated:
        return request.where
    return still_valid(view.partition.metadata, profile.fields, request.now, request.where)
