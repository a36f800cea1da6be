"""Scopes and the filter language, with one meaning for every leg.

A filter is Chroma's `where`, evaluated here in the process: `{"key": value}`, `{"key": {"$op": operand}}`, several keys or
operators in one dict (all must hold), `$and`, `$or` and `$not` with any number of operands.

    $eq $ne $in $nin      exact type: True is not 1; 1 and 1.0 are equal, compared as real numbers
    $gt $gte $lt $lte     numbers; or times, where the operand is a datetime, a date or an ISO 8601 text
    $contains $not_contains      a list that holds the operand
    $any $all             a list (or a single value) that holds one of, or all of, the operands
    $text_match $text_match_insensitive     a text that contains the operand
    $is_empty             True: missing, "" or []

As in Chroma, `$ne`, `$nin` and `$not_contains` also hold where the key is missing; everything else does not.
An empty filter is no filter. There are no regular expressions, so no filter can stall a search.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.errors import FilterError, ScopeError
from memhybrid.indexes.metadata import MetadataTable
from memhybrid.times import parse_time, plain_scalar

Predicate = Callable[[Any], bool]
MAX_DEPTH = 32


@dataclass(frozen=True)
class Leaf:
    """One condition on one key. `absent` is its answer where the key is missing."""

    key: str
    identity: Any
    predicate: Predicate
    absent: bool

    def mask(self, table: MetadataTable, n: int) -> NDArray[np.bool_]:
        """Which of the rows 0..n satisfy it."""
        column = table.column(self.key)
        if column is None:
            return np.full(n, self.absent)
        return column.mask(n, self.identity, self.predicate, absent=self.absent)

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether one memory's metadata satisfies it."""
        return self.predicate(metadata[self.key]) if metadata.get(self.key) is not None else self.absent


@dataclass(frozen=True)
class Node:
    """`$and`, `$or` or `$not` (none of) over conditions; an empty `$and` holds, an empty `$or` does not."""

    op: str
    parts: tuple[Leaf | Node, ...]

    def mask(self, table: MetadataTable, n: int) -> NDArray[np.bool_]:
        """Which of the rows 0..n satisfy it."""
        out = np.full(n, self.op == "$and")
        for part in self.parts:
            if self.op == "$and":
                out &= part.mask(table, n)
            else:
                out |= part.mask(table, n)
        return ~out if self.op == "$not" else out

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether one memory's metadata satisfies it."""
        results = (part.matches(metadata) for part in self.parts)
        if self.op == "$and":
            return all(results)
        return not any(results) if self.op == "$not" else any(results)


Filter = Leaf | Node


def compile_filter(where: Mapping[str, Any] | None, *, name: str = "where") -> Filter | None:
    """The filter as a predicate, or None for no filter. FilterError says which part cannot be understood."""
    if where is None:
        return None
    return _compile(where, name, 0)


def _compile(where: Any, name: str, depth: int) -> Filter | None:
    if depth > MAX_DEPTH:
        raise FilterError(f"{name}: nested more than {MAX_DEPTH} deep")
    if not isinstance(where, Mapping):
        raise FilterError(f"{name}: expected a dict such as {{'type': 'fact'}}, got {type(where).__name__}")
    parts: list[Filter] = []
    for key, condition in where.items():
        if not isinstance(key, str):
            raise FilterError(f"{name}: keys are strings, got {_shown(key)}")
        if key in ("$and", "$or", "$not"):
            node = _group(key, condition, name, depth)
            if node is not None:
                parts.append(node)
        elif key.startswith("$"):
            raise FilterError(
                f"{name}: unknown operator {_shown(key)} at the top; use $and, $or, $not or a metadata key"
            )
        else:
            parts.extend(_conditions(key, condition, name))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Node("$and", tuple(parts))


def _group(op: str, operands: Any, name: str, depth: int) -> Filter | None:
    if isinstance(operands, Mapping) and op == "$not":
        operands = [operands]
    if not isinstance(operands, Sequence) or isinstance(operands, _NO_LIST):
        raise FilterError(f"{name}: {op} takes a list of conditions, got {type(operands).__name__}")
    compiled = [_compile(operand, name, depth + 1) for operand in operands]
    if op == "$and":
        kept = tuple(part for part in compiled if part is not None)
        return Node("$and", kept) if kept else None
    if not compiled:
        return None
    # An operand without conditions holds for everything.
    parts = tuple(Node("$and", ()) if part is None else part for part in compiled)
    return Node(op, parts)


def _conditions(key: str, condition: Any, name: str) -> list[Filter]:
    if not isinstance(condition, Mapping):
        return [_leaf(key, "$eq", condition, name)]
    if not condition:
        raise FilterError(
            f"{name}: {_shown(key)} has an empty condition; give a value or an operator such as {{'$gte': 1}}"
        )
    out: list[Filter] = []
    for op, operand in condition.items():
        if not isinstance(op, str) or not op.startswith("$"):
            raise FilterError(f"{name}: {_shown(key)} has the key {_shown(op)} where an operator such as $eq belongs")
        out.append(_leaf(key, op, operand, name))
    return out


def _plain(value: Any, where: str) -> Any:
    """A scalar operand as a plain Python value; datetimes and dates stay."""
    value = plain_scalar(value)
    if isinstance(value, datetime | date | bool | int | str):
        return value
    if isinstance(value, float):
        if not np.isfinite(value):
            raise FilterError(f"{where}: {value!r} cannot be compared with anything")
        return value
    hint = "; $is_empty asks whether there is one" if value is None else ""
    raise FilterError(f"{where}: {type(value).__name__} is not a value that metadata can have ({_shown(value)}){hint}")


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 100


def _shown(value: Any) -> str:
    """A value for an error message: cut short, whatever it is."""
    try:
        return _REPR.repr(value)
    except Exception:  # noqa: BLE001 - of a huge int, or an object with a repr that fails
        return f"<{type(value).__name__}>"


def _leaf(key: str, op: str, operand: Any, name: str) -> Leaf:
    where = f"{name}: {_shown(key)} {op[:100]}"
    if op in ("$eq", "$ne"):
        value = _plain(operand, where)
        equal = _equal_to(value)
        return _make(key, op, value, equal if op == "$eq" else _negate(equal), absent=op == "$ne")
    if op in ("$in", "$nin"):
        values = _list(operand, where)
        inside = _Operands(values).has
        return _make(key, op, values, inside if op == "$in" else _negate(inside), absent=op == "$nin")
    if op in _COMPARE:
        value = _plain(operand, where)
        return _make(key, op, value, _comparison(op, value, where), absent=False)
    if op in ("$contains", "$not_contains"):
        value = _plain(operand, where)
        holds = _holds(_equal_to(value))
        return _make(key, op, value, holds if op == "$contains" else _negate(holds), absent=op == "$not_contains")
    if op in ("$any", "$all"):
        values = _list(operand, where)
        wanted = _Operands(values)
        return _make(key, op, values, wanted.any_held if op == "$any" else wanted.all_held, absent=False)
    if op in ("$text_match", "$text_match_insensitive"):
        if not isinstance(operand, str):
            raise FilterError(f"{where} takes a text, got {type(operand).__name__}")
        return _make(key, op, operand, _text_match(operand, fold=op.endswith("insensitive")), absent=False)
    if op == "$is_empty":
        if not isinstance(operand, bool):
            raise FilterError(f"{where} takes True or False, got {_shown(operand)}")
        empty: Predicate = _is_empty if operand else _negate(_is_empty)
        return _make(key, op, operand, empty, absent=operand)
    raise FilterError(
        f"{where} is not an operator; known: $eq $ne $gt $gte $lt $lte $in $nin $contains $not_contains $any $all "
        "$text_match $text_match_insensitive $is_empty"
    )


def _make(key: str, op: str, operand: Any, predicate: Predicate, *, absent: bool) -> Leaf:
    typed = tuple((type(v), v) for v in operand) if isinstance(operand, list) else (type(operand), operand)
    return Leaf(key, (op, typed), predicate, absent)


_NO_LIST = (str, bytes, bytearray, memoryview)


def _list(operand: Any, where: str) -> list[Any]:
    many = isinstance(operand, Sequence | set | frozenset) or (isinstance(operand, np.ndarray) and operand.ndim > 0)
    if not many or isinstance(operand, _NO_LIST):
        raise FilterError(f"{where} takes a list, got {type(operand).__name__}")
    return [_plain(item, where) for item in operand]


def _equal_to(operand: Any) -> Predicate:
    if isinstance(operand, datetime | date):
        moment = parse_time(operand)
        return lambda value: not isinstance(value, list) and parse_time(value) == moment
    if isinstance(operand, bool):
        return lambda value: value is operand
    if isinstance(operand, int | float):
        # Python compares ints with floats exactly; Chroma does not.
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value == operand
    return lambda value: isinstance(value, str) and value == operand


class _Operands:
    """Several operands, of which a value is one: looked up instead of compared one by one, since lists of ids may be long."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.truths = frozenset(v for v in values if isinstance(v, bool))
        # Python hashes and compares ints and floats exactly, as one kind.
        self.numbers = frozenset(v for v in values if isinstance(v, int | float) and not isinstance(v, bool))
        self.texts = frozenset(v for v in values if isinstance(v, str))
        self.moments = frozenset(parse_time(v) for v in values if isinstance(v, datetime | date))

    def has(self, value: Any) -> bool:
        """Whether a value that is no list is among them."""
        if isinstance(value, bool):
            return value in self.truths
        if isinstance(value, list):
            return False
        if value in (self.texts if isinstance(value, str) else self.numbers):
            return True
        return bool(self.moments) and parse_time(value) in self.moments

    def any_held(self, value: Any) -> bool:
        """Whether a list has one of them, or a single value is one."""
        return any(map(self.has, value)) if isinstance(value, list) else self.has(value)

    def all_held(self, value: Any) -> bool:
        """Whether a list has all of them, or a single value is all of them."""
        values: list[Any] = value if isinstance(value, list) else [value]
        there = _Operands(values)
        return (
            self.truths <= there.truths
            and self.numbers <= there.numbers
            and self.texts <= there.texts
            and (not self.moments or self.moments <= {parse_time(v) for v in values})
        )


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda a, b: a > b,
    "$gte": lambda a, b: a >= b,
    "$lt": lambda a, b: a < b,
    "$lte": lambda a, b: a <= b,
}


def _comparison(op: str, operand: Any, where: str) -> Predicate:
    compare = _COMPARE[op]
    if isinstance(operand, bool):
        raise FilterError(f"{where} takes a number or a time, got {operand!r}")
    if isinstance(operand, int | float):
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and compare(value, operand)
    moment = parse_time(operand)
    if moment is None:
        raise FilterError(f"{where} takes a number, a datetime, a date or an ISO 8601 text, got {_shown(operand)}")

    def by_time(value: Any) -> bool:
        at = None if isinstance(value, list) else parse_time(value)
        return at is not None and compare(at, moment)

    return by_time


def _negate(predicate: Predicate) -> Predicate:
    return lambda value: not predicate(value)


def _holds(equal: Predicate) -> Predicate:
    return lambda value: isinstance(value, list) and any(equal(item) for item in value)


def _text_match(operand: str, *, fold: bool) -> Predicate:
    if fold:
        folded = operand.casefold()
        return lambda value: isinstance(value, str) and folded in value.casefold()
    return lambda value: isinstance(value, str) and operand in value


def _is_empty(value: Any) -> bool:
    return value in ("", [])


@dataclass(frozen=True)
class Scopes:
    """The scope keys of a store, and the only place where metadata becomes a tenant's partition key.

    A partition key is JSON text, so that "1", 1 and True stay apart. A store without scope keys has the one partition "[]".
    """

    keys: tuple[str, ...]

    @classmethod
    def of(cls, scope_key: str | Sequence[str] | None) -> Scopes:
        """From what the user gives: None, one name, or several."""
        if scope_key is None:
            return cls(())
        keys: tuple[Any, ...] = ()
        if isinstance(scope_key, str):
            keys = (scope_key,)
        elif isinstance(scope_key, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            keys = tuple(scope_key)
        if not all(isinstance(k, str) and is_tenant(k) and not k.startswith("$") for k in keys) or not 0 < len(
            keys
        ) == len(set(keys)):
            raise ScopeError(f"scope_key: expected one name or several different names, got {scope_key!r}")
        return cls(keys)

    def of_metadata(self, metadata: Mapping[str, Any]) -> str | None:
        """The partition of a memory, or None where its metadata lacks a scope key or has a value that cannot be one."""
        values: list[Any] = []
        for key in self.keys:
            value = metadata.get(key)
            if not is_tenant(value):
                return None
            values.append(value)
        return self._dump(values)

    def resolve(self, scope: Mapping[str, Any] | None, where: Mapping[str, Any] | None = None) -> str:
        """The partition that a call is about, from its bound scope or from plain equalities in its filter.

        A bound scope wins and the filter is ANDed afterwards, so that it can only narrow. Anything missing raises.
        """
        if where is not None and not isinstance(where, Mapping):
            raise FilterError(f"where: expected a dict such as {{'type': 'fact'}}, got {type(where).__name__}")
        values: list[Any] = []
        for key in self.keys:
            value = scope.get(key) if scope else None
            if value is None and where is not None:
                value = _equality(where, key)
            if value is None:
                named = ", ".join(repr(k) for k in self.keys)
                raise ScopeError(
                    f"this store keeps tenants apart by {named}: give a value for {key!r}, as in "
                    f"memory.scoped({key}=…).search(…) or where={{{key!r}: …}}"
                )
            if isinstance(value, np.generic):
                value = value.item()
            if not is_tenant(value):
                raise ScopeError(f"scope {key!r}: expected a non-empty string or an int, got {_shown(value)}")
            values.append(value)
        return self._dump(values)

    def as_dict(self, partition: str) -> dict[str, Any]:
        """The scope of a partition key as a dict."""
        return dict(zip(self.keys, json.loads(partition), strict=True))

    @staticmethod
    def _dump(values: list[Any]) -> str:
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def is_tenant(value: Any) -> bool:
    """Whether a value can name a tenant: an int of 64 bits, or a text that is neither empty nor beyond Unicode."""
    if isinstance(value, str):
        return value != "" and not any("\ud800" <= c <= "\udfff" for c in value)
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _equality(where: Mapping[str, Any], key: str, depth: int = 0) -> Any:
    """The value that a filter demands for a key at its top level or inside top-level $and; None if it demands none."""
    found = where.get(key)
    if isinstance(found, Mapping):
        found = found.get("$eq")
    if found is None and depth < MAX_DEPTH:
        operands = where.get("$and")
        if isinstance(operands, Sequence) and not isinstance(operands, _NO_LIST):
            for operand in operands:
                if isinstance(operand, Mapping):
                    found = _equality(operand, key, depth + 1)
                    if found is not None:
                        break
    return found
