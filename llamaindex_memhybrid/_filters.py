"""LlamaIndex's metadata filters as the core's filter language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from memhybrid.errors import FilterError
from memhybrid.scope import compile_filter

Filters = MetadataFilters | Mapping[str, Any]

_OPERATORS = {
    FilterOperator.EQ: "$eq",
    FilterOperator.NE: "$ne",
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
    FilterOperator.IN: "$in",
    FilterOperator.NIN: "$nin",
    FilterOperator.ANY: "$any",
    FilterOperator.ALL: "$all",
    FilterOperator.CONTAINS: "$contains",
    FilterOperator.TEXT_MATCH: "$text_match",
    FilterOperator.TEXT_MATCH_INSENSITIVE: "$text_match_insensitive",
    FilterOperator.IS_EMPTY: "$is_empty",
}
_CONDITIONS = {FilterCondition.AND: "$and", FilterCondition.OR: "$or", FilterCondition.NOT: "$not"}


def to_where(filters: Any) -> dict[str, Any] | None:
    """MetadataFilters or a dict as the core's `where`; None for no filter.

    A dict is taken as the core's filter language already. What cannot be translated is a FilterError that names the operator;
    nothing is ever left out. `and`, `or` and `not` (none of the filters holds) nest to any depth that the core takes.
    """
    if filters is None:
        return None
    where: dict[str, Any]
    if isinstance(filters, MetadataFilters):
        where = _group(filters)
    elif isinstance(filters, Mapping):
        where = dict(filters)
    else:
        raise FilterError(f"filters: expected MetadataFilters or a dict, got {type(filters).__name__}")
    return where if compile_filter(where, name="filters") is not None else None


def all_of(*parts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Filters that must all hold; None where there is none."""
    given = [dict(part) for part in parts if part is not None]
    if len(given) < 2:
        return given[0] if given else None
    return {"$and": given}


def _group(filters: MetadataFilters) -> dict[str, Any]:
    parts = [_group(part) if isinstance(part, MetadataFilters) else _leaf(part) for part in filters.filters]
    if not parts:
        return {}
    condition = FilterCondition.AND if filters.condition is None else filters.condition
    if condition not in _CONDITIONS:
        raise FilterError(f"filters: the condition {condition!r} is not known; use and, or, not")
    return {_CONDITIONS[condition]: parts}


def _leaf(condition: MetadataFilter) -> dict[str, Any]:
    operator = condition.operator
    name = getattr(operator, "value", operator)
    if operator not in _OPERATORS:
        raise FilterError(f"filters: {condition.key!r} has the operator {name!r}, which cannot be translated")
    # `is_empty` has no operand in LlamaIndex.
    operand: Any = True if operator is FilterOperator.IS_EMPTY else condition.value
    leaf = {condition.key: {_OPERATORS[operator]: operand}}
    if operand is None:
        raise FilterError(f"filters: {condition.key!r} {name} None holds for nothing; use the operator is_empty")
    try:
        compile_filter(leaf)
    except FilterError as error:
        raise FilterError(f"filters: {condition.key!r} {name} {operand!r} cannot be translated ({error})") from error
    return leaf
