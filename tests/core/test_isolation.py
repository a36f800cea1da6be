"""Tenants: nothing of one may reach, or move a bit of, another's answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memhybrid import FilterError, HybridMemory, InputError, Memory, ScopeError
from memhybrid.memory import MemoryView
from tests.conftest import make_memory

PROFILES = ["semantic", "bm25", "mem0", "tipsy", "balanced", "best"]
WORDS = ["apple", "Joanna", "Paris", "ZX-4471", "tea", "chess", "moved", "likes", "咖啡", "the"]
texts = st.lists(st.sampled_from(WORDS), min_size=0, max_size=6).map(" ".join)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "importance": st.sampled_from([0.1, 0.5, 90, "high"]),
        "session_id": st.sampled_from(["s1", "s2"]),
        "msg_id": st.integers(0, 5),
        "type": st.sampled_from(["fact", "identity"]),
        "created_at": st.sampled_from(["2024-01-01", "2024-02-01T00:00:00Z"]),
        "superseded_by": st.sampled_from(["a0", "b0"]),
    },
)
memories = st.lists(st.tuples(texts, metadata), max_size=8)
NOW = 1_709_000_000


def fill(view: MemoryView, prefix: str, rows: list[tuple[str, dict[str, Any]]]) -> None:
    """Store rows under ids of their own."""
    view.add([Memory(f"{prefix}{i}", text, meta) for i, (text, meta) in enumerate(rows)])


def answers(view: MemoryView, queries: list[str]) -> list[Any]:
    """Everything that a tenant can learn: hits, every signal to the last bit, traces without times, lists and counts."""
    out: list[Any] = []
    for profile in PROFILES:
        for result in (
            *(view.search(q, k=5, profile=profile, now=NOW, record_usage=False) for q in queries),
            *view.search_many(queries, k=3, profile=profile, now=NOW, record_usage=False, include_outdated=True),
        ):
            trace = result.trace
            out.append(
                (
                    [
                        (
                            h.memory,
                            h.score.hex(),
                            {n: v if v is None else v.hex() for n, v in h.signals.items()},
                            h.details,
                        )
                        for h in result.hits
                    ],
                    (trace.terms, trace.entities, trace.candidates, trace.pool, trace.max_possible, trace.dropped),
                    (trace.notes, trace.degraded, trace.scope),
                )
            )
    out.append(view.list())
    out.append(view.list(where={"type": "fact"}, order_by="-importance"))
    out.append((view.count(), view.count({"session_id": "s1"})))
    out.append(view.get([f"{p}{i}" for p in "ab" for i in range(8)]))
    return out


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    mine=memories,
    theirs=memories,
    queries=st.lists(texts, min_size=1, max_size=2),
    order=st.sampled_from(["before", "after", "around"]),
    key=st.sampled_from(["one", "two"]),
)
def test_every_answer_is_the_same_to_the_last_bit_with_and_without_another_tenant(
    mine: list[Any], theirs: list[Any], queries: list[str], order: str, key: str
) -> None:
    """Report 99: texts, counts, idf, lengths, names, usage and errors of B leave no trace in anything that A sees."""
    scope_key: Any = "user" if key == "one" else ("user", "character")
    a_is = {"user": "a"} if key == "one" else {"user": "u", "character": 1}
    b_is = {"user": "b"} if key == "one" else {"user": "u", "character": 2}
    with make_memory(scope_key=scope_key) as alone, make_memory(scope_key=scope_key) as together:
        fill(alone.scoped(**a_is), "a", mine)
        a, b = together.scoped(**a_is), together.scoped(**b_is)
        if order != "after":
            fill(b, "b", theirs)
        fill(a, "a", mine)
        if order != "before":
            fill(b, "c", theirs)
        b.search("apple Joanna", profile="tipsy", record_usage=True)
        b.delete(["b0", "c1", "a0"])
        assert answers(a, queries) == answers(alone.scoped(**a_is), queries)


@pytest.fixture
def shared() -> Any:
    """A store of two tenants with the same texts."""
    with make_memory(scope_key="user") as memory:
        for user in ("a", "b"):
            memory.scoped(user=user).add(
                [Memory(f"{user}{i}", f"Dana met Apple in Paris {i}", {"n": i}) for i in range(4)]
            )
        yield memory


def test_the_same_name_of_two_tenants_is_two_names(shared: HybridMemory) -> None:
    """Report 100: links are counted within the tenant."""
    for user in ("a", "b"):
        shared.scoped(user=user).search("Paris", profile="mem0")
        view = shared.store.partitions.get(f'["{user}"]').view()
        assert len(view.linked("paris")) == 4
    before = shared.scoped(user="b").search("Paris", profile="mem0", k=9)
    shared.scoped(user="a").delete(all=True)
    after = shared.scoped(user="b").search("Paris", profile="mem0", k=9)
    assert [(h.memory.id, h.score) for h in before.hits] == [(h.memory.id, h.score) for h in after.hits]


WIDENING = [
    {"user": "b"},
    {"user": {"$in": ["a", "b"]}},
    {"user": {"$ne": "a"}},
    {"$or": [{"user": "a"}, {"user": "b"}]},
    {"$or": [{"user": "b"}, {"n": {"$gte": 0}}]},
    {"$not": {"user": "a"}},
    {"$and": [{"user": "b"}]},
    {"user": {"$is_empty": True}},
    {"$or": []},
    {"user": {"$text_match": ""}},
    {"n": {"$gte": 0}},
    {},
    None,
]


@pytest.mark.parametrize("where", WIDENING, ids=str)
def test_no_filter_widens_a_bound_view(shared: HybridMemory, where: Any) -> None:
    """Report 102: the bound scope is ANDed whatever the caller says, in search, list, count and delete."""
    a = shared.scoped(user="a")
    for profile in PROFILES:
        assert all(i.startswith("a") for i in a.search("Dana Paris", k=20, where=where, profile=profile).ids)
    assert all((m.id or "").startswith("a") for m in a.list(where=where))
    assert a.count(where) <= 4
    if where:
        try:
            a.delete(where=where)
        except InputError:
            assert a.count() == 4
    assert shared.scoped(user="b").count() == 4


def test_ids_of_another_tenant_do_not_exist(shared: HybridMemory) -> None:
    """Report 102: neither get, update, delete, expire nor supersede reaches them, and the errors tell nothing."""
    a = shared.scoped(user="a")
    assert a.get(["b0", "a0"]) == shared.scoped(user="a").get(["a0"])
    assert a.delete(["b0", "b1"]) == 0
    messages = set()
    for identifier in ("b0", "no0"):
        for call in (
            lambda i: a.update(i, "mine now"),
            lambda i: a.update(i, metadata={"n": 9}),
            lambda i: a.expire(i),
            lambda i: a.supersede(i, "a0"),
            lambda i: a.supersede("a1", i),
        ):
            with pytest.raises(InputError) as caught:
                call(identifier)
            messages.add(str(caught.value).replace(identifier, "ID"))
    assert len(messages) == 2, messages
    assert shared.scoped(user="b").get("b0")[0].text == "Dana met Apple in Paris 0"


def test_an_id_of_another_tenant_cannot_be_written(shared: HybridMemory) -> None:
    """Nothing of the call is written, and the message does not say whose the id is."""
    a = shared.scoped(user="a")
    with pytest.raises(ScopeError, match="this id is taken") as caught:
        a.add([Memory("fresh", "new"), Memory("b2", "stolen")])
    assert "Dana" not in str(caught.value)
    assert "'b'" not in str(caught.value)
    assert a.get("fresh") == []
    assert shared.scoped(user="b").get("b2")[0].text == "Dana met Apple in Paris 2"
    with pytest.raises(ScopeError, match="this id is taken"):
        shared.add(Memory("b2", "stolen", {"user": "a"}))
    assert shared.verify().ok


def test_a_bound_value_cannot_be_changed(shared: HybridMemory) -> None:
    """Neither by another binding, nor by metadata of a write."""
    a = shared.scoped(user="a")
    with pytest.raises(ScopeError, match="bound already"):
        a.scoped(user="b")
    for value in ("b", 1, None, True):
        with pytest.raises(InputError):
            a.update("a0", metadata={"user": value})
    for value in ("b", 1, True):
        with pytest.raises(ScopeError):
            a.add(Memory("x", "text", {"user": value}))
    assert a.scoped(user="a", session_id="s").count() == 0
    assert shared.scoped(user="b").count() == 4


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.search("Dana"),
        lambda m: m.search_many(["Dana"]),
        lambda m: m.list(),
        lambda m: m.count(),
        lambda m: m.get("a0"),
        lambda m: m.delete(["a0"]),
        lambda m: m.delete(all=True),
        lambda m: m.delete(where={"n": 1}),
        lambda m: m.update("a0", "x"),
        lambda m: m.add("no user"),
        lambda m: m.search("Dana", where={"user": {"$in": ["a"]}}),
        lambda m: m.search("Dana", where={"$or": [{"user": "a"}]}),
        lambda m: m.search("Dana", where={"user": {"$ne": "b"}}),
        lambda m: m.count({"user": ""}),
        lambda m: m.count({"user": True}),
        lambda m: m.count({"user": 1.5}),
        lambda m: m.count({"user": "\ud800"}),
        lambda m: m.scoped(session_id="s").count(),
        lambda m: m.scoped(user=None),
        lambda m: m.scoped(user=""),
        lambda m: m.scoped(user="\ud800"),
        lambda m: m.scoped(user=2**63),
        lambda m: m.add(Memory("x", "y", {"user": "\ud800"})),
    ],
)
def test_access_without_a_scope_raises(shared: HybridMemory, call: Any) -> None:
    """Report 101, 102: what is missing or unclear fails closed and names the key."""
    with pytest.raises(ScopeError, match=r"user|scoped"):
        call(shared)
    assert shared.collection.count() == 8


def test_an_equality_in_the_filter_chooses_the_scope(shared: HybridMemory) -> None:
    """The same answers as through a bound view; an unknown tenant has nothing, not everything."""
    bound = shared.scoped(user="a").search("Dana Paris 2", profile="bm25", k=9)
    for where in ({"user": "a"}, {"$and": [{"user": {"$eq": "a"}}]}, {"user": np.str_("a")}):
        free = shared.search("Dana Paris 2", profile="bm25", k=9, where=where)
        assert [(h.memory.id, h.score) for h in free.hits] == [(h.memory.id, h.score) for h in bound.hits]
    assert shared.search("Dana", where={"user": "a", "$and": [{"user": "b"}]}).ids == []
    assert shared.search("Dana", where={"user": "nobody"}).ids == []
    assert shared.count({"user": "nobody"}) == 0


def test_tenants_of_other_types_are_other_tenants() -> None:
    """1 is not "1", and what JSON quotes is quoted."""
    names: list[Any] = [1, "1", "a", "a ", 'a"', "a\\", "[]", '"a"', "a,b", "é", "e\u0301", "a\x00", 10**15]
    with make_memory(scope_key="user") as memory:
        for i, name in enumerate(names):
            memory.scoped(user=name).add(Memory(str(i), "apple"))
        for i, name in enumerate(names):
            assert memory.scoped(user=name).search("apple", k=99).ids == [str(i)]
            assert memory.count({"user": name}) == 1
        assert memory.verify().ok


@pytest.fixture
def bound(memory: HybridMemory) -> Any:
    """Two views bound to ordinary metadata in a store without scope keys."""
    a, b = memory.scoped(agent="a"), memory.scoped(agent="b")
    a.add([Memory("a0", "apple one"), Memory("a1", "apple two")])
    b.add([Memory("b0", "apple three")])
    return memory, a, b


def test_views_of_ordinary_metadata_cannot_be_widened_either(bound: Any) -> None:
    """A view bound without scope keys sees, changes and replaces only what is its own."""
    memory, a, b = bound
    for where in ({"agent": "b"}, {"$or": [{"agent": "a"}, {"agent": "b"}]}, {"agent": {"$ne": "zzz"}}, None):
        assert all(i.startswith("a") for i in a.search("apple", where=where, k=9).ids)
        assert all((m.id or "").startswith("a") for m in a.list(where=where))
    assert a.get(["b0", "a0"])[0].id == "a0"
    assert a.delete(["b0"]) == 0
    with pytest.raises(InputError, match="does not exist"):
        a.update("b0", "mine")
    with pytest.raises(ScopeError, match="taken"):
        a.add(Memory("b0", "mine"))
    for value in ("b", None, 1):
        with pytest.raises(InputError):
            a.update("a0", metadata={"agent": value})
    with pytest.raises(InputError):
        a.delete(where={"$and": []})
    assert a.delete(all=True) == 2
    assert (b.count(), memory.count()) == (1, 1)


def test_a_number_that_equals_the_bound_one_does_not_leave_the_view(memory: HybridMemory) -> None:
    """True equals 1 in Python, yet a view bound to 1 would lose sight of it."""
    one = memory.scoped(room=1)
    one.add(Memory("x", "text"))
    for value in (True, 1.0):
        with pytest.raises(ScopeError):
            one.update("x", metadata={"room": value})
    assert one.count() == 1


def test_a_scope_key_must_be_a_key() -> None:
    """Operators and empty or repeated names are refused."""
    for key in ("", "$and", (), ("a", "a"), ("a", 1), 5, {"a"}):
        with pytest.raises(ScopeError, match="scope_key"):
            make_memory(scope_key=key)


def test_rows_without_a_tenant_belong_to_nobody(tmp_path: Any) -> None:
    """Written by others without the key, they are found by no one, and verify() says so."""
    from memhybrid.embedders import HashEmbedder
    from tests.reports.helpers import raw_collection

    raw = raw_collection(tmp_path, "memories")
    raw.add(
        ids=["none", "odd", "ok"],
        documents=["apple"] * 3,
        metadatas=[{"x": 1}, {"user": 1.5}, {"user": "a"}],
        embeddings=HashEmbedder(64).embed_documents(["apple"] * 3),
    )
    with make_memory(tmp_path, scope_key="user") as memory:
        assert memory.scoped(user="a").search("apple", k=9).ids == ["ok"]
        assert "2 memories lack a scope key" in str(memory.verify())
        assert memory.stats()["without_scope"] == 2


def test_a_filter_error_names_no_tenant(shared: HybridMemory) -> None:
    """Errors carry what the caller said, nothing that is stored."""
    with pytest.raises(FilterError) as caught:
        shared.scoped(user="a").search("x", where={"n": {"$regex": "."}})
    assert "Dana" not in str(caught.value)
