from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memhybrid.embedders import HashEmbedder
from memhybrid.errors import InputError
from memhybrid.evaluate import plot
from memhybrid.evaluate.compare import Compared, compare
from memhybrid.evaluate.datasets import load_dataset
from memhybrid.evaluate.significance import holm, interval, randomisation
from memhybrid.evaluate.vectors import cached
from memhybrid.profiles import Profile
from tests.evaluate.conftest import quiet
from tests.evaluate.sets import write_set

SYSTEMS = [
    "vectors alone",
    "rank_bm25",
    "langchain ensemble",
    "llamaindex rrf",
    "llamaindex relative",
    "mem0",
    "tipsy",
    "balanced",
]


class Counting(HashEmbedder):
    """Counts how often each text is embedded."""

    def __init__(self) -> None:
        super().__init__(64)
        self.seen: dict[str, int] = {}

    def embed_documents(self, texts: Any) -> Any:
        """As before, counted."""
        for text in texts:
            self.seen[text] = self.seen.get(text, 0) + 1
        return super().embed_documents(texts)


def run(folder: Path, **options: Any) -> list[Compared]:
    options.setdefault("embedder", HashEmbedder(64))
    return compare(load_dataset(folder), stage=quiet, analyzer="fast", **options)


def without_time(found: list[Compared]) -> list[dict[str, Any]]:
    return [{k: v for k, v in one.as_dict().items() if k != "latency_ms"} for one in found]


@pytest.fixture(scope="module")
def compared(small: Path) -> list[Compared]:
    return run(small)


def test_all_systems_are_there_and_run_twice_alike(small: Path, compared: list[Compared]) -> None:
    """Everything but latency is the same to the last digit."""
    assert [one.evaluation.system for one in compared] == SYSTEMS
    assert without_time(run(small)) == without_time(compared)


def test_each_entry_is_evals_object_with_system_and_p(compared: list[Compared]) -> None:
    """The base has no p; the others have one in (0, 1] for each tested metric."""
    for one in compared:
        entry = one.as_dict()
        assert entry["system"] == entry["profile"] == one.evaluation.system
        assert entry["queries"] == 24
        assert set(entry["metrics"]) == {"recall@5", "recall@10", "ndcg@10", "mrr@10", "session_recall@10"}
    assert compared[-1].as_dict()["p_value"] is None
    assert all(0 < one.as_dict()["p_value"] <= 1 for one in compared[:-1])


def test_peers_stay_inside_the_users_memories_and_find_the_right_ones(compared: list[Compared]) -> None:
    """Questions share words with their answers: nobody who looks at the right user's memories misses most."""
    assert all(one.evaluation.metrics["recall@10"] > 0.5 for one in compared)


def test_no_text_is_embedded_twice(tmp_path: Path) -> None:
    """Eight systems share one set of vectors."""
    embedder = Counting()
    run(write_set(tmp_path, queries=4, memories=12), embedder=embedder)
    from memhybrid.evaluate.datasets import load_dataset as load

    data = load(tmp_path)
    wanted = {m.text for m in data.memories} | {q.text for q in data.queries}
    assert {text: count for text, count in embedder.seen.items() if text in wanted and count > 1} == {}


def test_another_profile_joins_and_sets_without_users_or_sessions_work(tmp_path: Path) -> None:
    """A profile of one's own stands beside the shipped ones, and is tested like them."""
    folder = write_set(tmp_path, users=0, sessions=False, queries=6)
    found = run(folder, extra=Profile.keywords().replace(name="mine"))
    assert [one.evaluation.system for one in found] == [*SYSTEMS[:-1], "mine", "balanced"]
    assert "session_recall@10" not in found[0].evaluation.metrics


def test_cached_vectors_are_the_embedders_own() -> None:
    """The cache changes neither vectors nor fingerprint."""
    plain, wrapped = HashEmbedder(32), cached(HashEmbedder(32))
    for _ in range(2):
        assert np.array_equal(wrapped.embed_documents(["a b", "c", "a b"]), plain.embed_documents(["a b", "c", "a b"]))
        assert np.array_equal(wrapped.embed_query(["a b"]), plain.embed_query(["a b"]))
    assert wrapped.fingerprint == plain.fingerprint


def test_randomisation_counts_sign_flips_as_extreme_as_the_difference() -> None:
    """With three pairs the exact p is 1/4, with none that differ it is 1, and a clear difference is the least possible."""
    assert randomisation([1, 1, 1], [0, 0, 0]) == pytest.approx(0.25, abs=0.02)
    assert randomisation([0.5, 0.5], [0.5, 0.5]) == 1.0
    assert randomisation([1.0] * 50, [0.0] * 50) == 1 / 10_001
    assert randomisation([1, 0, 1], [0, 0, 0]) == randomisation([0, 0, 0], [1, 0, 1])


def test_holm_steps_down_and_never_turns_round() -> None:
    """The example of every textbook; a larger p never gets a smaller corrected one."""
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}) == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02}
    )
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_bootstrap_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    """Seeded, and as wide as the normal approximation says."""
    values = np.random.default_rng(5).normal(0.1, 1.0, 400)
    low, high = interval(values)
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)
    assert interval(values) == (low, high)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_chart_is_written(tmp_path: Path, compared: list[Compared], suffix: str) -> None:
    """A file of the kind that its name says."""
    file = tmp_path / f"chart.{suffix}"
    plot.bars([one.evaluation for one in compared], file)
    assert file.read_bytes()[:5] == {"png": b"\x89PNG\r", "svg": b"<?xml"}[suffix]


def test_a_chart_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    """Unknown kinds and missing folders."""
    with pytest.raises(InputError, match="must end in"):
        plot.check(tmp_path / "chart.docx")
    with pytest.raises(InputError, match="no folder"):
        plot.check(tmp_path / "nowhere" / "chart.png")
