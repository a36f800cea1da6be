"""Scores: what they mean, what may move them, and what must not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memhybrid import HybridMemory, Memory, Profile
from memhybrid.embedders import HashEmbedder
from memhybrid.protocols import Fingerprint
from tests.conftest import make_memory
from tests.reports.helpers import found, raw_collection, word

PROFILES = ("semantic", "bm25", "mem0", "tipsy", "balanced", "best")


class Table:
    """An embedder by table: texts that are not in it get the given vector."""

    def __init__(self, vectors: dict[str, list[float]], other: list[float], scale: float = 1.0) -> None:
        self.vectors, self.other, self.scale = vectors, other, scale

    @property
    def fingerprint(self) -> Fingerprint:
        """Its name and size."""
        return Fingerprint("table", len(self.other))

    def covers(self, text: str) -> bool:
        """Everything."""
        return True

    def embed_documents(self, texts: Any) -> Any:
        """Rows of the table."""
        return np.array([self.vectors.get(t, self.other) for t in texts], dtype=np.float32) * self.scale

    embed_query = embed_documents


def test_a_rare_word_is_found_though_its_vector_lies_far_away() -> None:
    """Report 52, 81: candidates are the union; under `mem0`, whose gate is semantic, it is not, as documented."""
    embedder = Table({"ZX-4471 ships Tuesday": [-1.0, 0.0]}, [1.0, 0.0])
    with make_memory(embedder=embedder) as memory:
        memory.add([f"filler {word(i)}" for i in range(400)])
        memory.add(Memory("rare", "ZX-4471 ships Tuesday"))
        for profile in ("balanced", "best", "bm25"):
            assert memory.search("ZX-4471", profile=profile, k=5).ids[0] == "rare", profile
        assert "rare" not in memory.search("ZX-4471", profile="mem0", k=5).ids
        open_gate = Profile.mem0().replace(gate=None, sources=("semantic", "bm25", "entity"))
        assert "rare" in memory.search("ZX-4471", profile=open_gate, k=400).ids


def test_no_default_floor_excludes_a_perfect_hit_of_one_signal() -> None:
    """Report 53: no shipped profile has a floor unless it is asked for."""
    for name in PROFILES:
        with make_memory(profile=name) as memory:
            assert memory.profile.min_score is None
    with make_memory(embedder=Table({"ticket QX-99": [0.0, 1.0]}, [1.0, 0.0])) as memory:
        memory.add([Memory("t", "ticket QX-99"), Memory("o", "something else")])
        assert memory.search("QX-99").ids[0] == "t"


def test_an_unrelated_memory_moves_no_score_but_through_the_statistics() -> None:
    """Report 54: in `balanced` a keyword hit elsewhere halves nothing; `mem0` divides by what is possible, and says so."""
    with make_memory() as memory:
        memory.add([Memory("a", "the quick brown fox jumps"), Memory("b", "zebra stripes")])
        query = "quick brown fox zebra"
        both = memory.search(query).hits[0]
        divided = memory.search(query, profile="mem0").trace.max_possible
        memory.delete("b")
        alone = memory.search(query).hits[0]
        assert (both.memory.id, alone.memory.id) == ("a", "a")
        assert both.signals["semantic"] == alone.signals["semantic"]
        assert abs(both.score - alone.score) < 0.1
        assert divided in (2.0, 2.5)
        assert memory.search("nothing in common", profile="mem0").trace.max_possible == 1.0


def test_a_weight_of_zero_removes_every_trace_of_a_signal(memory: HybridMemory) -> None:
    """Report 55: no branch goes around the weights."""
    memory.add([Memory(str(i), f"apple {word(i)}") for i in range(40)])
    with_zero = Profile(sources=("semantic", "bm25"), signals={"semantic": 1.0, "bm25_calibrated": 0.0})
    without = Profile(sources=("semantic",), signals={"semantic": 1.0})
    one, two = (memory.search(f"apple {word(7)}", k=40, profile=p) for p in (with_zero, without))
    assert found(one) == found(two)
    assert all("bm25" not in hit.signals for hit in one.hits)


@pytest.mark.parametrize("space", ["cosine", "l2", "ip"])
@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_similarity_is_the_cosine_in_every_space(tmp_path: Path, space: str, scale: float) -> None:
    """Report 56, 62, 63: the same numbers for cosine, l2 and ip, also where vectors are not of length 1."""
    texts = {"same": [1.0, 0.0], "near": [0.8, 0.6], "orthogonal": [0.0, 1.0], "opposite": [-1.0, 0.0]}
    raw = raw_collection(tmp_path, "notes", space)
    raw.add(ids=list(texts), documents=list(texts), embeddings=[[x * scale for x in v] for v in texts.values()])
    with HybridMemory.attach(raw, embedder=Table(texts, [1.0, 0.0], scale), analyzer="fast") as memory:
        hits = memory.search("query", k=4, profile="semantic").hits
        assert [h.memory.id for h in hits][:2] == ["same", "near"]
        scores = {h.memory.id: (h.score, h.details["semantic"].raw) for h in hits}
        expected = {"same": (1, 1), "near": (0.8, 0.8), "orthogonal": (0, 0), "opposite": (0, -1)}
        for name, (score, raw_value) in expected.items():
            assert scores[name] == pytest.approx((score, raw_value), abs=1e-5)
        assert memory.search("query", k=4, profile="semantic", min_score=0.5).ids == ["same", "near"]
        assert memory.search("query", k=4, profile="semantic", min_score=0.9).ids == ["same"]


@pytest.mark.parametrize("n", [1, 3])
def test_a_lone_match_and_equal_texts_score_high_and_finite(n: int) -> None:
    """Report 57: no normalisation depends on the other results."""
    with make_memory() as memory:
        memory.add([Memory(str(i), "Joanna plays chess") for i in range(n)])
        for profile in PROFILES:
            result = memory.search("Joanna plays chess", profile=profile)
            assert result.ids == sorted(result.ids) or profile == "tipsy"
            assert len({hit.score for hit in result.hits}) == 1
            assert all(0 < hit.score <= 1 for hit in result.hits)
        assert memory.search("Joanna plays chess", profile="semantic").hits[0].score > 0.99


@pytest.mark.parametrize("engine", ["memhybrid", "rank-bm25"])
def test_small_stores_rank_the_match_first_and_gibberish_matches_nothing(engine: str) -> None:
    """Report 59, 71: two memories, the word in one; four, the word in two; a query that nobody has."""
    with make_memory(profile="bm25", bm25=engine) as memory:
        memory.add([Memory("a", "apple pie"), Memory("b", "banana split")])
        assert memory.search("banana").ids == ["b"]
        assert memory.search("jgosntih", k=3).hits == ()
        memory.add([Memory("c", "banana bread"), Memory("d", "plain toast")])
        assert sorted(memory.search("banana").ids) == ["b", "c"]
        if engine == "memhybrid":
            assert all(h.details["bm25"].raw > 0 for h in memory.search("banana").hits)


def test_text_and_vector_give_the_same_scores(memory: HybridMemory) -> None:
    """Report 64: one direction everywhere, and the same number by either way."""
    memory.add([Memory("a", "apple pie"), Memory("b", "banana split")])
    vector = HashEmbedder(64).embed_query(["apple pie"])[0]
    by_text = memory.search("apple pie", profile="semantic")
    by_vector = memory.search("", embedding=vector, profile="semantic")
    assert found(by_text) == found(by_vector)
    assert by_text.hits[0].score > by_text.hits[1].score


def test_zero_is_a_value_and_unknown_is_no_number(memory: HybridMemory) -> None:
    """Report 65: min_score 0, weight 0 and max_tokens 0 are not "unset"; an unknown signal is None, never NaN."""
    strict = Profile.semantic().replace(min_score=0.99)
    memory.add([Memory("a", "apple pie"), Memory("b", "banana split")])
    assert len(memory.search("apple", profile=strict)) == 0
    assert len(memory.search("apple", profile=strict, min_score=0.0)) == 2
    assert len(memory.search("apple", max_tokens=0)) == 0
    assert len(memory.search("apple", max_tokens=None)) == 2
    for profile in PROFILES:
        for hit in memory.search("apple", profile=profile).hits:
            assert math.isfinite(hit.score)
            assert all(v is None or math.isfinite(v) for v in hit.signals.values())


@pytest.mark.parametrize("profile", ["semantic", "bm25", "balanced", "best"])
def test_a_floor_can_leave_nothing(memory: HybridMemory, profile: str) -> None:
    """Report 67, 69: a hopeless query scores clearly below a good one, and one floor on the final score tells them apart."""
    memory.add([Memory("bread", "I bake sourdough bread on Sundays"), Memory("cat", "the cat is called Mia")])
    good = memory.search("sourdough bread on Sundays", profile=profile)
    hopeless = memory.search("quarterly shipping address", profile=profile)
    worst = max([h.score for h in hopeless.hits], default=0.0)
    assert good.hits[0].score > worst + 0.1
    floor = (good.hits[0].score + worst) / 2
    assert memory.search("quarterly shipping address", profile=profile, min_score=floor).hits == ()
    assert memory.search("sourdough bread on Sundays", profile=profile, min_score=floor).ids == ["bread"]


def test_normalised_keyword_scores_use_their_range(memory: HybridMemory) -> None:
    """Report 68: both ends are reachable by short and long queries; raw and normalised values are shown."""
    memory.add([Memory("hit", " ".join(word(i) for i in range(12)))])
    memory.add([Memory(str(i), f"{word(0)} filler {word(100 + i)}") for i in range(200)])
    for n in (1, 4, 12):
        hits = memory.search(" ".join(word(i) for i in range(n)), k=50).hits
        assert hits[0].memory.id == "hit" or n == 1
        detail = hits[0].details["bm25"]
        assert detail.raw > 0
        assert 0 < detail.value <= 1
    values = [h.details["bm25"].value for h in memory.search(" ".join(word(i) for i in range(12)), k=50).hits]
    assert max(values) - min(values) > 0.4


def test_every_hit_tells_its_score_and_its_signals(memory: HybridMemory) -> None:
    """Report 72, 92: final, raw, normalised, weight and contribution; explaining changes nothing."""
    memory.add([Memory("a", "apple pie", {"score": 7})])
    result = memory.search("apple")
    before = found(result)
    assert "apple" in result.explain()
    assert '"contribution"' in result.explain(format="json")
    assert found(memory.search("apple")) == before
    hit = result.hits[0]
    assert hit.score == pytest.approx(sum(d.contribution for d in hit.details.values()), abs=1e-9)
    assert dict(hit.memory.metadata) == {"score": 7}


def test_results_are_the_callers_own(memory: HybridMemory) -> None:
    """Report 136: changing one changes neither the store nor another result."""
    given = {"tags": ["x"]}
    memory.add(Memory("a", "apple", given))
    given["tags"].append("mine")
    first = memory.search("apple").hits[0].memory
    dict.__setitem__(first.metadata, "tags", ["changed"])  # type: ignore[arg-type]
    second = memory.search("apple").hits[0].memory
    second.metadata["tags"].append("more")
    assert memory.get("a")[0].metadata == {"tags": ["x"]}
