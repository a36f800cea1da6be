"""The properties that the profile `balanced` must have whatever its method (spec section 3); some stand in tests/reports/test_scores.py."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memhybrid import Hit, HybridMemory, Memory, Profile, SearchResult
from memhybrid.embedders import HashEmbedder
from memhybrid.fusion import neighbour_lift, renormalised
from memhybrid.neighbours import ANSWER, NEAR, QUESTION, SAME_SESSION
from tests.conftest import make_memory
from tests.reports.helpers import found, word

BALANCED = Profile.balanced()
FAR_FROM_ALL = BALANCED.exhaustive_up_to + 50
"""Memories of a store that is no longer looked through as a whole."""
QUERY = [1.0, 0.0]
NOW = datetime(2025, 6, 1, tzinfo=timezone.utc)
PAST = NOW - timedelta(days=1)
EXACT = 1e-9


class Latin(HashEmbedder):
    """An embedder that is meant for ASCII alone."""

    def covers(self, text: str) -> bool:
        """Whether all of it is ASCII."""
        return text.isascii()


def at(cosine: float) -> list[float]:
    """A vector with this similarity to QUERY."""
    return [cosine, math.sqrt(1.0 - cosine * cosine)]


def fillers(n: int, low: float = -0.2, high: float = 0.9) -> list[Memory]:
    """Memories of words that nothing else has, from the most to the least similar to QUERY."""
    return [
        Memory(f"filler{i:04d}", f"{word(2 * i)} {word(2 * i + 1)}", {}, at(high - (high - low) * i / n))
        for i in range(n)
    ]


def hit_of(result: SearchResult, identifier: str) -> Hit:
    """The hit of a memory."""
    return next(hit for hit in result if hit.memory.id == identifier)


def base(hit: Hit) -> float:
    """The score by the signals alone."""
    return sum(detail.contribution for detail in hit.details.values())


# --- candidates ----------------------------------------------------------------------------------------------------------


def test_candidates_are_the_union_each_with_its_true_similarity() -> None:
    """What only a word, a name spelt nearly so, or a date brings is a candidate, and shows the cosine that it really has."""
    others = {
        "word": Memory("word", "zx-4471 ships", {}, at(-0.9)),
        "name": Memory("name", "Lindqvist", {}, at(-0.8)),
        "date": Memory("date", word(9_001), {"created_at": "2025-03-02T10:00:00Z"}, at(-0.7)),
    }
    query = "Did Lindqwist order ZX-4471 on 2 March 2025?"
    with make_memory(embedder=HashEmbedder(2)) as memory:
        near = fillers(FAR_FROM_ALL)
        memory.add([*near, *others.values()])
        result = memory.search(query, 15, embedding=QUERY, now=NOW)
        assert result.trace.candidates == {"semantic": BALANCED.pool_min, "bm25": 1, "entity": 2, "date": 1}
        assert result.trace.pool == BALANCED.pool_min + 3
        assert {hit.memory.id: hit.sources for hit in result if hit.memory.id in others} == {
            "word": ("bm25", "entity"),
            "date": ("date",),
        }
        # Exactly as many as there are candidates, so that each of them is seen.
        narrow = BALANCED.replace(pool_max=BALANCED.pool_min)
        everything = memory.search(query, BALANCED.pool_min + 3, embedding=QUERY, now=NOW, profile=narrow)
        vectors: dict[str | None, Any] = {m.id: m.embedding for m in [*near, *others.values()]}
        assert len(everything) == everything.trace.pool == BALANCED.pool_min + 3
        assert hit_of(everything, "name").sources == ("entity",)
        for hit in everything:
            assert hit.details["semantic"].raw == pytest.approx(vectors[hit.memory.id][0], abs=1e-6)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_one_common_word_does_not_displace_a_close_memory(share: float) -> None:
    """An unrelated memory that shares one common word with the query ranks below one that is close and shares none."""
    n = 100
    memories = [
        Memory(f"m{i:03d}", f"{'coffee ' if i < share * n else ''}{word(2 * i)} {word(2 * i + 1)}", {}, at(0.0))
        for i in range(n)
    ]
    with make_memory(embedder=HashEmbedder(2)) as memory:
        memory.add([*memories, Memory("close", "espresso at dawn", {}, at(0.9))])
        result = memory.search("coffee habits every morning", 5, embedding=QUERY)
        assert result.ids[0] == "close"
        assert result.hits[1].signals["bm25"]


# --- what a score means --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fruit() -> Iterator[HybridMemory]:
    """Sixty memories outside of any session, with one to three words of a query among others."""
    chance = random.Random(5)
    with make_memory() as memory:
        memory.add(
            [
                Memory(
                    f"m{i:02d}",
                    " ".join([*chance.sample(["apple", "pear", "plum"], chance.randint(0, 3)), word(i), word(i % 7)]),
                    {"n": i, "created_at": f"2025-03-{i % 28 + 1:02d}"} if i % 3 else {"n": i},
                )
                for i in range(60)
            ]
        )
        yield memory


@given(chosen=st.sets(st.integers(0, 59), min_size=1))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_with_frozen_statistics_leaving_out_others_changes_no_score(fruit: HybridMemory, chosen: set[int]) -> None:
    """A filter takes any other memories away and leaves N, df and average length: every score stays what it was."""
    query = "apple, pear and plum of 3 March 2025"
    scores = dict(found(fruit.search(query, 60, now=NOW)))
    kept = dict(found(fruit.search(query, 60, now=NOW, where={"n": {"$in": sorted(chosen)}})))
    assert set(kept) == {f"m{i:02d}" for i in chosen}
    assert kept == pytest.approx({name: scores[name] for name in kept}, abs=EXACT)


def test_with_frozen_statistics_other_memories_in_place_of_others_change_no_score() -> None:
    """Others with other ids, words, vectors, dates and order, yet as many, as long and with the query's words as often."""
    targets = [
        Memory("t1", "apple pear apple qqa qqb qqc qqd"),
        Memory("t2", "plum qqa qqe"),
        Memory("t3", "qqf qqg qqh qqi", {"created_at": "2025-03-04"}),
    ]
    answers: list[dict[str, float]] = []
    for seed in range(3):
        chance = random.Random(seed)
        others = [
            Memory(
                f"{chance.random()}",
                " ".join(
                    [
                        *(name for name, every in (("apple", 3), ("pear", 7), ("plum", 2)) if i % every == 0),
                        *(word(1000 * (seed + 1) + 20 * i + j) for j in range(9)),
                    ]
                ),
                {"created_at": f"2025-{chance.randint(1, 12)}-01"} if chance.random() < 0.5 else {},
            )
            for i in range(40)
        ]
        memories = [*targets, *others]
        chance.shuffle(memories)
        with make_memory() as memory:
            memory.add(memories)
            every = dict(found(memory.search("apple, pear and plum of 3 March 2025", 43, now=NOW)))
        answers.append({m.id or "": every[m.id or ""] for m in targets})
    assert answers[0]["t1"] > 0.2
    assert answers[1] == pytest.approx(answers[0], abs=EXACT)
    assert answers[2] == pytest.approx(answers[0], abs=EXACT)


HOPELESS = (
    "How do I configure a Kubernetes ingress controller?",
    "Which striker won the golden boot in 1986?",
    "Explain the Treaty of Westphalia",
    "How many moons does Neptune have?",
    "quarterly dividend yield of utility stocks",
    "monad transformers in Haskell",
    "How does mitochondrial DNA replicate?",
    "What is the boiling point of tungsten?",
)


@pytest.fixture(scope="module")
def best_scores() -> tuple[list[float], list[float], int]:
    """Best scores of good and of hopeless queries to the example memories in English; hopeless ones that the floor leaves hits."""

    def lines(name: str) -> list[Any]:
        text = resources.files("memhybrid.data").joinpath(name).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    users = ("maya", "tom")
    with HybridMemory.open(scope_key="user_id", analyzer="fast") as memory:
        questions = [q for q in lines("example_questions.jsonl") if q["user_id"] in users]
        rows = [row for row in lines("example_memories.jsonl") if row["metadata"]["user_id"] in users]
        memory.add([Memory(row["id"], row["text"], row["metadata"]) for row in rows])
        views = {user: memory.scoped(user_id=user) for user in users}
        good = [views[q["user_id"]].search(q["text"], 1, now=NOW).hits[0].score for q in questions]
        asked = [(views[user], query) for user in users for query in HOPELESS]
        hopeless = [view.search(query, 1, now=NOW).hits[0].score for view, query in asked]
        floor = BALANCED.recommended_min_score
        answered = sum(bool(view.search(query, min_score=floor, now=NOW).hits) for view, query in asked)
    return good, hopeless, answered


def test_hopeless_queries_score_clearly_below_good_ones(best_scores: tuple[list[float], list[float], int]) -> None:
    """On the packaged examples the best score of no hopeless query comes near that of a usual good one."""
    good, hopeless, _ = best_scores
    assert len(good) >= 10
    assert max(hopeless) < statistics.median(good) - 0.15
    assert statistics.median(hopeless) < 0.5 * statistics.quantiles(good)[0]


def test_the_recommended_floor_makes_nothing_an_answer(best_scores: tuple[list[float], list[float], int]) -> None:
    """With `min_score=profile.recommended_min_score` a hopeless query has no hits and four of five good ones still have."""
    good, _, answered = best_scores
    assert BALANCED.recommended_min_score is not None
    assert answered == 0
    assert sum(score >= BALANCED.recommended_min_score for score in good) >= 0.8 * len(good)


def test_without_a_floor_k_is_filled_though_no_source_brings_anything() -> None:
    """k hits come back from a store of any size as long as it has k memories, also where nothing matches."""
    with make_memory(embedder=Latin(8)) as memory:
        memory.add([Memory(f"m{i:04d}", word(i)) for i in range(FAR_FROM_ALL)])
        result = memory.search("没有", 37)
        assert sum(result.trace.candidates.values()) == 0
        assert result.ids == [f"m{i:04d}" for i in range(37)]
        assert len(memory.search("没有", 2 * FAR_FROM_ALL)) == FAR_FROM_ALL


# --- what a memory does not have -----------------------------------------------------------------------------------------

_number = st.floats(0, 1)
_tables = st.integers(1, 5).flatmap(
    lambda signals: st.tuples(
        st.lists(st.floats(0.01, 2), min_size=signals, max_size=signals),
        st.lists(st.lists(st.one_of(st.none(), _number), min_size=signals, max_size=signals), min_size=1, max_size=8),
    )
)


@given(table=_tables)
def test_what_is_not_known_is_dropped_and_the_weights_renormalised(
    table: tuple[list[float], list[list[float | None]]],
) -> None:
    """A score is Σ w·s / Σ w over the signals that are known for the memory, and 0 where none is."""
    weights, memories = table
    names = [f"s{i}" for i in range(len(weights))]
    values = {
        name: np.array([math.nan if m[i] is None else m[i] for m in memories], dtype=np.float64)
        for i, name in enumerate(names)
    }
    fused = renormalised(values, dict(zip(names, weights, strict=True)))
    for i, memory in enumerate(memories):
        known = [(w, s) for w, s in zip(weights, memory, strict=True) if s is not None]
        total = sum(w for w, _ in known)
        expected = sum(w * s for w, s in known) / total if known else 0.0
        assert fused.scores[i] == pytest.approx(expected, abs=EXACT)
        assert 0.0 <= fused.scores[i] <= 1.0
        assert sum(fused.contributions[name][i] for name in names) == pytest.approx(expected, abs=EXACT)
        shares = {name: 0.0 if s is None else w / total for name, w, s in zip(names, weights, memory, strict=True)}
        assert {name: fused.weights[name][i] for name in names} == pytest.approx(shares, abs=EXACT)


def test_a_memory_without_vector_or_date_and_a_query_without_terms_are_scored_by_the_rest() -> None:
    """A signal without a value for a memory is None there, has no weight, and the others share the whole."""
    weights = {BALANCED.make_signal(name).name: weight for name, weight in BALANCED.signals.items()}
    missing: dict[str, set[str]] = {}
    with make_memory(embedder=Latin(32)) as memory:
        memory.add(
            [
                Memory("both", "sourdough bread", {"created_at": "2025-03-02"}),
                Memory("undated", "sourdough bread"),
                Memory("no vector", "面包 sourdough", {"created_at": "2025-03-02"}),
            ]
        )
        for query in ("sourdough on 1 March 2025", "?!"):
            for hit in memory.search(query, 3, profile=BALANCED, now=NOW):
                known = {name: value for name, value in hit.signals.items() if value is not None}
                total = sum(weights[name] for name in known)
                expected = sum(weights[name] * value for name, value in known.items()) / total if known else 0.0
                assert hit.score == pytest.approx(expected, abs=EXACT)
                assert set(hit.details) == set(known)
                assert sum(d.weight for d in hit.details.values()) == pytest.approx(1.0 if known else 0.0)
                if query != "?!":
                    missing[hit.memory.id or ""] = {"semantic", "date", "bm25"} - set(known)
                else:
                    assert "bm25" not in known
        assert missing == {"both": set(), "undated": {"date"}, "no vector": {"semantic"}}


# --- from one memory on, in Chinese as in English ------------------------------------------------------------------------


@pytest.mark.parametrize("embedder", [HashEmbedder(64), Latin(64)], ids=["covered", "not covered"])
@pytest.mark.parametrize(
    ("text", "query", "others"),
    [
        (
            "Joanna bakes sourdough bread on Sundays",
            "who bakes sourdough",
            ["Peter sells bread", "the cat is called Mia", "rain on Sundays"],
        ),
        ("周末我喜欢喝榛子拿铁", "谁喜欢榛子拿铁", ["周末下雨了", "猫叫咪咪", "我喜欢爬山"]),
    ],
    ids=["English", "Chinese"],
)
def test_one_memory_and_several_are_found_in_chinese_as_in_english(
    text: str, query: str, others: list[str], embedder: HashEmbedder
) -> None:
    """A store of one memory answers with a positive score, and the right one of several comes first."""
    with make_memory(embedder=embedder) as memory:
        memory.add(Memory("right", text))
        alone = memory.search(query)
        assert alone.ids == ["right"]
        assert 0 < alone.hits[0].score <= 1
        memory.add(others)
        assert memory.search(query).ids[0] == "right"
        assert memory.search(query).hits[0].score > memory.search(query).hits[1].score + 0.1


# --- context: neighbours in a session ------------------------------------------------------------------------------------

BREAD = "sourdough bread"


def by_number(position: int) -> dict[str, Any]:
    """A place in the session by message number."""
    return {"msg_id": position}


def by_time(position: int) -> dict[str, Any]:
    """A place in the session by time."""
    return {"created_at": (NOW + timedelta(minutes=position * position)).isoformat()}


@pytest.mark.parametrize("place", [by_number, by_time])
def test_neighbours_of_a_strong_hit_gain_by_distance_and_stay_below_it(
    place: Callable[[int], dict[str, Any]],
) -> None:
    """By `msg_id`, else `created_at`, a memory gains a share of a stronger neighbour's lead, and none from another session."""
    with make_memory(embedder=HashEmbedder(2)) as memory:
        memory.add(
            [
                Memory(f"{session}{i}", word(10 * i + ord(session)), {"session_id": session, **place(i)}, at(0.0))
                for session in "st"
                for i in range(9)
                if (session, i) != ("s", 4)
            ]
        )
        memory.add(Memory("strong", BREAD, {"session_id": "s", **place(4)}, at(1.0)))
        memory.add([Memory("outside", word(1), place(4), at(0.0)), Memory("weak", word(2), {}, at(0.3))])
        result = memory.search(BREAD, 50, embedding=QUERY, now=NOW)
    strong = hit_of(result, "strong")
    assert result.ids[0] == "strong"
    assert not strong.adjustments
    for hit in result.hits[1:]:
        name = hit.memory.id or ""
        lead = base(strong) - base(hit)
        kappa = NEAR.get(abs(int(name[1]) - 4), SAME_SESSION) if name[0] == "s" else 0.0
        assert hit.score == pytest.approx(base(hit) + kappa * lead, abs=EXACT), name
        assert hit.score < strong.score


def test_a_neighbour_that_no_source_brings_is_found_next_to_its_strong_hit() -> None:
    """In a store that is not looked through as a whole the messages beside a strong hit become candidates of their own."""
    said = {"session_id": "s"}
    with make_memory(embedder=HashEmbedder(2)) as memory:
        memory.add(
            [
                *fillers(FAR_FROM_ALL, high=0.3),
                Memory("strong", BREAD, {**said, "msg_id": 7}, at(1.0)),
                Memory("beside", word(9_001), {**said, "msg_id": 8, "hidden": False}, at(-1.0)),
                Memory("hidden", word(9_002), {**said, "msg_id": 6, "hidden": True}, at(-1.0)),
                Memory("far", word(9_003), {**said, "msg_id": 20}, at(-1.0)),
            ]
        )
        result = memory.search(BREAD, 5, embedding=QUERY)
        assert set(result.ids[:3]) == {"strong", "beside", "hidden"}
        assert hit_of(result, "beside").sources == ("context",)
        filtered = memory.search(BREAD, 300, embedding=QUERY, where={"hidden": {"$ne": True}})
        assert filtered.ids[:2] == ["strong", "beside"]
        assert "hidden" not in filtered.ids
        assert "hidden" not in [dropped.id for dropped in filtered.trace.dropped]


def test_a_strong_memory_that_the_filter_excludes_lifts_nobody() -> None:
    """Under a filter neither the hit nor what it would have lent to its neighbours is there."""
    with make_memory(embedder=HashEmbedder(2)) as memory:
        memory.add(
            [
                Memory("strong", BREAD, {"session_id": "s", "msg_id": 1, "kind": "a"}, at(1.0)),
                Memory("beside", "jam", {"session_id": "s", "msg_id": 2, "kind": "b"}, at(0.2)),
            ]
        )
        with_it, without = (memory.search(BREAD, embedding=QUERY, where=where) for where in (None, {"kind": "b"}))
        assert hit_of(with_it, "beside").adjustments["context"] > 0.3
        assert without.ids == ["beside"]
        assert not without.hits[0].adjustments
        assert without.hits[0].score == pytest.approx(base(hit_of(with_it, "beside")), abs=EXACT)


def test_a_session_of_the_same_name_in_another_scope_lifts_nobody() -> None:
    """Sessions are those of the tenant, whatever others call theirs."""
    with make_memory(embedder=HashEmbedder(2), scope_key="user_id") as memory:
        said = {"session_id": "s"}
        memory.add(
            [
                Memory("strong", BREAD, {"user_id": "u", **said, "msg_id": 1}, at(1.0)),
                Memory("theirs", "jam", {"user_id": "v", **said, "msg_id": 2}, at(0.2)),
                Memory("alone", "jam", {"user_id": "w", **said, "msg_id": 2}, at(0.2)),
            ]
        )
        first, second = (memory.scoped(user_id=user).search(BREAD, embedding=QUERY) for user in "vw")
        assert (first.ids, second.ids) == (["theirs"], ["alone"])
        assert first.hits[0].score == second.hits[0].score
        assert not first.hits[0].adjustments


@pytest.mark.parametrize("question", ["who baked the sourdough bread?", "谁烤了 sourdough bread？"])
def test_a_question_in_a_session_yields_to_the_answer_of_another_speaker(question: str) -> None:
    """It loses a share of its score, and the next message by another speaker ranks above it, one by the same speaker does not."""
    with make_memory(embedder=HashEmbedder(2)) as memory:
        memory.add(
            [
                Memory("q1", question, {"session_id": "s", "msg_id": 1, "speaker": "A"}, at(0.9)),
                Memory("other", "that was me", {"session_id": "s", "msg_id": 2, "speaker": "B"}, at(0.0)),
                Memory("q2", question, {"session_id": "t", "msg_id": 1, "speaker": "A"}, at(0.9)),
                Memory("same", "that was him", {"session_id": "t", "msg_id": 2, "speaker": "A"}, at(0.0)),
            ]
        )
        result = memory.search("who baked the sourdough bread", embedding=QUERY)
    assert result.ids == ["other", "q1", "q2", "same"]
    for asked, told, kappa in (("q1", "other", ANSWER), ("q2", "same", NEAR[1])):
        one, two = hit_of(result, asked), hit_of(result, told)
        assert one.score == pytest.approx((1.0 - QUESTION) * base(one), abs=EXACT)
        assert two.score == pytest.approx(base(two) + kappa * (base(one) - base(two)), abs=EXACT)


def test_a_question_outside_of_any_session_keeps_its_score() -> None:
    """Where nobody can have answered there is nothing to yield to, also when other memories have sessions."""
    with make_memory(embedder=HashEmbedder(2)) as memory:
        memory.add([Memory("q", "what is sourdough bread?", {"msg_id": 1, "speaker": "A"}, at(0.9))])
        alone = memory.search(BREAD, embedding=QUERY).hits[0]
        memory.add(Memory("x", "jam", {"session_id": "s", "msg_id": 2, "speaker": "B"}, at(0.1)))
        asked = hit_of(memory.search(BREAD, embedding=QUERY), "q")
        for hit in (alone, asked):
            assert not hit.adjustments
            assert hit.score == pytest.approx(base(hit), abs=EXACT)


_Said = tuple[int, float, float, bool]
_said = st.tuples(
    st.integers(-1, 2),
    st.sampled_from([math.nan, 0, 1, 1.5, 2, 3, 4, 6]),
    st.sampled_from([0, 0.25, 0.5, 0.75, 1.0]) | _number,
    st.booleans(),
)


@given(
    said=st.lists(_said, min_size=1, max_size=12),
    speakers=st.lists(st.integers(-1, 2), min_size=24, max_size=24),
    shares=st.lists(_number, min_size=4, max_size=4).map(sorted),
    answer=st.sampled_from([0.0, 0.5, 1.0]) | _number,
)
@settings(max_examples=200, deadline=None)
def test_neighbour_lift_is_its_definition(
    said: list[_Said], speakers: list[int], shares: list[float], answer: float
) -> None:
    """Each memory gains the largest κ·(score_j - score_i) over all others of its session, never less than 0 nor past the strongest."""
    rest, *nearest = shares
    near: dict[float, float] = {2: nearest[0], 1: nearest[1], 0: nearest[2]}
    speaker = speakers[: len(said)]

    def kappa(i: int, j: int) -> float:
        """The share of j's lead that i gains."""
        (session, place, _, _), (other, before, _, asks) = said[i], said[j]
        if session < 0 or session != other:
            return 0.0
        share = near.get(abs(place - before), rest) if place == place and before == before else rest
        if asks and before == place - 1 and (speaker[j] < 0 or speaker[j] != speaker[i]):
            share = max(share, answer)
        return share

    scores = [score for _, _, score, _ in said]
    lifts = neighbour_lift(
        np.array(scores, dtype=np.float64),
        np.array([session for session, _, _, _ in said], dtype=np.int64),
        np.array([place for _, place, _, _ in said], dtype=np.float64),
        near={int(distance): near[distance] for distance in near},
        same_session=rest,
        questions=np.array([asks for _, _, _, asks in said], dtype=np.bool_),
        speakers=np.array(speaker, dtype=np.int64),
        answer=answer,
    ).tolist()
    for i, score in enumerate(scores):
        gains = [kappa(i, j) * (scores[j] - score) for j in range(len(said))]
        assert lifts[i] == pytest.approx(max(0.0, *gains), abs=EXACT)
        strongest = max(scores[j] for j in range(len(said)) if j == i or (said[i][0] >= 0 and said[j][0] == said[i][0]))
        assert score + lifts[i] <= strongest + EXACT


# --- outdated memories ---------------------------------------------------------------------------------------------------

OUTDATED = {"expires_at": PAST.isoformat(), "valid_to": PAST.timestamp(), "superseded_by": "new"}


@pytest.mark.parametrize("n", [0, FAR_FROM_ALL], ids=["all scored", "by sources"])
def test_outdated_memories_stay_out_of_every_leg_unless_asked_for(n: int) -> None:
    """Expired or superseded, a memory is brought by no vector, word, name, date or neighbour, and lifts no neighbour."""
    legs: list[Memory] = []
    for i, (key, value) in enumerate(OUTDATED.items()):
        legs += [
            Memory(f"semantic {key}", word(9_100 + i), {key: value}, at(0.99)),
            Memory(f"bm25 {key}", "zx-4471 ships", {key: value}, at(-0.5)),
            Memory(f"entity {key}", "Lindqvist", {key: value}, at(-0.5)),
            Memory(f"date {key}", word(9_200 + i), {key: value, "created_at": "2025-03-02"}, at(-0.5)),
            Memory(f"context {key}", word(9_300 + i), {key: value, "session_id": "s", "msg_id": 6 + i}, at(-0.5)),
            Memory(f"lends {key}", "zx-4471", {key: value, "session_id": key, "msg_id": 1}, at(1.0)),
            Memory(f"takes {key}", word(9_400 + i), {"session_id": key, "msg_id": 2}, at(0.98)),
        ]
    with make_memory(embedder=HashEmbedder(2)) as memory:
        memory.add([*fillers(n, high=0.3), *legs])
        memory.add(Memory("strong", "Lindqvist ships zx-4471", {"session_id": "s", "msg_id": 7}, at(1.0)))
        query = "Did Lindqvist order ZX-4471 on 2 March 2025?"
        result = memory.search(query, 150, embedding=QUERY, now=NOW)
        valid = {"strong", *(f"takes {key}" for key in OUTDATED)}
        outdated = {m.id or "" for m in legs} - valid
        seen = {*result.ids, *(dropped.id for dropped in result.trace.dropped)}
        assert valid <= set(result.ids)
        assert not seen & outdated
        assert not any(hit.adjustments for hit in result)
        asked = memory.search(query, 150, embedding=QUERY, now=NOW, include_outdated=True)
        assert outdated <= set(asked.ids)
        before = memory.search(query, 150, embedding=QUERY, now=PAST - timedelta(days=1))
        assert {m for m in outdated if "superseded" not in m} <= set(before.ids)
        assert not any("superseded" in m and m in outdated for m in before.ids)
        for key in OUTDATED:
            assert hit_of(asked, f"takes {key}").adjustments["context"] > 0


# --- order, other processes, side effects --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, FAR_FROM_ALL])
def test_equal_scores_are_ordered_by_id(n: int) -> None:
    """Of equal memories the first by id come back, in whatever order they arrived, and whoever of them was replaced."""
    ids = [f"m{i:04d}" for i in range(n)]
    arrived = random.Random(3).sample(ids, n)
    with make_memory() as memory:
        memory.add([Memory(i, "Joanna plays chess", {}) for i in arrived])
        memory.add([Memory(i, "Joanna plays chess", {}) for i in arrived[:7]])
        for query in ("Joanna plays chess", "chess", "something else"):
            result = memory.search(query, 12)
            assert result.ids == ids[:12]
            assert len({hit.score for hit in result}) == 1


QUERIES = (
    "Who is Joanna?",
    "sourdough bread",
    "ZX-4471 on 3 March 2025",
    "谁喜欢榛子拿铁",
    "nothing in common",
    "chess?",
)


def conversation() -> list[Memory]:
    """Memories with names, dates, sessions, questions and equal texts, too many to be looked through as a whole."""
    texts = (
        "Joanna plays chess",
        "who likes sourdough bread?",
        "我喜欢榛子拿铁",
        "order ZX-4471",
        "Peter and Joanna met Mia",
    )
    return [
        Memory(
            f"m{i * 7919 % FAR_FROM_ALL:04d}",
            texts[i % 5] if i % 2 else f"{texts[i % 5]} {word(i % 40)}",
            {
                "session_id": f"s{i // 12}",
                **({"msg_id": i % 12} if i % 24 < 12 else {}),
                "speaker": "AB"[i // 2 % 2],
                "created_at": f"2025-03-{i % 28 + 1:02d}",
            },
        )
        for i in range(FAR_FROM_ALL)
    ]


def answers(memory: HybridMemory) -> list[list[tuple[str, str]]]:
    """Ids and exact scores of each query."""
    results = [memory.search(query, 20, now=NOW) for query in QUERIES]
    return [[(name, score.hex()) for name, score in found(result)] for result in results]


def test_another_process_gives_the_same_list(tmp_path: Path) -> None:
    """With other hashes of strings, from the store on disk or one made anew, ids and scores are the same to the last bit."""
    with make_memory(tmp_path / "store") as memory:
        memory.add(conversation())
        here = answers(memory)
    code = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from tests.conftest import make_memory\n"
        "from tests.core.test_balanced import answers, conversation\n"
        "with make_memory(Path(sys.argv[1]), read_only=True) as memory:\n"
        "    stored = answers(memory)\n"
        "with make_memory() as memory:\n"
        "    memory.add(conversation())\n"
        "    print(json.dumps([stored, answers(memory)]))\n"
    )
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "2" else "2"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "store")],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    stored, made = ([[tuple(pair) for pair in one] for one in every] for every in json.loads(done.stdout))
    assert all(len(one) == 20 for one in here)
    assert stored == here
    assert made == here


def test_a_search_writes_nothing_unless_asked_to(tmp_path: Path) -> None:
    """Every file of the store is as it was after searches, but for SQLite's marks of readers; usage is counted where the call says so."""
    folder = tmp_path / "store"

    def files() -> dict[str, str]:
        return {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.endswith("-shm")
        }

    with make_memory(folder) as memory:
        memory.add([Memory("a", BREAD, {"session_id": "s", "importance": 5}), Memory("b", "jam", {"session_id": "s"})])
        before, listed = files(), memory.list()
        for profile in ("balanced", "best"):
            assert memory.search(BREAD, profile=profile).ids == ["a", "b"]
            memory.search_many([BREAD, "Joanna"], profile=profile)
            memory.search(BREAD, profile=profile, record_usage=False)
        assert files() == before
        assert memory.usage() == {}
        memory.search(BREAD, 1, record_usage=True, now=NOW)
        assert {name: (entry.count, entry.last) for name, entry in memory.usage().items()} == {
            "a": (1, NOW.timestamp())
        }
        memory.search(BREAD)
        assert memory.usage()["a"].count == 1
        assert memory.list() == listed


def deleted_between(memory: HybridMemory) -> None:
    """A session by dates, one memory of which is deleted after a search."""
    day = datetime(2026, 3, 1, tzinfo=timezone.utc)
    said = {"a": "sourdough bread", "b": "qq", "c": "zz", "e": "yy"}
    memory.add(
        [
            Memory(i, text, {"session_id": "s", "created_at": (day + timedelta(days=n)).isoformat()})
            for n, (i, text) in enumerate(said.items())
        ]
    )
    memory.search("sourdough bread")
    memory.delete("b")


def tied_and_rewritten(memory: HybridMemory) -> None:
    """More equally strong memories than context looks around, some of them written again."""
    strong = [
        Memory(f"h{i:03}", "sourdough bread", {"session_id": f"s{i}", "msg_id": 1}, [1.0, 0.0]) for i in range(30)
    ]
    beside = [Memory(f"n{i:03}", f"aside {i}", {"session_id": f"s{i}", "msg_id": 2}, [-1.0, 0.0]) for i in range(30)]
    others = [Memory(f"x{i:03}", f"filler {word(i)}", {}, [0.0, 1.0]) for i in range(500)]
    memory.add([*strong, *beside, *others])
    memory.add([Memory(m.id, m.text, {**m.metadata, "again": True}, [1.0, 0.0]) for m in strong[:8]])


def unmatched_and_rewritten(memory: HybridMemory) -> None:
    """Many memories that nothing brings, the first of them written again."""
    memory.add([Memory(f"f{i:04}", word(i), {}, [0.0, 1.0]) for i in range(1_600)])
    memory.add([Memory(f"f{i:04}", word(i), {"again": True}, [0.0, 1.0]) for i in range(4)])


@pytest.mark.parametrize(
    ("history", "query", "vector"),
    [
        (deleted_between, "sourdough bread", None),
        (tied_and_rewritten, "sourdough bread", [1.0, 0.0]),
        (unmatched_and_rewritten, "没有", None),
    ],
)
def test_a_store_answers_alike_before_and_after_it_is_opened_again(
    tmp_path: Path, history: Callable[[HybridMemory], None], query: str, vector: list[float] | None
) -> None:
    """Where rows stand in memory, which differs after updates and deletes, decides nothing."""
    options: dict[str, Any] = {} if vector is None and history is deleted_between else {"embedder": Narrow(2)}

    def ask(memory: HybridMemory) -> list[tuple[str, float]]:
        return [(hit.memory.id, hit.score) for hit in memory.search(query, k=45, embedding=vector)]

    with make_memory(tmp_path / "store", **options) as memory:
        history(memory)
        live = ask(memory)
    with make_memory(tmp_path / "store", **options) as memory:
        assert ask(memory) == live
    assert live


class Narrow(HashEmbedder):
    """Knows ASCII alone."""

    def covers(self, text: str) -> bool:
        """Whether all of it is ASCII."""
        return text.isascii()
