"""Every public parameter × bad values: a documented result, or an error of ours that names the argument; nothing written."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memhybrid import ConfigError, HybridMemory, InputError, MemHybridError, Memory, Profile
from memhybrid.embedders import HashEmbedder
from memhybrid.memory import MemoryView
from tests.conftest import make_memory

BAD: dict[str, Any] = {
    "None": None,
    "nan": math.nan,
    "inf": math.inf,
    "empty text": "",
    "blank": " \t\n",
    "text": "word",
    "control": "a\x00\x07b",
    "surrogate": "\ud800",
    "long": "x" * 100_000,
    "zero": 0,
    "minus one": -1,
    "True": True,
    "half": 0.5,
    "billion": 10**9,
    "huge": 2**70,
    "np.int64": np.int64(3),
    "np.float32": np.float32(0.5),
    "np.nan": np.float64("nan"),
    "array": np.zeros(3),
    "bytes": b"abc",
    "empty list": [],
    "list of None": [None],
    "nested": [[1]],
    "set": {1, "a"},
    "empty dict": {},
    "dict": {"k": 1},
    "operator": {"$where": 1},
    "tuple": (1, 2, 3),
    "object": object(),
    "class": int,
    "function": print,
    "decimal": Decimal("1.5"),
    "date": datetime(2024, 1, 1, tzinfo=timezone.utc),
    "complex": 1j,
    "generator": (i for i in ()),
    "path": Path("nowhere"),
    "exception": ValueError("x"),
}

Call = Callable[[HybridMemory, Any], Any]
READS: dict[str, Call] = {
    "search(query)": lambda m, v: m.search(v),
    "search(k)": lambda m, v: m.search("apple", k=v),
    "search(where)": lambda m, v: m.search("apple", where=v),
    "search(where value)": lambda m, v: m.search("apple", where={"kind": v}),
    "search(where operand)": lambda m, v: m.search("apple", where={"n": {"$gte": v}}),
    "search(embedding)": lambda m, v: m.search("apple", embedding=v),
    "search(profile)": lambda m, v: m.search("apple", profile=v),
    "search(min_score)": lambda m, v: m.search("apple", min_score=v),
    "search(max_tokens)": lambda m, v: m.search("apple", max_tokens=v),
    "search(record_usage)": lambda m, v: m.search("apple", record_usage=v),
    "search(min_msg_id)": lambda m, v: m.search("apple", min_msg_id=v),
    "search(max_msg_id)": lambda m, v: m.search("apple", max_msg_id=v),
    "search(prefix_only)": lambda m, v: m.search("apple", prefix_only=v),
    "search(include_outdated)": lambda m, v: m.search("apple", include_outdated=v),
    "search(now)": lambda m, v: m.search("apple", now=v),
    "search(strict)": lambda m, v: m.search("apple", strict=v),
    "search_many(queries)": lambda m, v: m.search_many(v),
    "search_many(query)": lambda m, v: m.search_many([v]),
    "search_many(k)": lambda m, v: m.search_many(["apple"], k=v),
    "get(ids)": lambda m, v: m.get(v),
    "get(embeddings)": lambda m, v: m.get("a", embeddings=v),
    "list(where)": lambda m, v: m.list(where=v),
    "list(order_by)": lambda m, v: m.list(order_by=v),
    "list(limit)": lambda m, v: m.list(limit=v),
    "list(offset)": lambda m, v: m.list(offset=v),
    "list(include_outdated)": lambda m, v: m.list(include_outdated=v),
    "list(now)": lambda m, v: m.list(now=v),
    "count(where)": lambda m, v: m.count(v),
    "scoped(value)": lambda m, v: m.scoped(user=v).count(),
    "usage(ids)": lambda m, v: m.usage(v),
    "subscribe(listener)": lambda m, v: m.subscribe(v),
    "with_profile(profile)": lambda m, v: m.with_profile(v),
}
WRITES: dict[str, Call] = {
    "add(memories)": lambda m, v: m.add(v),
    "add([memory])": lambda m, v: m.add([v]),
    "add(id)": lambda m, v: m.add(Memory(v, "text")),
    "add(text)": lambda m, v: m.add(Memory("new", v)),
    "add(metadata)": lambda m, v: m.add(Memory("new", "text", v)),
    "add(metadata value)": lambda m, v: m.add(Memory("new", "text", {"key": v})),
    "add(metadata key)": lambda m, v: m.add(Memory("new", "text", _keyed(v))),
    "add(embedding)": lambda m, v: m.add(Memory("new", "text", {}, v)),
    "add(embedding item)": lambda m, v: m.add(Memory("new", "text", {}, [v] * 64)),
    "update(id)": lambda m, v: m.update(v, "text"),
    "update(text)": lambda m, v: m.update("a", v),
    "update(metadata)": lambda m, v: m.update("a", metadata=v),
    "update(metadata value)": lambda m, v: m.update("a", metadata={"key": v}),
    "update(embedding)": lambda m, v: m.update("a", embedding=v),
    "delete(ids)": lambda m, v: m.delete(v),
    "delete(where)": lambda m, v: m.delete(where=v),
    "expire(id)": lambda m, v: m.expire(v),
    "expire(at)": lambda m, v: m.expire("a", v),
    "supersede(id)": lambda m, v: m.supersede(v, "a"),
    "supersede(by)": lambda m, v: m.supersede("a", v),
    "reset_usage(ids)": lambda m, v: m.reset_usage(v),
}
NAMES = {
    "add(memories)": "memor",
    "add([memory])": "memor",
    "add(id)": "id",
    "scoped(value)": "scoped|user",
    "search(query)": "query",
    "search_many(query)": "query",
    "search(where value)": "where|kind",
    "search(where operand)": "where",
    "supersede(id)": "id|memory",
    "supersede(by)": "supersede|by",
    "update(id)": "id|memory",
    "expire(id)": "id|memory",
    "delete(where)": "where|filter",
    "search_many(queries)": "quer",
}


def _keyed(value: Any) -> Any:
    try:
        return {value: 1}
    except TypeError:
        return {(): 1}


@pytest.fixture(scope="module")
def store() -> Iterator[HybridMemory]:
    """A store with two memories."""
    with make_memory() as made:
        fill(made)
        yield made


def fill(memory: HybridMemory) -> None:
    """What must be there afterwards."""
    memory.add([Memory("a", "apple pie", {"kind": "x", "n": 1}), Memory("b", "pear", {"kind": "y"})])


def argument_of(name: str) -> str:
    """The word that an error must have."""
    return NAMES.get(name, name[name.index("(") + 1 : -1].split(maxsplit=1)[0].strip("["))


def outcome(name: str, call: Call, memory: HybridMemory, value: Any) -> str:
    """What came of it: a result, or an error of ours that names the argument."""
    try:
        call(memory, value)
    except MemHybridError as error:
        wanted = argument_of(name).split("|")
        text = str(error)
        assert any(w in text for w in wanted), f"{name}: the error does not say which argument: {text[:200]}"
        assert len(text) < 4_000 or "x" * 100 in text
        return type(error).__name__
    return "taken"


@pytest.mark.parametrize("name", READS)
def test_reading_with_bad_values(store: HybridMemory, name: str) -> None:
    """A result or an error of ours, and the store is as it was."""
    before = store.list()
    for label, value in BAD.items():
        if name == "search(query)" and label == "long":
            continue
        try:
            outcome(name, READS[name], store, value)
        except Exception as error:
            raise AssertionError(f"{name} with {label}: {type(error).__name__}: {str(error)[:300]}") from error
    assert store.list() == before
    assert store.verify().ok


@pytest.mark.parametrize("name", WRITES)
def test_writing_bad_values(name: str) -> None:
    """An error of ours leaves everything as it was; what is taken can be read back and verifies."""
    with make_memory() as memory:
        fill(memory)
        for label, value in BAD.items():
            before = memory.list()
            try:
                came = outcome(name, WRITES[name], memory, value)
            except Exception as error:
                raise AssertionError(f"{name} with {label}: {type(error).__name__}: {str(error)[:300]}") from error
            if came != "taken":
                assert memory.list() == before, f"{name} with {label} wrote something"
            elif memory.list() != before:
                assert memory.verify().ok, f"{name} with {label}"
                memory.delete(all=True)
                fill(memory)
        assert memory.verify().ok


OPENING: dict[str, Callable[[Any], dict[str, Any]]] = {
    "path": lambda v: {"path": v},
    "collection": lambda v: {"collection": v},
    "profile": lambda v: {"profile": v},
    "scope_key": lambda v: {"scope_key": v},
    "analyzer": lambda v: {"analyzer": v},
    "embedder": lambda v: {"embedder": v},
    "bm25": lambda v: {"bm25": v},
    "read_only": lambda v: {"read_only": v},
    "memory_budget": lambda v: {"memory_budget": v},
    "consistency": lambda v: {"consistency": v},
    "strict": lambda v: {"strict": v},
    "late_interaction": lambda v: {"late_interaction": v},
}
FINE: dict[str, set[str]] = {
    "path": {"None", "text", "path"},
    "collection": {"text"},
    "scope_key": {"None", "text", "blank", "control", "long"},
    "memory_budget": {"None", "billion", "huge", "np.int64"},
    "read_only": {"True"},
    "strict": {"True"},
    "late_interaction": {"True"},
    "embedder": {"None", "function", "class"},
}


@pytest.mark.parametrize("name", OPENING)
def test_opening_with_bad_values(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot work is refused at once by name, and no folder is made for it."""
    monkeypatch.chdir(tmp_path)
    for label, value in BAD.items():
        if label in FINE.get(name, ()):
            continue
        options: dict[str, Any] = {"embedder": HashEmbedder(64), "analyzer": "fast", **OPENING[name](value)}
        try:
            HybridMemory.open(**options).close()
        except MemHybridError as error:
            said = str(error).replace("_", " ").replace("analyser", "analyzer")
            if name.split("_", maxsplit=1)[0] not in said and "not an embedder" not in said and "pipeline" not in said:
                raise AssertionError(f"{name} with {label}: the error does not name it: {error}") from error
        except Exception as error:
            raise AssertionError(f"{name} with {label}: {type(error).__name__}: {error}") from error
        else:
            raise AssertionError(f"{name} with {label} was taken")
    assert list(tmp_path.iterdir()) == []


def test_every_parameter_is_in_the_tables() -> None:
    """Generated from the signatures: a new parameter must be added above."""
    covered = {name.replace("[memory]", "memories") for name in (*READS, *WRITES)}
    skipped = {"progress", "all", "options"}
    for method in ("search", "search_many", "get", "list", "count", "add", "update", "delete", "expire", "supersede"):
        for parameter in list(inspect.signature(getattr(MemoryView, method)).parameters)[1:]:
            if parameter in skipped or (method == "search_many" and f"search({parameter})" in covered):
                continue
            assert f"{method}({parameter})" in covered, f"{method}({parameter})"
    for parameter in list(inspect.signature(HybridMemory.open).parameters):
        assert parameter in OPENING, parameter


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "5", None])
def test_k_is_a_whole_number_from_one(memory: HybridMemory, k: Any) -> None:
    """Report 111: anything else is refused by name."""
    memory.add("apple")
    with pytest.raises(InputError, match=r"^k: "):
        memory.search("apple", k=k)


def test_k_above_the_count_brings_what_there_is(memory: HybridMemory) -> None:
    """Report 111: min(k, available), in every profile, and never more than k."""
    assert memory.search("apple", k=5).hits == ()
    memory.add([Memory(str(i), f"apple {i}", {"half": i % 2 == 0}) for i in range(5)])
    for profile in ("semantic", "bm25", "mem0", "tipsy", "balanced", "best"):
        for k in (1, 4, 5, 6, 10**9):
            assert len(memory.search("apple", k=k, profile=profile)) == min(k, 5)
            assert len(memory.search("apple", k=k, profile=profile, where={"half": True})) == min(k, 3)


@pytest.mark.parametrize(
    "weights",
    [
        {},
        {"semantic": 0},
        {"semantic": -1},
        {"semantic": math.nan},
        {"semantic": math.inf},
        {"semantic": "0.5"},
        {"semantic": True},
    ],
    ids=str,
)
def test_weights_that_cannot_work_are_refused(weights: Any) -> None:
    """Report 159: when the profile is made, naming the field."""
    with pytest.raises(ConfigError, match=r"signals|weight"):
        Profile(signals=weights)


@pytest.mark.parametrize(
    "change",
    [
        {"pool_min": 0},
        {"pool_factor": -1},
        {"gate": 2},
        {"bm25_k1": math.nan},
        {"bm25_b": 1.5},
        {"importance_scale": 0},
        {"recency_days": -1},
        {"max_tokens": -1},
        {"min_score": math.nan},
        {"min_score": "high"},
        {"fusion": "magic"},
        {"sources": ()},
        {"sources": ("nothing",)},
        {"signals": {"nothing": 1.0}},
        {"token_counter": "nothing"},
        {"unknown_field": 1},
        {"rerank": "always"},
        {"deadline_s": 0},
        {"name": 5},
    ],
    ids=str,
)
def test_profile_settings_that_cannot_work_are_refused(change: dict[str, Any]) -> None:
    """The message names the setting."""
    with pytest.raises(ConfigError, match=next(iter(change))):
        Profile.balanced().replace(**change)
