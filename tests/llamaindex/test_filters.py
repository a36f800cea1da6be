"""Filters mean in every search what a plain Python reading of them means."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from llamaindex_memhybrid import MemHybridVectorStore, to_where
from memhybrid import FilterError
from memhybrid.memory import HybridMemory

Op = FilterOperator
VALUES: dict[str, list[Any]] = {
    "kind": ["fact", "event", "Fact", "", None],
    "year": [2022, 2023, 2024, 2023.5, None],
    "rank": [-1, 0, 1, 2.0, 2.5, None],
    "tags": [["a"], ["a", "b"], ["b", "c"], None],
    "codes": [[1], [1, 2], [2, 3], None],
    "when": ["2024-01-01", "2024-06-01T12:00:00Z", "2023-12-31", None],
}


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def moment(text: str) -> datetime:
    made = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return made if made.tzinfo else made.replace(tzinfo=timezone.utc)


def leaf_holds(leaf: MetadataFilter, metadata: dict[str, Any]) -> bool:
    """One condition, read plainly."""
    value, wanted, op = metadata.get(leaf.key), leaf.value, leaf.operator
    if op is Op.IS_EMPTY:
        return value is None or value == ""
    if value is None:
        return op in (Op.NE, Op.NIN)
    held = value if isinstance(value, list) else [value]
    if op is Op.EQ:
        return value == wanted
    if op is Op.NE:
        return value != wanted
    if op is Op.IN:
        return value in wanted
    if op is Op.NIN:
        return value not in wanted
    if op is Op.ANY:
        return any(item in held for item in wanted)
    if op is Op.ALL:
        return all(item in held for item in wanted)
    if op is Op.CONTAINS:
        return isinstance(value, list) and wanted in value
    if op is Op.TEXT_MATCH:
        return isinstance(value, str) and wanted in value
    if op is Op.TEXT_MATCH_INSENSITIVE:
        return isinstance(value, str) and wanted.lower() in value.lower()
    if isinstance(wanted, str):
        if not isinstance(value, str) or not value[:4].isdigit():
            return False
        value, wanted = moment(value), moment(wanted)
    elif not number(value):
        return False
    return {Op.GT: value > wanted, Op.LT: value < wanted, Op.GTE: value >= wanted, Op.LTE: value <= wanted}[op]


def holds(filters: MetadataFilters, metadata: dict[str, Any]) -> bool:
    """A group, read plainly."""
    results = [
        holds(part, metadata) if isinstance(part, MetadataFilters) else leaf_holds(part, metadata)
        for part in filters.filters
    ]
    if filters.condition == FilterCondition.OR:
        return any(results)
    return not any(results) if filters.condition == FilterCondition.NOT else all(results)


def random_leaf(rng: random.Random) -> MetadataFilter:
    op = rng.choice(list(Op))
    if op in (Op.ANY, Op.ALL, Op.CONTAINS):
        key, pool = rng.choice([("tags", ["a", "b", "c", "z"]), ("codes", [1, 2, 3, 9])])
        value: Any = rng.choice(pool) if op is Op.CONTAINS else rng.sample(pool, rng.randint(1, 3))
    elif op in (Op.GT, Op.GTE, Op.LT, Op.LTE):
        key, value = rng.choice(
            [("year", 2023), ("year", 2023.25), ("rank", 0), ("rank", 2), ("when", "2024-01-01"), ("kind", 1)]
        )
    elif op in (Op.TEXT_MATCH, Op.TEXT_MATCH_INSENSITIVE):
        key, value = rng.choice([("kind", "fac"), ("kind", "FACT"), ("kind", "ven"), ("when", "2024-"), ("tags", "a")])
    elif op in (Op.IN, Op.NIN):
        key, value = rng.choice(
            [("kind", ["fact", "event"]), ("year", [2022, 2024]), ("year", [2023.5]), ("rank", []), ("kind", ["x"])]
        )
    else:
        key, value = rng.choice([("kind", "fact"), ("kind", ""), ("year", 2023), ("rank", 2.0), ("rank", 2.5)])
    return MetadataFilter(key=key, value=value, operator=op)


def random_filters(rng: random.Random, depth: int) -> MetadataFilters:
    parts: list[Any] = [
        random_filters(rng, depth - 1) if depth and rng.random() < 0.4 else random_leaf(rng)
        for _ in range(rng.randint(1, 3))
    ]
    return MetadataFilters(filters=parts, condition=rng.choice([*FilterCondition, None]))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    rng = random.Random(7)
    return [{k: v for k in VALUES if (v := rng.choice(VALUES[k])) is not None} | {"n": i} for i in range(120)]


def test_every_operator_and_nesting_means_what_it_says(memory: HybridMemory, rows: list[dict[str, Any]]) -> None:
    """400 random filters over all operators and conditions select the rows that a plain reading selects."""
    store = MemHybridVectorStore.from_memory(memory)
    store.add([TextNode(id_=str(i), text=f"note {i}", metadata=row) for i, row in enumerate(rows)])
    rng = random.Random(11)
    seen: set[str] = set()
    for _ in range(400):
        filters = random_filters(rng, 2)
        seen.update(part.operator.value for part in filters.filters if isinstance(part, MetadataFilter))
        wanted = {str(i) for i, row in enumerate(rows) if holds(filters, row)}
        assert {n.node_id for n in store.get_nodes(filters=filters)} == wanted, filters
    assert seen == {op.value for op in Op}


@pytest.mark.parametrize("mode", ["default", "sparse", "hybrid", "mmr"])
def test_a_filter_binds_every_query_mode(store: MemHybridVectorStore, mode: str) -> None:
    """The keyword half is filtered like the vector half."""
    filters = MetadataFilters(filters=[MetadataFilter(key="type", value="fact")])
    found = store.query(
        VectorStoreQuery(query_str="invoice parcel tea", mode=mode, similarity_top_k=6, filters=filters)
    )  # type: ignore[arg-type]
    assert set(found.ids or []) <= {"n1", "n4", "n5"}
    assert found.ids


def test_no_filter_is_none() -> None:
    """None, an empty group and an empty dict are no filter, whatever their condition."""
    assert to_where(None) is None
    assert to_where({}) is None
    assert to_where({"$and": []}) is None
    for condition in (*FilterCondition, None):
        assert to_where(MetadataFilters(filters=[], condition=condition)) is None


def test_a_dict_is_the_core_language(store: MemHybridVectorStore) -> None:
    """A dict passes through, datetimes, booleans and all."""
    assert to_where({"type": "fact", "year": {"$gte": 2023}}) == {"type": "fact", "year": {"$gte": 2023}}
    assert {n.node_id for n in store.get_nodes(filters={"type": "fact", "year": {"$gte": 2023}})} == {"n1", "n4"}


def test_datetimes_compare_as_times(memory: HybridMemory) -> None:
    """A datetime in a filter finds ISO texts and datetimes in metadata."""
    store = MemHybridVectorStore.from_memory(memory)
    at = datetime(2024, 5, 1, tzinfo=timezone.utc)
    store.add(
        [
            TextNode(id_="old", text="old", metadata={"at": datetime(2023, 1, 1, tzinfo=timezone.utc)}),
            TextNode(id_="new", text="new", metadata={"at": "2024-06-01T00:00:00+00:00"}),
        ]
    )
    leaf = MetadataFilter.model_construct(key="at", value=at, operator=Op.GT)
    filters = MetadataFilters.model_construct(filters=[leaf], condition=FilterCondition.AND)
    assert [n.node_id for n in store.get_nodes(filters=filters)] == ["new"]
    assert [n.node_id for n in store.get_nodes(filters={"at": {"$lt": at}})] == ["old"]


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        (Op.GT, "tall"),
        (Op.LTE, [1, 2]),
        (Op.EQ, ["a"]),
        (Op.IN, "fact"),
        (Op.ANY, 3),
        (Op.TEXT_MATCH, 3),
        (Op.EQ, None),
    ],
)
def test_what_cannot_be_translated_names_its_operator(operator: FilterOperator, value: Any) -> None:
    """Nothing is left out silently."""
    with pytest.raises(FilterError, match=operator.value):
        to_where(MetadataFilters(filters=[MetadataFilter(key="k", value=value, operator=operator)]))


@pytest.mark.parametrize("wrong", ["type == fact", 3, [MetadataFilter(key="k", value=1)], {"$regex": "x"}])
def test_other_things_are_no_filters(wrong: Any) -> None:
    """Text, lists and unknown operators are errors."""
    with pytest.raises(FilterError):
        to_where(wrong)
