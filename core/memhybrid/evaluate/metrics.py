"""recall@5, recall@10, nDCG@10 and MRR@10 by ir-measures, and recall over sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memhybrid.errors import MissingExtraError

NAMES = ("recall@5", "recall@10", "ndcg@10", "mrr@10")
SESSION = "session_recall@10"


def per_query(
    rankings: Mapping[str, Sequence[str]], relevant: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, float]]:
    """Query id → metric → value. `rankings` are ids, best first; only their order counts."""
    try:
        import ir_measures
        from ir_measures import RR, R, nDCG
    except ImportError as error:
        raise MissingExtraError("ir-measures", "eval") from error
    measures: dict[str, Any] = {"recall@5": R @ 5, "recall@10": R @ 10, "ndcg@10": nDCG @ 10, "mrr@10": RR @ 10}
    by_measure = {str(measure): name for name, measure in measures.items()}
    qrels = {q: dict(grades) for q, grades in relevant.items()}
    run = {q: {i: float(-rank) for rank, i in enumerate(rankings.get(q, ()))} for q in qrels}
    out: dict[str, dict[str, float]] = {q: dict.fromkeys(NAMES, 0.0) for q in qrels}
    for metric in ir_measures.iter_calc(list(measures.values()), qrels, run):
        out[metric.query_id][by_measure[str(metric.measure)]] = float(metric.value)
    return out


def session_recall(
    ranking: Sequence[str], relevant: Mapping[str, int], session_of: Mapping[str, Any], first: int = 10
) -> float:
    """Share of the relevant memories' sessions among the first ten distinct sessions of the ranking."""
    wanted = {session_of[i] for i in relevant if i in session_of}
    if not wanted:
        return 0.0
    seen = list(dict.fromkeys(session_of[i] for i in ranking if i in session_of))[:first]
    return len(wanted & set(seen)) / len(wanted)


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each metric."""
    if not rows:
        return {}
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
