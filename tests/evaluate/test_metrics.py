from __future__ import annotations

import math

import numpy as np
import pytest

from memhybrid.evaluate.metrics import mean, per_query, session_recall


def by_hand(ranking: list[str], relevant: dict[str, int]) -> dict[str, float]:
    """The textbook formulas, one query."""
    gains = [relevant.get(i, 0) for i in ranking[:10]]
    ideal = sorted(relevant.values(), reverse=True)[:10]
    first = next((rank for rank, gain in enumerate(gains, 1) if gain), None)
    return {
        "recall@5": sum(g > 0 for g in gains[:5]) / len(relevant),
        "recall@10": sum(g > 0 for g in gains) / len(relevant),
        "ndcg@10": sum(g / math.log2(r + 2) for r, g in enumerate(gains))
        / sum(g / math.log2(r + 2) for r, g in enumerate(ideal)),
        "mrr@10": 0.0 if first is None else 1.0 / first,
    }


def test_metrics_equal_the_textbook_formulas_on_random_rankings() -> None:
    """Graded relevance, short rankings and missed memories give what the formulas say."""
    draw = np.random.default_rng(3)
    rankings, relevant = {}, {}
    for q in range(60):
        size = int(draw.integers(0, 16))
        rankings[f"q{q}"] = [f"m{i}" for i in draw.permutation(30)[:size]]
        relevant[f"q{q}"] = {
            f"m{i}": int(draw.integers(1, 4)) for i in draw.permutation(40)[: int(draw.integers(1, 13))]
        }
    found = per_query(rankings, relevant)
    for q, ranking in rankings.items():
        assert found[q] == pytest.approx(by_hand(ranking, relevant[q]), abs=1e-12), q


def test_a_query_without_a_ranking_counts_as_zero() -> None:
    """A system that finds nothing is not left out of the mean."""
    found = per_query({"a": ["x"]}, {"a": {"x": 1}, "b": {"y": 1}})
    assert found["b"] == {"recall@5": 0.0, "recall@10": 0.0, "ndcg@10": 0.0, "mrr@10": 0.0}
    assert mean(list(found.values()))["recall@5"] == 0.5


def test_session_recall_looks_at_the_first_ten_distinct_sessions() -> None:
    """Several memories of one session count once, and an eleventh session comes too late."""
    session_of = {f"m{i}": f"s{i // 2}" for i in range(40)}
    ranking = [f"m{i}" for i in range(40)]
    assert session_recall(ranking, {"m0": 1, "m19": 1}, session_of) == 1.0
    assert session_recall(ranking, {"m0": 1, "m20": 1}, session_of) == 0.5
    assert session_recall(ranking, {"m0": 1, "m1": 1, "m20": 1}, session_of) == 0.5
    assert session_recall(ranking, {"unknown": 1}, session_of) == 0.0
