"""Random and mutated filters on random metadata, against a definition that shares nothing with ours, and Chroma's get."""

from __future__ import annotations

import calendar
import importlib
import itertools
import random
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from memhybrid import FilterError, ScopeError
from memhybrid.indexes.metadata import MetadataTable
from memhybrid.scope import MAX_DEPTH, Scopes, compile_filter
from tests.faults.fuzzing.common import Report, Wrong

LONGEST_S = 1.0
KEYS = ["a", "b", "c", "é", "a.b", "id", "$a"[1:], "x y"]
MOMENT = 1_724_155_200  # 2024-08-20T12:00:00Z
TIMES = {
    "2024-08-20T12:00:00Z": MOMENT,
    "2024-08-20T12:00:00+00:00": MOMENT,
    "2024-08-20T05:00:00-07:00": MOMENT,
    "2024-08-20 12:00:00": MOMENT,
    "20240820T120000Z": MOMENT,
    "2024-08-20T12:00:00.5Z": MOMENT + 0.5,
    "2024-08-20": MOMENT - 43_200,
    "1969-12-31T23:59:59Z": -1,
    "0001-01-01": -62_135_596_800,
    "9999-12-31T23:59:59Z": 253_402_300_799,
}
TEXTS = [
    "",
    "x",
    "xy",
    "X",
    "1",
    "True",
    "é",
    "e\u0301",
    "猫",
    "a'b",
    "50%",
    "a_b",
    "ß",
    "SS",
    "\x00",
    "İ",
    "$eq",
    "12:00",
]
PATTERNS = ["(a+)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){25}", "[", "(?R)", "a" * 30 + "!", ".*.*.*.*="]
NUMBERS = [0, 1, -1, 2, 2.5, -2.5, 0.0, -0.0, 0.1, 1e300, 5e-324, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63)]


# --- what a filter means ---------------------------------------------------------------------------------------------


class Unknown(Exception):  # noqa: N818 - it is an answer
    """The documentation gives no meaning to this filter."""


def plain(value: Any) -> Any:
    """A documented operand: a bool, an int, a finite float, a text, or a datetime or date."""
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            raise Unknown
        value = value.astype("datetime64[us]").item()
    elif isinstance(value, np.bool_ | np.integer | np.floating | np.str_) and not isinstance(value, np.timedelta64):
        value = value.item()
    if isinstance(value, bool | int | str | date):
        return value
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return value
    raise Unknown


def is_number(value: Any) -> bool:
    """An int or float that is no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def moment(value: Any) -> Fraction | None:
    """The time that a stored value or an operand is, None for what is none."""
    if isinstance(value, datetime):
        offset = value.utcoffset() or timedelta(0)
        return (
            calendar.timegm(value.timetuple()) - Fraction(offset.total_seconds()) + Fraction(value.microsecond, 10**6)
        )
    if isinstance(value, date):
        return Fraction(calendar.timegm(value.timetuple()))
    if isinstance(value, str):
        known = TIMES.get(value.strip())
        return None if known is None else Fraction(known)
    if not is_number(value):
        return None
    seconds = Fraction(value)
    if abs(seconds) >= 10**11:
        seconds /= 1000
    return seconds if abs(seconds) < 10**11 else None


def equal(value: Any, operand: Any) -> bool:
    """Whether a stored scalar is the operand."""
    if isinstance(value, list):
        return False
    if isinstance(operand, date):
        at = moment(value)
        # To the precision of a float, in which times are compared.
        return at is not None and float(at) == float(moment(operand) or 0)
    if is_number(value) and is_number(operand):
        return Fraction(value) == Fraction(operand)
    return isinstance(value, bool) == isinstance(operand, bool) and type(value) is type(operand) and value == operand


def condition(value: Any, op: str, operand: Any) -> bool:
    """One operator on a stored value, None where the key is missing."""
    there = value is not None
    members = value if isinstance(value, list) else [value]
    if op in ("$eq", "$ne"):
        operand = plain(operand)
        return (there and not isinstance(value, list) and equal(value, operand)) is (op == "$eq")
    if op in ("$in", "$nin", "$any", "$all"):
        if isinstance(operand, str | bytes | bytearray | Mapping) or not isinstance(
            operand, Sequence | set | frozenset | np.ndarray
        ):
            raise Unknown
        if isinstance(operand, np.ndarray) and operand.ndim == 0:
            raise Unknown
        items = [plain(item) for item in operand]
        if op == "$all":
            return there and all(any(equal(m, item) for m in members) for item in items)
        if op == "$any":
            return there and any(equal(m, item) for m in members for item in items)
        return (there and not isinstance(value, list) and any(equal(value, item) for item in items)) is (op == "$in")
    if op in ("$contains", "$not_contains"):
        operand = plain(operand)
        return (isinstance(value, list) and any(equal(item, operand) for item in value)) is (op == "$contains")
    if op in ("$gt", "$gte", "$lt", "$lte"):
        operand = plain(operand)
        if isinstance(operand, bool):
            raise Unknown
        one: Any
        other: Any
        if is_number(operand):
            if not is_number(value):
                return False
            one, other = Fraction(value), Fraction(operand)
        else:
            right, left = moment(operand), moment(value)
            if right is None:
                raise Unknown
            if left is None:
                return False
            one, other = float(left), float(right)
        return {"$gt": one > other, "$gte": one >= other, "$lt": one < other, "$lte": one <= other}[op]
    if op in ("$text_match", "$text_match_insensitive"):
        if not isinstance(operand, str):
            raise Unknown
        if op == "$text_match":
            return isinstance(value, str) and operand in value
        return isinstance(value, str) and operand.casefold() in value.casefold()
    if op == "$is_empty":
        if not isinstance(operand, bool):
            raise Unknown
        return (not there or value in ("", [])) is operand
    raise Unknown


def oracle(metadata: Mapping[str, Any], where: Any) -> bool:
    """A filter on one memory, None being none; Unknown where the filter has no meaning."""
    return where is None or _holds(metadata, where)


def _holds(metadata: Mapping[str, Any], where: Any) -> bool:
    if not isinstance(where, Mapping):
        raise Unknown
    results: list[bool] = []
    for key, operand in where.items():
        if not isinstance(key, str):
            raise Unknown
        if key in ("$and", "$or", "$not"):
            parts = [operand] if key == "$not" and isinstance(operand, Mapping) else operand
            if isinstance(parts, str | bytes | bytearray) or not isinstance(parts, Sequence):
                raise Unknown
            answers = [_holds(metadata, part) for part in parts]
            if answers:
                results.append(all(answers) if key == "$and" else any(answers) is (key == "$or"))
        elif key.startswith("$"):
            raise Unknown
        elif isinstance(operand, Mapping):
            if not operand or not all(isinstance(op, str) for op in operand):
                raise Unknown
            # Every operator is looked at: a filter has a meaning or not, whatever the memory is.
            results.extend([condition(metadata.get(key), op, value) for op, value in operand.items()])
        else:
            results.append(condition(metadata.get(key), "$eq", operand))
    return all(results)


def depth_of(where: Any) -> int:
    """How deep groups nest, without recursion."""
    deepest, todo, seen = 0, [(where, 0)], 0
    while todo and seen < 100_000:
        value, depth = todo.pop()
        deepest, seen = max(deepest, depth), seen + 1
        if isinstance(value, Mapping):
            for key, part in value.items():
                if key in ("$and", "$or", "$not") and isinstance(part, Mapping | list | tuple):
                    todo.extend((p, depth + 1) for p in ([part] if isinstance(part, Mapping) else part))
    return deepest


# --- random filters --------------------------------------------------------------------------------------------------


def text(chance: random.Random) -> str:
    """A text that is no time, unless it is one of those whose meaning is known."""
    kind = chance.random()
    if kind < 0.6:
        return chance.choice(TEXTS)
    if kind < 0.75:
        return chance.choice(list(TIMES))
    if kind < 0.85:
        return chance.choice(PATTERNS)
    return "".join(
        chr(chance.choice([*range(97, 123), 0x4E2D, 0x1F600, 0xE9, 32])) for _ in range(chance.randint(1, 8))
    )


def number(chance: random.Random) -> int | float:
    """A number that metadata can have."""
    kind = chance.random()
    if kind < 0.5:
        return chance.choice(NUMBERS)
    if kind < 0.7:
        return chance.randint(-3, 3)
    if kind < 0.85:
        return chance.choice([MOMENT, float(MOMENT), MOMENT * 1000, MOMENT + 0.5, MOMENT - 43_200])
    return chance.choice([chance.randint(-(2**63), 2**63 - 1), chance.gauss(0, 1), chance.uniform(-1e300, 1e300)])


def scalar(chance: random.Random) -> Any:
    """A scalar that metadata can have."""
    return chance.choice([text, number, lambda c: c.random() < 0.5])(chance)


def stored(chance: random.Random) -> Any:
    """A value as the indexes hold it."""
    if chance.random() < 0.75:
        return scalar(chance)
    make = chance.choice(
        [text, lambda c: c.randint(-3, 3), lambda c: c.choice([0.5, 1.0, -0.0]), lambda c: c.random() < 0.5]
    )
    return [make(chance) for _ in range(chance.randint(1, 3))]


def a_time(chance: random.Random) -> Any:
    """A datetime, a date, or a text for one."""
    base = datetime(2024, 8, 20, 12)  # noqa: DTZ001 - naive means UTC
    zone = timezone(timedelta(minutes=chance.choice([0, 540, -420, 330, 1439])))
    return chance.choice(
        [
            base,
            base.replace(tzinfo=timezone.utc),
            base.replace(tzinfo=timezone.utc).astimezone(zone),
            base.replace(microsecond=500_000),
            base.date(),
            datetime.min,  # noqa: DTZ901
            datetime.max.replace(microsecond=0),  # noqa: DTZ901
            datetime.min.replace(tzinfo=zone),
            datetime.max.replace(tzinfo=zone, microsecond=0),
            np.datetime64("2024-08-20T12:00:00"),
            np.datetime64("2024-08-20T12:00:00", "ns"),
            chance.choice(list(TIMES)),
        ]
    )


def operand_of(chance: random.Random, op: str) -> Any:
    """An operand that the operator takes."""
    if op in ("$gt", "$gte", "$lt", "$lte"):
        return chance.choice([number, a_time])(chance)
    if op in ("$in", "$nin", "$any", "$all"):
        size = chance.choice([0, 1, 2, 3, 3, 50]) if chance.random() < 0.997 else 20_000
        items = [a_time(chance) if chance.random() < 0.1 else scalar(chance) for _ in range(min(size, 60))]
        items += [chance.randint(-10_000, 10_000) for _ in range(size - len(items))]
        return items if chance.random() < 0.8 else tuple(items)
    if op.startswith("$text"):
        return text(chance)
    if op == "$is_empty":
        return chance.random() < 0.5
    value = scalar(chance) if chance.random() < 0.85 else a_time(chance)
    if chance.random() < 0.1 and is_number(value) and abs(value) < 2**53:
        return chance.choice([np.float64, np.int64, np.float32])(value)
    return value


OPERATORS = [
    "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains", "$not_contains", "$any", "$all", "$text_match",
    "$text_match_insensitive", "$is_empty",
]  # fmt: skip


def a_filter(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    """A documented filter."""
    where: dict[str, Any] = {}
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        if depth < 5 and chance.random() < 0.35:
            parts = [a_filter(chance, depth + 1) for _ in range(chance.choice([0, 1, 2, 2, 3]))]
            op = chance.choice(["$and", "$or", "$not"])
            where[op] = parts[0] if parts and op == "$not" and chance.random() < 0.3 else parts
        elif chance.random() < 0.2:
            where[chance.choice(KEYS)] = scalar(chance)
        else:
            ops = chance.sample(OPERATORS, chance.choice([1, 1, 1, 2]))
            where[chance.choice(KEYS)] = {op: operand_of(chance, op) for op in ops}
    if depth == 0 and chance.random() < 0.05:
        for _ in range(chance.choice([5, 26, 33, 200, 5_000])):
            where = {chance.choice(["$and", "$or", "$not"]): [where]}
    return where


def garbage(chance: random.Random) -> Any:
    """What no filter is made of."""
    nested: Any = []
    for _ in range(chance.choice([3, 3_000])):
        nested = [nested]
    return chance.choice(
        [
            None, float("nan"), float("inf"), object(), b"abc", bytearray(b"x"), Decimal("1.5"), Fraction(1, 3), 1 + 2j, {}, [],
            [[]], {"$eq": 1}, {"$regex": "(a+)+$"}, {"a": 1}, {1: 2}, {"$and": None}, {"$in": "abc"}, {"$in": b"abc"}, 10**400,
            -(10**5_000), "\ud800", "\x00", np.array(5), np.array([1, 2]), np.array([[1]]), np.array(["x"]), np.float64("nan"),
            np.bool_(True), np.str_("x"), np.timedelta64(5, "ns"), np.datetime64("NaT"), np.complex128(1), timedelta(1), range(3),
            {1, "x"}, frozenset(), ("$and",), "$and", "$where", lambda: None, int, nested, Ellipsis, np.void(b"x"), "2024-13-45",
            "99999999", "2024-08-20" + "0" * 5_000, " " * 5_000, True, [True, 1, 1.0], [None], [float("nan")], [{"a": 1}],
        ]
    )  # fmt: skip


def mutate(chance: random.Random, where: Any) -> Any:
    """The filter with one place replaced, removed, renamed or wrapped."""
    if not isinstance(where, dict | list) or not where or chance.random() < 0.2:
        return chance.choice([garbage, garbage, lambda c: [where], lambda c: {c.choice(OPERATORS): where}, a_filter])(
            chance
        )
    if isinstance(where, list):
        made = list(where)
        at = chance.randrange(len(made))
        made[at] = mutate(chance, made[at])
        return made
    out = dict(where)
    key = chance.choice(list(out))
    kind = chance.random()
    if kind < 0.15:
        new = chance.choice(
            [*OPERATORS, *KEYS, "$and", "$or", "$not", "$nor", "$where", "", "$", 1, None, ("a",), b"a"]
        )
        out[new] = out.pop(key)
    elif kind < 0.2:
        del out[key]
    else:
        out[key] = mutate(chance, out[key])
    return out


def has_unknown_time(value: Any) -> bool:
    """Whether a text is in it that may be a time of which the oracle knows nothing."""
    todo, seen = [value], 0
    while todo and seen < 100_000:
        one, seen = todo.pop(), seen + 1
        if isinstance(one, Mapping):
            todo.extend(one.values())
        elif isinstance(one, list | tuple | set | frozenset):
            todo.extend(one)
        elif isinstance(one, str) and one.strip()[:1].isdigit() and len(one) >= 8 and one.strip() not in TIMES:
            return True
    return False


# --- the target ------------------------------------------------------------------------------------------------------


class Filters:
    """Our masks and matches against the oracle; every twentieth time also against Chroma, every fifth through LlamaIndex."""

    def __init__(self) -> None:
        import chromadb

        for module in ("llamaindex_memhybrid._filters", "tests.core.test_filters"):
            importlib.import_module(module)  # now, so that no execution pays for it
        self._client = chromadb.EphemeralClient()
        self._names = itertools.count()

    def run(self, chance: random.Random, report: Report) -> None:
        """One filter on one to ten memories."""
        rows = [
            {k: stored(chance) for k in chance.sample(KEYS, chance.randint(0, 4))} for _ in range(chance.randint(1, 10))
        ]
        kind = chance.random()
        if kind < 0.02:
            self._against_chroma(chance, report)
            return
        where: Any = a_filter(chance)
        if kind > 0.5:
            for _ in range(chance.choice([1, 1, 2, 5])):
                where = mutate(chance, where)
        start = time.process_time()
        self._compare(rows, where, report)
        self._scopes(where)
        if kind < 0.25:
            self._through_llamaindex(chance, rows, report)
        took = time.process_time() - start
        report.timed(took, "a filter")
        if took > LONGEST_S:
            raise Wrong(f"slow\n{took:.1f} s for {shown(where)}")

    def _compare(self, rows: list[dict[str, Any]], where: Any, report: Report) -> None:
        try:
            ours = compile_filter(where)
        except FilterError as error:
            report.counts["refused"] += 1
            if not str(error).startswith("where") or len(str(error)) > 2_000:
                raise Wrong(f"message\n{str(error)[:300]}") from error
            if depth_of(where) > MAX_DEPTH or has_unknown_time(where):
                return
            try:
                [oracle(row, where) for row in rows]
            except (Unknown, RecursionError):
                return
            raise Wrong(f"refused\n{error} for {shown(where)}") from error
        if has_unknown_time(where):
            report.counts["unknown times"] += 1
            return
        try:
            expected = [oracle(row, where) for row in rows]
        except Unknown as error:
            raise Wrong(f"taken without a meaning\n{shown(where)}") from error
        report.counts["understood"] += 1
        table = MetadataTable()
        for i, row in enumerate(rows):
            table.append(i, [row])
        mask = [True] * len(rows) if ours is None else ours.mask(table, len(rows)).tolist()
        again = [True] * len(rows) if ours is None else ours.mask(table, len(rows)).tolist()
        if mask != expected or again != expected:
            raise Wrong(f"mask\n{shown(where)} on {shown(rows)}: {mask}, expected {expected}")
        if ours is not None and [ours.matches(row) for row in rows] != expected:
            raise Wrong(f"matches\n{shown(where)} on {shown(rows)}: expected {expected}")

    @staticmethod
    def _scopes(where: Any) -> None:
        """A scope is a plain equality or an error of ours, whatever the filter is."""
        try:
            Scopes(("a", "b")).resolve(None, where)
        except (FilterError, ScopeError) as error:
            if len(str(error)) > 2_000:
                raise Wrong(f"message\n{str(error)[:300]}") from error

    def _through_llamaindex(self, chance: random.Random, rows: list[dict[str, Any]], report: Report) -> None:
        from llama_index.core.vector_stores.types import MetadataFilters

        from llamaindex_memhybrid._filters import to_where

        where = self._for_llamaindex(chance, 0)
        filters: MetadataFilters = self._as_llamaindex(where)
        translated = to_where(filters)
        expected = [oracle(row, where) for row in rows]
        ours = compile_filter(translated)
        got = [True] * len(rows) if ours is None else [ours.matches(row) for row in rows]
        report.counts["through LlamaIndex"] += 1
        if got != expected:
            raise Wrong(
                f"LlamaIndex\n{shown(where)} became {shown(translated)} on {shown(rows)}: {got}, expected {expected}"
            )

    def _for_llamaindex(self, chance: random.Random, depth: int) -> dict[str, Any]:
        def leaf() -> dict[str, Any]:
            op = chance.choice([o for o in OPERATORS if o != "$not_contains"])
            if op == "$is_empty":
                value: Any = True
            elif op.startswith("$text"):
                value = text(chance)
            elif op in ("$in", "$nin", "$any", "$all"):
                make = chance.choice([text, lambda c: c.randint(-3, 3)])
                value = [make(chance) for _ in range(chance.randint(0, 3))]
            elif op in ("$gt", "$gte", "$lt", "$lte"):
                value = chance.choice([number, lambda c: c.choice(list(TIMES))])(chance)
            else:
                value = chance.choice([text, number])(chance)
            return {chance.choice(KEYS): {op: value}}

        parts = [
            self._for_llamaindex(chance, depth + 1) if depth < 3 and chance.random() < 0.3 else leaf()
            for _ in range(chance.randint(1, 3))
        ]
        return {chance.choice(["$and", "$or", "$not"]): parts}

    def _as_llamaindex(self, where: dict[str, Any]) -> Any:
        from llama_index.core.vector_stores.types import (
            FilterCondition,
            FilterOperator,
            MetadataFilter,
            MetadataFilters,
        )

        names = {"$eq": "==", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
        ((group, parts),) = where.items()
        filters: list[Any] = []
        for part in parts:
            ((key, inner),) = part.items()
            if key.startswith("$"):
                filters.append(self._as_llamaindex(part))
                continue
            ((op, value),) = inner.items()
            operator = FilterOperator(names.get(op, op[1:]))
            filters.append(MetadataFilter(key=key, value=None if op == "$is_empty" else value, operator=operator))
        return MetadataFilters(filters=filters, condition=FilterCondition(group[1:]))

    def _against_chroma(self, chance: random.Random, report: Report) -> None:
        """Filters that Chroma takes, where it is not known to be wrong."""
        from tests.core.test_filters import chroma_is_known_to_be_wrong

        texts = [t for t in TEXTS if t != "\x00"]
        make = chance.choice(
            [lambda: chance.choice(texts), lambda: chance.randint(-3, 3), lambda: chance.random() < 0.5]
        )

        def value() -> Any:
            return make() if chance.random() < 0.7 else [make() for _ in range(chance.randint(1, 3))]

        def leaf() -> dict[str, Any]:
            op = chance.choice(
                ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains", "$not_contains"]
            )
            operand: Any = chance.randint(-3, 3) if op in ("$gt", "$gte", "$lt", "$lte") else make()
            return {
                chance.choice("abc"): {op: [make() for _ in range(chance.randint(1, 3))] if "in" in op[:4] else operand}
            }

        def tree(depth: int) -> dict[str, Any]:
            if depth > 3 or chance.random() < 0.5:
                return leaf()
            return {chance.choice(["$and", "$or"]): [tree(depth + 1) for _ in range(chance.randint(2, 3))]}

        rows = [{k: value() for k in chance.sample("abc", chance.randint(0, 3))} for _ in range(chance.randint(1, 10))]
        wheres = [tree(0) for _ in range(10)]
        ids = [str(i) for i in range(len(rows))]
        collection = self._client.create_collection(f"fuzz-{next(self._names)}", embedding_function=None)
        collection.add(ids=ids, metadatas=[row or None for row in rows], embeddings=np.eye(len(rows), 10).tolist())
        try:
            for where in wheres:
                if chroma_is_known_to_be_wrong(rows, where):
                    continue
                self._compare(rows, where, report)
                got = sorted(int(i) for i in collection.get(where=where)["ids"])
                report.counts["against Chroma"] += 1
                if got != [i for i, row in enumerate(rows) if oracle(row, where)]:
                    raise Wrong(f"Chroma\n{where!r} on {rows!r}: Chroma finds {got}")
        finally:
            collection.delete(ids=ids)
            self._client.delete_collection(collection.name)

    def close(self) -> None:
        """Nothing."""


def shown(value: Any) -> str:
    """A repr, or why there is none."""
    try:
        return repr(value)[:1_500]
    except (RecursionError, ValueError) as error:
        return f"<{type(value).__name__} of depth {depth_of(value)}: {error}>"
