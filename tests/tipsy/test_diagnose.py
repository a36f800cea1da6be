"""`diagnose`: the trap is seen where it is, not where it is not, and looking changes nothing."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhybrid import HybridMemory, Memory, Profile
from memhybrid.diagnose import DiagnoseReport, diagnose
from memhybrid.diagnose.measure import spearman
from memhybrid.errors import InputError, ScopeError
from tests.conftest import make_memory
from tests.tipsy.conftest import DAY, NOW, everything

FIRST = ("ba", "ke", "li", "mo", "nu", "pe", "ra", "si", "to", "vu")
SECOND = ("da", "fen", "gor", "hil", "jam", "kot", "lup", "mer", "nas", "ped")
WORDS = [a + b for a in FIRST for b in SECOND]
EVERY = ["tipsy", "balanced", "mem0", "semantic", "bm25", "best"]


def tipsy(usage: float) -> Profile:
    """tipsy with another weight of usage; from 0.2 on it has to be meant."""
    base = Profile.tipsy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return base.replace(signals={**base.signals, "usage": usage}, allow_query_independent=True)


def notes(count: int, *, metadata: bool = True, seed: int = 1) -> list[Memory]:
    """Memories about `count`/10 topics of eight words each."""
    rng = random.Random(seed)
    topics = [rng.sample(WORDS, 8) for _ in range(max(count // 10, 4))]
    made: list[Memory] = []
    for i in range(count):
        text = " ".join(rng.choices(topics[i % len(topics)], k=6) + rng.choices(WORDS, k=3))
        extra = {
            "importance": rng.randint(60, 90), "type": rng.choice(["fact", "event", "identity"]), "created_at": NOW - rng.random() * 6 * DAY
        }  # fmt: skip
        made.append(Memory(f"m{i:04d}", text, extra if metadata else {}))
    return made


@pytest.fixture(scope="module")
def examples() -> Iterator[HybridMemory]:
    """The packaged example memories, with an embedder that knows words alone."""
    from memhybrid.demo import packaged

    with make_memory(None, profile="tipsy", scope_key="user_id") as memory:
        memory.add(packaged().memories)
        yield memory


@pytest.fixture(scope="module")
def store() -> Iterator[HybridMemory]:
    """300 memories."""
    with make_memory(None, profile="tipsy") as memory:
        memory.add(notes(300))
        yield memory


@pytest.mark.parametrize("user", ["maya", "tom", "linyue", "zhaohan"])
def test_the_trap_appears_with_the_weight_of_usage(examples: HybridMemory, user: str) -> None:
    """On the example memories different queries share the more of their results the more usage weighs: at 0.6 they no longer follow."""
    reports = {u: diagnose(examples, where={"user_id": user}, profile=tipsy(u), now=NOW) for u in (0.0, 0.05, 0.2, 0.6)}
    after = [r.rounds[-1].jaccard for r in reports.values()]
    assert after == sorted(after)
    assert after[3] > after[0] + 0.25
    distinct = [r.rounds[-1].distinct_returned for r in reports.values()]
    assert distinct == sorted(distinct, reverse=True)
    assert distinct[3] < 0.7 * distinct[0]
    assert reports[0.0].follows_query
    assert reports[0.05].follows_query
    assert not reports[0.6].follows_query
    assert "usage" in reports[0.6].verdict
    assert reports[0.6].agreement < reports[0.05].agreement


@pytest.mark.parametrize("count", [30, 100, 1000])
@pytest.mark.parametrize("metadata", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_verdict_holds_on_stores_of_any_size(count: int, metadata: bool, seed: int) -> None:
    """At 0.6 results no longer follow the query, at 0 and 0.05 they do, with and without metadata."""
    with make_memory(None) as memory:
        memory.add(notes(count, metadata=metadata, seed=seed))
        verdicts = {u: diagnose(memory, profile=tipsy(u), now=NOW, rounds=3).follows_query for u in (0.0, 0.05, 0.6)}
    assert verdicts == {0.0: True, 0.05: True, 0.6: False}


@pytest.mark.parametrize("name", EVERY)
def test_the_shipped_profiles_follow_the_query(store: HybridMemory, name: str) -> None:
    """None of them falls into the trap; without usage no round changes anything."""
    report = store.diagnose(profile=name, rounds=4)
    assert report.follows_query
    assert 0 <= report.jaccard < 0.5
    if name != "tipsy":
        assert len({(r.jaccard, r.distinct_returned) for r in report.rounds}) == 1
        assert report.query_dependent_weight == 1.0
        assert report.agreement == 1.0


def test_looking_changes_nothing(store: HybridMemory) -> None:
    """Neither counts nor memories: the real ledger is as it was, and a search answers as before."""
    store.search(WORDS[0], 3, now=NOW)
    counts, texts = store.usage(), {m.id: m.text for m in store.list()}
    before = store.search(WORDS[3], 5, now=NOW, record_usage=False)
    store.diagnose(profile=tipsy(0.6), rounds=2)
    assert store.usage() == counts
    assert {m.id: m.text for m in store.list()} == texts
    assert store.search(WORDS[3], 5, now=NOW, record_usage=False).ids == before.ids


def test_it_starts_from_the_usage_that_there_is() -> None:
    """Memories that were returned before pin the results from the first round on, and the report's round 0 shows it."""
    with make_memory(None) as memory:
        ids = memory.add(notes(100))
        fresh = diagnose(memory, profile=tipsy(0.6), rounds=1, now=NOW)
        memory._store.ledger.record(ids[:10], NOW)
        used = diagnose(memory, profile=tipsy(0.6), rounds=1, now=NOW)
    assert used.jaccard > fresh.jaccard
    assert set(used.always_returned) <= set(ids[:10])
    assert used.spread["usage"].spread > fresh.spread["usage"].spread


def test_queries_of_ones_own(store: HybridMemory) -> None:
    """Given queries are the ones that are asked, repeats once; fewer than two different ones are an error."""
    report = store.diagnose(queries=[WORDS[1], WORDS[2], WORDS[1]], rounds=1, k=3)
    assert report.queries == (WORDS[1], WORDS[2])
    assert report.k == 3
    for bad in ([], ["one"], ["one", "one"], ["one", " "], "one", [1, 2]):
        with pytest.raises(InputError):
            store.diagnose(queries=bad)  # type: ignore[arg-type]


def test_queries_are_drawn_from_the_scope_and_differ(store: HybridMemory) -> None:
    """Twelve first sentences of this scope's own memories, the same at every call."""
    report = store.diagnose(rounds=1)
    texts = {m.text for m in store.list()}
    assert len(set(report.queries)) == 12
    assert all(any(q in text for text in texts) for q in report.queries)
    assert store.diagnose(rounds=1).queries == report.queries


def test_one_tenant_alone_is_looked_at(examples: HybridMemory) -> None:
    """A store of tenants needs one; its queries and results are that tenant's, by `where` as by a view."""
    with pytest.raises(ScopeError):
        examples.diagnose()
    view = examples.scoped(user_id="tom")
    by_view, by_where = view.diagnose(rounds=1), examples.diagnose(where={"user_id": "tom"}, rounds=1)
    assert by_view.queries == by_where.queries
    assert by_view.memories == by_where.memories == len(view.list(include_outdated=False))
    assert all(i.startswith("tom") for i in by_view.always_returned_after)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("name", ["tipsy", "balanced", "mem0"])
def test_too_little_to_tell(count: int, name: str) -> None:
    """An empty or tiny scope gives a report that says so, without error."""
    with make_memory(None) as memory:
        memory.add(notes(count))
        report = memory.diagnose(profile=name)
    assert report.follows_query
    assert "Too little to tell" in report.verdict
    assert str(report)
    json.dumps(report.as_dict(), allow_nan=False)


def test_a_signal_that_ranks_nothing_is_named_with_its_remedy() -> None:
    """Importance in 60-90, a store of one week, one type: each is said to rank little, and what to do; stretched, it is not."""
    with make_memory(None) as memory:
        memory.add([Memory(m.id, m.text, {**m.metadata, "type": "fact"}) for m in notes(100)])
        plain = diagnose(memory, profile=tipsy(0.05), rounds=1, now=NOW).spread
        stretched = diagnose(memory, profile=tipsy(0.05).replace(stretch="quantile"), rounds=1, now=NOW).spread
    assert "stretch" in (plain["importance"].remedy or "")
    assert "recency_days" in (plain["recency"].remedy or "")
    assert "one type" in (plain["type"].remedy or "")
    assert "min_msg_id" in (plain["range"].remedy or "")
    assert plain["semantic"].remedy is plain["lexical"].remedy is stretched["importance"].remedy is None
    assert stretched["importance"].spread > 0.8


def test_a_profile_without_any_query_does_not_follow_it() -> None:
    """Importance alone answers every query alike."""
    with make_memory(None) as memory:
        memory.add(notes(50))
        profile = everything("importance", sources=("importance",))
        report = memory.diagnose(profile=profile, rounds=1)
    assert not report.follows_query
    assert report.jaccard == 1.0
    assert len(report.always_returned) == report.k
    assert report.query_dependent_weight == 0.0


def test_the_report_as_json_and_as_a_table(store: HybridMemory) -> None:
    """JSON has what the documentation promises, all finite; the table shows verdict, rounds and signals."""
    report = store.diagnose(profile=tipsy(0.6), rounds=3)
    data: dict[str, Any] = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert {
        "query_dependent_weight", "usage_weight", "jaccard", "always_returned", "score_usage_correlation", "spread", "rounds",
        "follows_query",
        "verdict",
    } <= set(data)  # fmt: skip
    assert [r["round"] for r in data["rounds"]] == [0, 1, 2, 3]
    assert set(data["rounds"][0]) == {"round", "jaccard", "distinct_returned"}
    assert data["query_dependent_weight"] == pytest.approx(0.56 / 1.6)
    assert data["usage_weight"] == 0.6
    assert set(data["spread"]) == set(Profile.tipsy().signals)
    assert all(-1 <= data[key] <= 1 for key in ("jaccard", "score_usage_correlation", "agreement"))
    shown = str(report)
    for part in (report.verdict, "importance", "overlap", "usage"):
        assert part in shown


def test_a_reranker_is_not_asked(store: HybridMemory) -> None:
    """The first stage is measured; that the reranker was left out is said."""

    def never(query: str, texts: Any) -> Any:
        raise AssertionError

    report = store.diagnose(profile=Profile.tipsy().with_reranker(never, rerank_margin=None), rounds=1)
    assert any("without reranking" in note for note in report.notes)


@pytest.mark.parametrize("bad", [{"rounds": 0}, {"k": 0}, {"k": 1.5}, {"rounds": True}, {"profile": "nothing"}])
def test_what_cannot_be_measured_is_refused(store: HybridMemory, bad: dict[str, Any]) -> None:
    """Rounds, k and profile are checked like everywhere."""
    with pytest.raises(ValueError, match=r"rounds|k:|profile"):
        store.diagnose(**bad)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=30))
def test_rank_correlation_is_spearmans(pairs: list[tuple[int, int]]) -> None:
    """Pearson's correlation of mean ranks; 0 where one side is constant."""
    one, two = [p[0] for p in pairs], [p[1] for p in pairs]

    def ranks(values: list[int]) -> list[float]:
        return [sum(v < x for v in values) + (sum(v == x for v in values) - 1) / 2 for x in values]

    expected = 0.0
    if len(set(one)) > 1 and len(set(two)) > 1:
        expected = float(np.corrcoef(ranks(one), ranks(two))[0, 1])
    assert spearman(np.array(one, dtype=float), np.array(two, dtype=float)) == pytest.approx(expected, abs=1e-9)


def test_the_report_is_what_the_method_returns(store: HybridMemory) -> None:
    """`memory.diagnose(…)` and `memhybrid.diagnose.diagnose(memory, …)` are one."""
    assert isinstance(store.diagnose(rounds=1), DiagnoseReport)
