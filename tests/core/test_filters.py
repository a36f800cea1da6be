"""The filter language against Chroma's `where` and against a plain definition of every operator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import chromadb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memhybrid import FilterError, HybridMemory, InputError, Memory
from memhybrid.indexes.metadata import MetadataTable
from memhybrid.scope import MAX_DEPTH, compile_filter
from tests.conftest import make_memory

KEYS = ["a", "b", "c"]
numbers = st.one_of(st.integers(-3, 3), st.sampled_from([-2.5, 0.0, 0.5, 1.0, 2.0, 2.5, 1e300, 2**53 + 1, 2**62 + 1]))
texts = st.sampled_from(["", "x", "y", "xy", "X", "1", "True", "é", "猫", "a'b", 'a"b', "50%", "a_b"])
scalars = st.one_of(numbers, texts, st.booleans())
lists = st.one_of(
    st.lists(st.integers(-3, 3), min_size=1, max_size=3),
    st.lists(st.sampled_from(["x", "y", "xy"]), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=1, max_size=2),
)
metadatas = st.dictionaries(st.sampled_from(KEYS), st.one_of(scalars, lists), max_size=3)
keys = st.sampled_from([*KEYS, "absent"])


def of_one_type(values: list[Any]) -> list[Any]:
    """Chroma takes lists of one type only."""
    return [v for v in values if type(v) is type(values[0])]


in_lists = st.lists(scalars, min_size=1, max_size=3).map(of_one_type)
chroma_leaves = st.one_of(
    st.builds(lambda k, op, v: {k: {op: v}}, keys, st.sampled_from(["$eq", "$ne"]), scalars),
    st.builds(lambda k, v: {k: v}, keys, scalars),
    st.builds(lambda k, op, v: {k: {op: v}}, keys, st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), numbers),
    st.builds(lambda k, op, v: {k: {op: v}}, keys, st.sampled_from(["$in", "$nin"]), in_lists),
    st.builds(lambda k, op, v: {k: {op: v}}, keys, st.sampled_from(["$contains", "$not_contains"]), scalars),
)
chroma_filters = st.recursive(
    chroma_leaves,
    lambda inner: st.builds(
        lambda op, parts: {op: parts}, st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=2, max_size=3)
    ),
    max_leaves=5,
)


# --- what every operator means, as plainly as can be ----------------------------------------------------------------


def is_number(value: Any) -> bool:
    """An int or float that is no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """Exact types, but all numbers are one type and compared as real numbers."""
    if is_number(one) and is_number(other):
        return Fraction(one) == Fraction(other)
    return type(one) is type(other) and one == other


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda a, b: Fraction(a) > Fraction(b),
    "$gte": lambda a, b: Fraction(a) >= Fraction(b),
    "$lt": lambda a, b: Fraction(a) < Fraction(b),
    "$lte": lambda a, b: Fraction(a) <= Fraction(b),
}


def holds(metadata: Mapping[str, Any], key: str, op: str, operand: Any) -> bool:
    """One condition on one memory."""
    there, value = key in metadata, metadata.get(key)
    if op == "$ne":
        return not holds(metadata, key, "$eq", operand)
    if op == "$nin":
        return not holds(metadata, key, "$in", operand)
    if op == "$not_contains":
        return not holds(metadata, key, "$contains", operand)
    if op == "$is_empty":
        return (not there or value in ("", [])) is operand
    if not there:
        return False
    if op == "$eq":
        return equal(value, operand)
    if op == "$in":
        return any(equal(value, item) for item in operand)
    if op in COMPARE:
        return is_number(value) and COMPARE[op](value, operand)
    members = value if isinstance(value, list) else [value]
    if op == "$contains":
        return isinstance(value, list) and any(equal(item, operand) for item in members)
    if op == "$any":
        return any(equal(m, item) for m in members for item in operand)
    if op == "$all":
        return all(any(equal(m, item) for m in members) for item in operand)
    if op == "$text_match":
        return isinstance(value, str) and operand in value
    assert op == "$text_match_insensitive"
    return isinstance(value, str) and operand.casefold() in value.casefold()


def oracle(metadata: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """A filter on one memory."""
    results = []
    for key, condition in where.items():
        if key == "$and":
            results.append(all(oracle(metadata, part) for part in condition))
        elif key == "$or":
            results.append(any(oracle(metadata, part) for part in condition))
        elif key == "$not":
            parts = [condition] if isinstance(condition, Mapping) else condition
            results.append(not any(oracle(metadata, part) for part in parts))
        elif isinstance(condition, Mapping):
            results.extend(holds(metadata, key, op, operand) for op, operand in condition.items())
        else:
            results.append(holds(metadata, key, "$eq", condition))
    return all(results)


def leaves(where: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """Key, operator and operand of each condition."""
    out: list[tuple[str, str, Any]] = []
    for key, condition in where.items():
        if key in ("$and", "$or"):
            out.extend(itertools.chain.from_iterable(leaves(part) for part in condition))
        elif isinstance(condition, Mapping):
            out.extend((key, op, operand) for op, operand in condition.items())
        else:
            out.append((key, "$eq", condition))
    return out


def chroma_is_known_to_be_wrong(rows: list[dict[str, Any]], where: Mapping[str, Any]) -> bool:
    """The defects of chromadb 1.5 that are documented here, each with its own test below.

    Numbers: ints and fractions are compared by truncation, and large ints as floats.
    """
    for key, _, operand in leaves(where):
        operands = operand if isinstance(operand, list) else [operand]
        stored = [v for row in rows for v in (row[key] if isinstance(row.get(key), list) else [row.get(key)])]
        if any(is_number(o) for o in operands):
            inside = [v for v in (*stored, *operands) if is_number(v)]
            if len({type(v) for v in inside}) > 1:
                return True
    return False


@pytest.fixture(scope="module")
def client() -> Any:
    """One client; a folder of its own would be slower and no different."""
    return chromadb.EphemeralClient()


_names = itertools.count()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(metadatas, min_size=1, max_size=12), filters=st.lists(chroma_filters, min_size=1, max_size=6))
def test_our_filters_mean_what_chromas_mean(client: Any, rows: list[dict[str, Any]], filters: list[Any]) -> None:
    """Mask, matches, Chroma's get and Chroma's query agree, but for the defects listed; there we agree with the oracle."""
    collection = client.create_collection(f"filters-{next(_names)}", embedding_function=None)
    ids = [str(i) for i in range(len(rows))]
    collection.add(
        ids=ids, documents=ids, metadatas=[row or None for row in rows], embeddings=np.eye(len(rows), 12) + 0.01
    )
    table = MetadataTable()
    for i, row in enumerate(rows):
        table.append(i, [row])
    try:
        for where in filters:
            ours = compile_filter(where)
            assert ours is not None
            expected = [i for i, row in enumerate(rows) if oracle(row, where)]
            assert np.flatnonzero(ours.mask(table, len(rows))).tolist() == expected, where
            assert [i for i, row in enumerate(rows) if ours.matches(row)] == expected, where
            if chroma_is_known_to_be_wrong(rows, where):
                continue
            got = sorted(int(i) for i in collection.get(where=where)["ids"])
            asked = collection.query(query_embeddings=[[1.0] * 12], where=where, n_results=len(rows))
            assert got == expected, (where, rows)
            assert sorted(int(i) for i in asked["ids"][0]) == expected, (where, rows)
    finally:
        collection.delete(ids=ids)
        client.delete_collection(collection.name)


extensions = st.one_of(
    chroma_leaves,
    st.builds(
        lambda k, op, v: {k: {op: v}},
        keys,
        st.sampled_from(["$in", "$nin", "$any", "$all"]),
        st.lists(scalars, max_size=3),
    ),
    st.builds(lambda k, op, v: {k: {op: v}}, keys, st.sampled_from(["$text_match", "$text_match_insensitive"]), texts),
    st.builds(lambda k, v: {k: {"$is_empty": v}}, keys, st.booleans()),
    st.builds(lambda k, low, high: {k: {"$gte": low, "$lt": high}}, keys, numbers, numbers),
)
any_filters = st.recursive(
    extensions,
    lambda inner: st.one_of(
        st.builds(
            lambda op, parts: {op: parts},
            st.sampled_from(["$and", "$or", "$not"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda part: {"$not": part}, inner),
        st.builds(lambda one, two: {**one, **two}, inner, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=600, deadline=None)
@given(rows=st.lists(metadatas, min_size=1, max_size=8), where=any_filters)
def test_every_operator_means_what_its_definition_says(rows: list[dict[str, Any]], where: Any) -> None:
    """Extensions, nesting, several keys and several operators in one dict, against the plain definition."""
    table = MetadataTable()
    for i, row in enumerate(rows):
        table.append(i, [row])
    ours = compile_filter(where)
    expected = [oracle(row, where) for row in rows]
    mask = [True] * len(rows) if ours is None else ours.mask(table, len(rows)).tolist()
    assert mask == expected
    assert ours is None or [ours.matches(row) for row in rows] == expected


# --- Chroma's known defects, and ours right --------------------------------------------------------------------------


def numbers_in(where: Any) -> tuple[list[int], list[int]]:
    """Ids that Chroma and that we find among the values 2, 3, 2.5 and 2**53 + 1."""
    client = chromadb.EphemeralClient()
    collection = client.create_collection(f"defects-{next(_names)}", embedding_function=None)
    values = [2, 3, 2.5, 2**53 + 1]
    collection.add(ids=list("0123"), embeddings=np.eye(4), metadatas=[{"n": v} for v in values])
    theirs = sorted(int(i) for i in collection.get(where=where)["ids"])
    client.delete_collection(collection.name)
    ours = compile_filter(where)
    assert ours is not None
    return theirs, [i for i, v in enumerate(values) if ours.matches({"n": v})]


@pytest.mark.parametrize(
    ("where", "chroma", "right"),
    [
        ({"n": {"$eq": 2.5}}, [0, 2], [2]),
        ({"n": {"$ne": 2.5}}, [1, 3], [0, 1, 3]),
        ({"n": {"$gte": 2.5}}, [0, 1, 2, 3], [1, 2, 3]),
        ({"n": {"$lt": 2.5}}, [], [0]),
    ],
)
def test_ints_and_fractions_are_compared_as_real_numbers(where: Any, chroma: list[int], right: list[int]) -> None:
    """Report 103: Chroma 1.5 cuts fractions off. If this fails, Chroma has mended it."""
    theirs, ours = numbers_in(where)
    assert ours == right
    assert theirs == chroma


def test_a_missing_key_satisfies_the_negative_operators_alone(memory: HybridMemory) -> None:
    """Report 109: a soft delete flag works in every leg as it does in Chroma."""
    memory.add(
        [
            Memory("gone", "apple tree", {"deleted": True}),
            Memory("kept", "apple pie", {"deleted": False}),
            Memory("plain", "apple juice"),
        ]
    )
    for where in ({"deleted": {"$ne": True}}, {"deleted": {"$nin": [True]}}, {"$not": {"deleted": True}}):
        for leg in ("semantic", "bm25", "balanced", "tipsy", "mem0"):
            assert sorted(memory.search("apple", where=where, profile=leg).ids) == ["kept", "plain"]
        assert memory.count(where) == 2
    assert sorted(memory.collection.get(where={"deleted": {"$ne": True}})["ids"]) == ["kept", "plain"]


@pytest.mark.parametrize(
    ("operand", "expected"), [(True, ["t"]), (False, ["f"]), (1, ["1"]), (0, ["0"]), ("True", ["s"]), (1.0, ["1"])]
)
def test_bools_are_no_numbers_and_no_texts(memory: HybridMemory, operand: Any, expected: list[str]) -> None:
    """Report 112: exact types, in listing and in search alike."""
    values = {"t": True, "f": False, "1": 1, "0": 0, "s": "True"}
    memory.add([Memory(name, "apple", {"pinned": value}) for name, value in values.items()])
    assert [m.id for m in memory.list(where={"pinned": operand})] == expected
    assert memory.search("apple", where={"pinned": operand}, k=9).ids == expected
    assert memory.search("apple", where={"pinned": {"$in": [operand]}}, k=9).ids == expected


# --- dates -----------------------------------------------------------------------------------------------------------

MOMENT = datetime(2024, 8, 20, 12, tzinfo=timezone.utc)
EARLIEST, LATEST = datetime.fromisoformat("1950-01-01"), datetime.fromisoformat("2100-01-01")
SPELLINGS = [
    MOMENT,
    MOMENT.isoformat(),
    "2024-08-20T12:00:00Z",
    "2024-08-20T12:00:00.000Z",
    "2024-08-20T05:00:00-07:00",
    "2024-08-20 12:00:00",
    "20240820T120000Z",
    int(MOMENT.timestamp()),
    float(MOMENT.timestamp()),
    int(MOMENT.timestamp() * 1000),
    np.int64(MOMENT.timestamp()),
    MOMENT.astimezone(timezone(timedelta(hours=9))),
    MOMENT.replace(tzinfo=None),
]


@pytest.mark.parametrize("stored", SPELLINGS, ids=str)
def test_a_moment_is_one_moment_however_it_is_spelt(memory: HybridMemory, stored: Any) -> None:
    """Report 107, 108: datetime, ISO with Z or offset, seconds and milliseconds are ranged alike; naive means UTC."""
    memory.add(Memory("a", "text", {"created_at": stored}))
    hour = timedelta(hours=1)
    for after, before in ((MOMENT - hour, MOMENT + hour), ((MOMENT - hour).isoformat(), "2024-08-20T06:00:00-07:00")):
        assert memory.count({"created_at": {"$gt": after}}) == 1
        assert memory.count({"created_at": {"$lt": before}}) == 1
        assert memory.count({"created_at": {"$gte": after, "$lte": before}}) == 1
        assert memory.count({"created_at": {"$lt": after}}) == 0
        assert memory.count({"created_at": {"$gt": before}}) == 0
    assert memory.count({"created_at": {"$eq": MOMENT}}) == 1
    assert memory.count({"created_at": {"$gte": date(2024, 8, 20)}}) == 1
    assert memory.count({"created_at": {"$gte": date(2024, 8, 21)}}) == 0


@settings(max_examples=150, deadline=None)
@given(
    st.datetimes(EARLIEST, LATEST, timezones=st.just(timezone.utc)),
    st.datetimes(EARLIEST, LATEST, timezones=st.just(timezone.utc)),
    st.integers(-12, 12),
    st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"]),
)
def test_date_ranges_agree_with_the_comparison_of_datetimes(
    stored: datetime, asked: datetime, zone: int, op: str
) -> None:
    """Whatever the zone that either is written in."""
    compare = {
        "$gt": stored > asked,
        "$gte": stored >= asked,
        "$lt": stored < asked,
        "$lte": stored <= asked,
        "$eq": stored == asked,
        "$ne": stored != asked,
    }
    there = stored.astimezone(timezone(timedelta(hours=zone))).isoformat()
    ours = compile_filter({"at": {op: asked}})
    assert ours is not None
    assert ours.matches({"at": there}) is compare[op]


@pytest.mark.parametrize("value", ["yesterday", "n/a", "", [1], True, 1e30, "12:00"])
def test_what_is_no_time_is_in_no_range_of_time(value: Any) -> None:
    """Never misread: neither before nor after."""
    for op in ("$gt", "$lt"):
        ours = compile_filter({"at": {op: MOMENT}})
        assert ours is not None
        assert not ours.matches({"at": value})


def test_listing_counting_deleting_and_searching_take_the_same_filters(memory: HybridMemory) -> None:
    """Report 113: a listing by time needs no other language."""
    now = datetime.now(timezone.utc)
    memory.add([Memory(str(h), "apple", {"created_at": now - timedelta(hours=h)}) for h in range(5)])
    where = {"created_at": {"$gte": now - timedelta(hours=2, minutes=1)}}
    assert [m.id for m in memory.list(where=where, order_by="-created_at")] == ["0", "1", "2"]
    assert memory.count(where) == 3
    assert sorted(memory.search("apple", where=where).ids) == ["0", "1", "2"]
    assert memory.delete(where=where) == 3


# --- what is no filter -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [None, {}, {"$and": []}, {"$or": []}, {"$and": [{}]}, {"$and": [{"$or": []}]}])
def test_an_empty_filter_is_no_filter(memory: HybridMemory, where: Any) -> None:
    """Report 97: in every call that takes one."""
    memory.add([Memory("a", "apple"), Memory("b", "apple")])
    assert memory.count(where) == 2
    assert len(memory.list(where=where)) == 2
    assert len(memory.search("apple", where=where)) == 2


def test_several_keys_and_single_operands_need_no_wrapping(memory: HybridMemory) -> None:
    """Report 96, 104: what Chroma refuses is understood."""
    memory.add(
        [Memory("a", "apple", {"u": "1", "t": "fact", "n": 2}), Memory("b", "apple", {"u": "1", "t": "x", "n": 5})]
    )
    assert memory.search("apple", where={"u": "1", "t": "fact"}).ids == ["a"]
    assert memory.search("apple", where={"$or": [{"t": "fact"}]}).ids == ["a"]
    assert memory.search("apple", where={"n": {"$gt": 1, "$lt": 3}}).ids == ["a"]
    assert memory.search("apple", where={"n": {"$in": []}}).ids == []
    assert sorted(memory.search("apple", where={"n": {"$nin": []}}).ids) == ["a", "b"]


def test_conditions_nest(memory: HybridMemory) -> None:
    """Report 105: (n > 5 and (b = x or not c = y))."""
    rows = [{"n": 6, "b": "x"}, {"n": 6, "c": "y"}, {"n": 6, "b": "z", "c": "z"}, {"n": 5, "b": "x"}]
    memory.add([Memory(str(i), "apple", row) for i, row in enumerate(rows)])
    where = {"$and": [{"n": {"$gt": 5}}, {"$or": [{"b": "x"}, {"$not": [{"c": "y"}]}]}]}
    assert sorted(memory.search("apple", where=where).ids) == ["0", "2"]


@pytest.mark.parametrize(
    "where",
    [
        {"a": {"$regex": "x"}},
        {"$nor": [{"a": 1}]},
        {"a": {}},
        {"a": {"eq": 1}},
        {"a": None},
        {"a": {"$eq": None}},
        {"a": {"$gt": "soon"}},
        {"a": {"$gt": True}},
        {"a": {"$in": "abc"}},
        {"a": {"$in": [None]}},
        {"a": float("nan")},
        {"a": {"$is_empty": 1}},
        {"a": {"$text_match": 1}},
        {"a": [1, 2]},
        {"a": object()},
        {"$and": {"a": 1}},
        {"$or": "a"},
        {"$and": [1]},
        {1: 2},
        "a = 1",
        [{"a": 1}],
    ],
    ids=lambda where: str(where).partition(" object at")[0],
)
def test_what_cannot_be_understood_raises(memory: HybridMemory, where: Any) -> None:
    """Report 105: never ignored, in any call; the message begins with the argument."""
    memory.add(Memory("a", "apple", {"a": 1}))
    for call in (memory.count, lambda w: memory.list(where=w), lambda w: memory.search("apple", where=w)):
        with pytest.raises(FilterError, match=r"^where"):
            call(where)
    with pytest.raises(FilterError, match=r"^where"):
        memory.delete(where=where)
    assert memory.count() == 1


def test_depth_is_bounded() -> None:
    """A filter that nests without end is refused instead of exhausting the stack."""
    where: dict[str, Any] = {"a": 1}
    for _ in range(MAX_DEPTH):
        where = {"$not": [where]}
    assert compile_filter(where) is not None
    for _ in range(5_000):
        where = {"$not": [where]}
    with pytest.raises(FilterError, match="nested"):
        compile_filter(where)


def test_a_filter_that_cannot_be_shown_is_still_refused(memory: HybridMemory) -> None:
    """Found by fuzzing: values that nest too deep, or are too long, for a repr; the message stays short."""
    nested: list[Any] = []
    for _ in range(5_000):
        nested = [nested]
    for value in (
        nested,
        {"$eq": nested},
        {"$in": [nested]},
        {"$gt": "x" * 100_000},
        [10**5_000],
        {"$is_empty": nested},
    ):
        with pytest.raises(FilterError, match=r"^where") as caught:
            memory.count({"a": value})
        assert len(str(caught.value)) < 1_000


def test_a_scope_is_looked_for_in_no_deeper_filter_than_is_taken() -> None:
    """Found by fuzzing: an $and in an $and without end is refused, also where a scope is looked for in it."""
    where: dict[str, Any] = {"u": "1"}
    for _ in range(5_000):
        where = {"$and": [where]}
    with make_memory(scope_key="u") as memory, pytest.raises(InputError):
        memory.count(where)


@pytest.mark.parametrize("where", [{"a": {"$in": b"abc"}}, {"$and": b"ab"}, {"a": {"$any": bytearray(b"a")}}])
def test_bytes_are_no_list_of_numbers(where: Any) -> None:
    """Found by fuzzing: Python's bytes are a sequence of ints."""
    with pytest.raises(FilterError, match=r"^where"):
        compile_filter(where)


def test_moments_of_numpy_are_moments(memory: HybridMemory) -> None:
    """Found by fuzzing: of nanoseconds, numpy makes a mere int; stored, compared and equal as a time, and spans are refused."""
    moment = np.datetime64("2024-08-20T12:00:00", "ns")
    memory.add([Memory("a", "text", {"at": moment}), Memory("b", "text", {"at": np.array([moment])})])
    assert memory.get("a")[0].metadata == {"at": MOMENT.isoformat()}
    assert memory.get("b")[0].metadata == {"at": [MOMENT.isoformat()]}
    assert memory.count({"at": {"$gte": moment, "$lt": moment + np.timedelta64(1, "s")}}) == 1
    assert memory.count({"at": {"$eq": moment}}) == memory.count({"at": {"$in": [moment]}}) == 1
    for value in (np.timedelta64(5, "ns"), np.datetime64("NaT"), np.datetime64("200000-01-01")):
        with pytest.raises(FilterError):
            memory.count({"at": value})
        with pytest.raises(InputError):
            memory.add(Memory("c", "text", {"at": value}))


def test_an_array_of_no_dimensions_is_no_list() -> None:
    """Found by fuzzing: it cannot be iterated over."""
    with pytest.raises(FilterError, match="takes a list"):
        compile_filter({"a": {"$in": np.array(5)}})


def test_long_lists_are_looked_up() -> None:
    """Twenty thousand operands against as many distinct values: one look-up a value, not one comparison a pair."""
    table = MetadataTable()
    rows = 20_000
    for row in range(rows):
        table.append(row, [{"n": row, "s": f"id{row}"}])
    numbers: list[Any] = list(range(0, 2 * rows, 2))
    for where in ({"n": {"$in": numbers}}, {"n": {"$any": numbers}}, {"s": {"$in": [f"id{n}" for n in numbers]}}):
        compiled = compile_filter(where)
        assert compiled is not None
        assert compiled.mask(table, rows).tolist() == [row % 2 == 0 for row in range(rows)]


def test_a_filter_applies_to_every_leg() -> None:
    """Report 98: a word that only filtered-out memories have brings nothing back through the fusion."""
    with make_memory() as memory:
        memory.add([Memory("a", "plain words", {"type": "a"}), Memory("b", "Joanna has a xylophone", {"type": "b"})])
        for leg in ("semantic", "bm25", "balanced", "tipsy", "mem0", "best"):
            result = memory.search("Joanna xylophone", where={"type": "a"}, profile=leg)
            assert "b" not in result.ids
            assert "b" not in [d.id for d in result.trace.dropped]
