"""The ten steps of profile `tipsy`, in order and with their limits."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhybrid import HybridMemory, Memory, Profile
from memhybrid.embedders import HashEmbedder
from memhybrid.errors import DegradedError, InputError, ScopeError
from memhybrid.protocols import Float32
from tests.conftest import make_memory
from tests.tipsy.conftest import NOW

TIPSY = Profile.tipsy()


class Plane(HashEmbedder):
    """Vectors of two dimensions: a text "…@30" lies at 30 degrees, every other at 0. Fails, or hangs, when told to."""

    def __init__(self) -> None:
        super().__init__(2)
        self.error: Exception | None = None
        self.hold: threading.Event | None = None

    def embed_documents(self, texts: Sequence[str]) -> Float32:
        angles = np.radians([float(t.rpartition("@")[2]) if "@" in t else 0.0 for t in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def embed_query(self, texts: Sequence[str]) -> Float32:
        if self.hold is not None:
            self.hold.wait(60)
        if self.error is not None:
            raise self.error
        return self.embed_documents(texts)


@pytest.fixture
def plane() -> Plane:
    return Plane()


@pytest.fixture
def store(plane: Plane) -> Iterator[HybridMemory]:
    """150 memories at 0°, 0.5°, … from the query, importance falling with nearness; scope and sessions apart."""
    with make_memory(None, embedder=plane, profile="tipsy", scope_key=("user_id", "character_id")) as memory:
        rows = [
            Memory(
                f"m{i:03d}",
                f"note w{i} @{i / 2}",
                {
                    "user_id": "u",
                    "character_id": "c",
                    "session_id": "s1" if i % 3 else "s2",
                    "importance": i / 2,
                    "msg_id": i,
                },
            )
            for i in range(150)
        ]
        memory.add(rows)
        memory.scoped(user_id="u", character_id="other").add([Memory("x", "note w0 @0", {"importance": 100})])
        memory.scoped(user_id="u2", character_id="c").add([Memory("y", "note w0 @0", {"importance": 100})])
        yield memory


def ask(store: HybridMemory, query: str = "note @0", limit: int = 5, **options: Any) -> Any:
    view = store.scoped(user_id="u", character_id="c")
    return view.search(query, limit, now=NOW, **{"record_usage": False, **options})


# --- 1, 2: embedding and recall --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [RuntimeError("429 rate limit"), TimeoutError("no answer"), OSError("connection reset")]
)
def test_a_failed_embedding_leaves_vectors_out(store: HybridMemory, plane: Plane, error: Exception) -> None:
    """Rate limit, time-out or failure: semantic counts 0, the fallback still answers, reranking is skipped, the trace says so."""
    plane.error = error
    profile = TIPSY.with_reranker(lambda q, t: [1.0] * len(t))
    result = ask(store, profile=profile)
    assert len(result) == 5
    assert result.trace.candidates == {"semantic": 0, "importance": 10}
    assert all(hit.signals["semantic"] is None for hit in result)
    assert all("semantic" not in hit.details for hit in result)
    assert "rerank skipped: the query could not be embedded" in result.trace.notes
    assert any("embedder" in text for text in result.trace.degraded)
    with pytest.raises(DegradedError):
        ask(store, strict=True)


def test_an_embedder_that_hangs_is_left_behind(store: HybridMemory, plane: Plane) -> None:
    """An embedder that takes longer than the profile allows counts as failed."""
    plane.hold = threading.Event()
    try:
        result = ask(store, profile=TIPSY.replace(embed_timeout_s=0.05))
    finally:
        plane.hold.set()
    assert len(result) == 5
    assert any("no answer within" in text for text in result.trace.degraded)


@pytest.mark.parametrize(("limit", "pool"), [(1, 20), (2, 40), (3, 60), (5, 100), (50, 100)])
def test_recall_takes_twenty_a_result_but_a_hundred_at_most(store: HybridMemory, limit: int, pool: int) -> None:
    """Vector recall brings min(20·limit, 100) candidates; the fallback max(limit, 10); there is no distance cut-off."""
    result = ask(store, limit=limit)
    assert result.trace.candidates == {"semantic": pool, "importance": max(limit, 10)}
    assert len(result) == limit


def test_scope_and_session_are_hard_filters(store: HybridMemory) -> None:
    """Other users and characters never answer, even as the best match; a session narrows both sources before their limits."""
    everything = ask(store, limit=150)
    assert not {"x", "y"} & set(everything.ids)
    result = ask(store, limit=40, where={"session_id": "s2"})
    assert {hit.memory.metadata["session_id"] for hit in result} == {"s2"}
    assert result.trace.candidates == {"semantic": 50, "importance": 40}
    view = store.scoped(user_id="u", character_id="c", session_id="s2")
    assert view.search("note @0", 40, now=NOW, record_usage=False).ids == result.ids
    with pytest.raises(ScopeError):
        store.search("note @0", 3)
    with pytest.raises(ScopeError):
        store.scoped(user_id="u").search("note @0", 3)


# --- 3, 4: fallback and merge ----------------------------------------------------------------------------------------


def test_the_fallback_has_its_true_similarity(store: HybridMemory) -> None:
    """The most important memories join with the cosine that they have, not with a perfect one; both finders are named."""
    result = ask(store, limit=1)
    hits = {h.memory.id: h for h in ask(store, limit=150, profile=TIPSY.replace(sources=("everything",)))}
    important = [f"m{i:03d}" for i in range(149, 139, -1)]
    assert result.trace.pool == 30
    wide = ask(store, limit=5)
    for hit in ask(store, limit=110):
        angle = int(hit.memory.id[1:]) / 2
        assert hit.signals["semantic"] == pytest.approx(math.cos(math.radians(angle)), abs=1e-6)
        assert hit.score == pytest.approx(hits[hit.memory.id].score)
    assert {h.memory.id for h in wide} <= set(hits)
    fallback = [h for h in ask(store, limit=110) if h.sources == ("importance",)]
    assert {h.memory.id for h in fallback} <= set(important) | set(hits)


def test_a_memory_that_both_sources_bring_counts_once(plane: Plane) -> None:
    """Three memories are three candidates and three hits, found by both sources."""
    with make_memory(None, embedder=plane, profile="tipsy") as memory:
        memory.add([(f"a @{i}", {"importance": 50}) for i in range(3)])
        result = memory.search("a @0", 10, record_usage=False)
    assert result.trace.pool == len(result) == 3
    assert {h.sources for h in result} == {("semantic", "importance")}


def test_the_fallback_takes_equals_by_id(plane: Plane) -> None:
    """Where more share the importance than fit, ids decide, not arrival; memories without one do not join."""
    ids = [f"k{i:02d}" for i in range(14)]
    for order in (ids, ids[::-1]):
        with make_memory(None, embedder=plane, profile="tipsy") as memory:
            memory.add([Memory(i, "a @0", {"importance": 50}) for i in order])
            memory.add([Memory("none", "a @0")])
            found = memory.search("", 3, record_usage=False, now=NOW)
        assert found.trace.candidates == {"semantic": 0, "importance": 10}
        assert found.ids == ["k09", "k08", "k07"]


# --- 5, 6: score and filters -----------------------------------------------------------------------------------------


def test_the_score_is_the_sum_of_what_it_shows(store: HybridMemory) -> None:
    """score = clamp(Σ weight·value + adjustments), with 0.5 for unknown recency and type, 0 for unknown others."""
    for hit in ask(store, limit=20):
        total = sum(
            weight * (value if value is not None else 0.5 if name in ("importance", "recency", "type") else 0.0)
            for name, weight in TIPSY.signals.items()
            for value in [hit.signals[name]]
        )
        assert hit.score == pytest.approx(min(max(total + sum(hit.adjustments.values()), 0), 1), abs=1e-9)


def test_the_three_adjustments(plane: Plane) -> None:
    """-0.08 identity without an identity query; +0.04 event or relationship, +0.03 importance ≥ 0.9, both with a lexical match."""
    with make_memory(None, embedder=plane, profile="tipsy") as memory:
        memory.add(
            [
                Memory("identity", "harbour master", {"type": "identity", "importance": 10}),
                Memory("event", "harbour festival", {"type": "event", "importance": 95}),
                Memory("fact", "harbour depth", {"type": "fact", "importance": 90}),
                Memory("elsewhere", "mountain", {"type": "relationship", "importance": 95}),
            ]
        )
        about = {h.memory.id: dict(h.adjustments) for h in memory.search("harbour", 4, record_usage=False)}
        who = {h.memory.id: dict(h.adjustments) for h in memory.search("who am I? harbour", 4, record_usage=False)}
        mine = TIPSY.replace(identity_predicate=lambda query: "harbour" in query)
        own = {h.memory.id: dict(h.adjustments) for h in memory.search("harbour", 4, profile=mine, record_usage=False)}
    assert about == {
        "identity": {"identity_penalty": -0.08},
        "event": {"intent_boost": 0.04, "important_match_boost": 0.03},
        "fact": {"important_match_boost": 0.03},
        "elsewhere": {},
    }
    assert who["identity"] == own["identity"] == {}


@pytest.mark.parametrize("query", ["who am I", "我叫什么名字", "What is her name?", "你几岁了"])
def test_queries_about_identity_in_two_languages(query: str) -> None:
    """The default predicate knows English and Chinese questions about who someone is."""
    from memhybrid.identity import is_identity_query

    assert is_identity_query(query)
    assert not is_identity_query("What did we eat at the harbour? 昨天吃了什么")


def test_only_scores_above_zero_are_kept(plane: Plane) -> None:
    """A memory that scores 0 is not returned, however many were asked for."""
    with make_memory(None, embedder=plane, profile="tipsy") as memory:
        memory.add(
            [
                Memory("against", "b @180", {"importance": 0, "updated_at": 0, "type": "identity"}),
                Memory("with", "a @0"),
            ]
        )
        profile = TIPSY.replace(signals={"semantic": 0.38, "importance": 0.2, "recency": 0.04})
        result = memory.search("a @0", 10, profile=profile, record_usage=False, now=NOW)
    assert result.ids == ["with"]


def test_prefix_only_keeps_spans_that_end_by_the_last_message(store: HybridMemory) -> None:
    """With `prefix_only` nothing beyond max_msg_id comes back; without it the range only weighs."""
    only = ask(store, limit=150, max_msg_id=30, prefix_only=True)
    assert {int(i[1:]) for i in only.ids} == set(range(31))
    weighed = ask(store, limit=150, max_msg_id=30)
    assert len(weighed) > 31
    assert {h.signals["range"] for h in weighed} == {0.0, 1.0}


def test_prefix_only_looks_at_the_whole_span(plane: Plane) -> None:
    """A summary of messages 5 to 12 is not part of the prefix that ends at 10; one of 5 to 10 is; no message number is not."""
    with make_memory(None, embedder=plane, profile="tipsy") as memory:
        memory.add(
            [
                Memory("over", "a", {"min_msg_id": 5, "max_msg_id": 12}),
                Memory("upto", "a", {"min_msg_id": 5, "max_msg_id": 10}),
                Memory("none", "a"),
                Memory("single", "a", {"msg_id": 10}),
            ]
        )
        result = memory.search("a", 10, max_msg_id=10, prefix_only=True, record_usage=False)
        both = memory.search("a", 10, min_msg_id=11, max_msg_id=20, record_usage=False)
    assert set(result.ids) == {"upto", "single"}
    assert {h.memory.id for h in both if h.signals["range"] == 1.0} == {"over"}


def test_without_a_query_the_range_filters(store: HybridMemory) -> None:
    """No query and a range: the most important memories that lie in it. No query and no range: the most important ones."""
    result = ask(store, "", limit=5, min_msg_id=143, max_msg_id=146)
    assert result.ids == ["m146", "m145", "m144", "m143"]
    assert ask(store, "", limit=3).ids == ["m149", "m148", "m147"]
    assert ask(store, " \n", limit=3, where={"session_id": "s2"}).ids == ["m147", "m144", "m141"]


# --- 7: order --------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.sampled_from([10, 20]), st.sampled_from([None, 1, 2])), min_size=1, max_size=12), st.randoms()
)
@settings(max_examples=25, deadline=None)
def test_order_is_score_then_update_then_id_all_descending(rows: list[tuple[int, int | None]], random: Any) -> None:
    """A total order, whatever the order of arrival; a missing date is oldest, ids compare as text."""
    memories = [
        Memory(f"{i}", "a", {"importance": importance, **({} if at is None else {"updated_at": NOW - 1e8 + at})})
        for i, (importance, at) in enumerate(rows)
    ]
    expected = sorted(
        memories,
        key=lambda m: (m.metadata["importance"], m.metadata.get("updated_at", -math.inf), m.id),
        reverse=True,
    )
    random.shuffle(memories)
    profile = TIPSY.replace(signals={"semantic": 0.4, "importance": 0.2})
    with make_memory(None, embedder=Plane(), profile=profile) as memory:
        memory.add(memories)
        result = memory.search("a", len(rows), now=NOW, record_usage=False)
    assert result.ids == [m.id for m in expected]


# --- 9: budget is in test_budget, 10: in test_usage; the whole call -----------------------------------------------------


def test_outdated_memories_stay_out_of_every_source(store: HybridMemory) -> None:
    """Expired and superseded memories are neither recalled nor brought by the fallback, unless asked for."""
    view = store.scoped(user_id="u", character_id="c")
    view.expire("m149", at=NOW - 1)
    view.supersede("m148", by="m000")
    view.expire("m147", at=NOW + 1)
    assert ask(store, "", limit=2).ids == ["m147", "m146"]
    assert ask(store, "", limit=2, include_outdated=True).ids == ["m149", "m148"]
    with pytest.raises(InputError):
        view.supersede("m000", by="m000")
    with pytest.raises(InputError):
        view.supersede("m000", by="nobody")


def test_several_queries_get_what_each_gets_alone(store: HybridMemory) -> None:
    """`search_many` shares work and changes nothing."""
    view = store.scoped(user_id="u", character_id="c")
    queries = ["note @0", "", "w7 @40", "note @90"]
    together = view.search_many(queries, 5, now=NOW, record_usage=False)
    for query, result in zip(queries, together, strict=True):
        alone = ask(store, query, limit=5)
        assert result.ids == alone.ids
        assert [h.score for h in result] == pytest.approx([h.score for h in alone], abs=1e-9)


@pytest.mark.parametrize("query", ["note @0", ""])
def test_an_empty_scope_gives_an_empty_result(plane: Plane, query: str) -> None:
    """Nothing stored is nothing found, without error, usage or division by zero."""
    with make_memory(None, embedder=plane, profile="tipsy") as memory:
        result = memory.search(query, 5)
        assert len(result) == 0
        assert memory.usage() == {}
