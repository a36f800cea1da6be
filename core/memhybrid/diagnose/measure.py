"""The measurement: different queries, now and after rounds of write-back, against what the queries alone would choose."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from memhybrid.diagnose.probe import Probe
from memhybrid.diagnose.queries import draw
from memhybrid.diagnose.report import DiagnoseReport, Round, Spread
from memhybrid.diagnose.spread import spreads
from memhybrid.errors import InputError
from memhybrid.profiles import Profile, as_profile
from memhybrid.protocols import Float64
from memhybrid.values import check_query, positive

if TYPE_CHECKING:
    from memhybrid.memory import MemoryView

PINNED = 0.5
"""Share of the way from the queries' own overlap to "always the same" from which results no longer follow the query."""
DOMINATED_PINNED = 0.25
DOMINATED_AGREEMENT = 0.8
"""Where the weights that move with the query are no more than the others, following it has to be shown: less of that way, and at least
this share of each result as the query alone would choose it."""
FEW = 3


def diagnose(
    view: MemoryView,
    *,
    queries: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    rounds: int = 10,
    k: int = 10,
    profile: Any = None,
    now: float | None = None,
) -> DiagnoseReport:
    """Measure whether the view's results follow the query, now and after `rounds` in which every query's results are used.

    `queries` should differ in meaning; without them they are drawn from the store. `where` narrows to a tenant or session. In a scope
    of fewer than 3·k memories k is lowered to a third of them. Reranking is left out: it orders what the first stage hands it.
    """
    chosen = view.profile if profile is None else as_profile(profile)
    rounds, k = positive(rounds, "rounds", most=1_000), positive(k, "k", most=1_000)
    with warnings.catch_warnings():
        # The weights are the matter here; that they are unwise is what the report says.
        warnings.simplefilter("ignore", UserWarning)
        searching = chosen.replace(rerank="off", max_tokens=None, min_score=None, record_usage=False)
        probe = Probe(view, where, searching, time.time() if now is None else float(now))
        asked = _queries(queries, probe)
        k = min(k, max(len(probe.rows) // 3, 1))
        return _measure(probe, searching, chosen, asked, rounds, k)


def _queries(given: Sequence[str] | None, probe: Probe) -> list[str]:
    if given is None:
        return draw(probe.pinned, probe.rows)
    if isinstance(given, str):
        raise InputError("queries: expected a list of str, got one str")
    asked = list(dict.fromkeys(check_query(q, "queries") for q in given))
    if len(asked) < 2 or not all(q.strip() for q in asked):
        raise InputError("queries: give at least two different ones that are not empty, better ten")
    return asked


def _measure(
    probe: Probe, searching: Profile, profile: Profile, queries: list[str], rounds: int, k: int
) -> DiagnoseReport:
    moving = {n: w for n, w in profile.signals.items() if w > 0 and profile.make_signal(n).query_dependent}
    still = {n: w for n, w in profile.signals.items() if w > 0 and n not in moving}
    spread = spreads(probe, searching, queries)
    now = [probe.ask(query, k, searching) for query in queries]
    alone = now
    if still and moving:
        query_only = searching.replace(signals=moving, allow_query_independent=True)
        alone = [probe.ask(query, k, query_only) for query in queries]
    history, after = _rounds(probe, searching, queries, rounds, k, now)
    total = sum(profile.signals.values())
    follows, verdict = _verdict(
        len(probe.rows), len(queries), moving, still, history, _jaccard(alone), _agreement(after, alone)
    )
    return DiagnoseReport(
        profile=profile.name,
        memories=len(probe.rows),
        k=k,
        queries=tuple(queries),
        query_dependent_weight=sum(moving.values()) / total,
        usage_weight=profile.signals.get("usage", 0.0),
        jaccard=history[0].jaccard,
        query_only_jaccard=_jaccard(alone),
        agreement=_agreement(after, alone),
        always_returned=_always(now),
        always_returned_after=_always(after),
        score_usage_correlation=_correlation(probe, searching, queries),
        spread=spread,
        rounds=tuple(history),
        follows_query=follows,
        verdict=verdict,
        notes=_notes(profile),
    )


def _rounds(
    probe: Probe, profile: Profile, queries: list[str], rounds: int, k: int, now: list[list[str]]
) -> tuple[list[Round], list[list[str]]]:
    """Each round asks every query and counts what it returned before the next is asked, as in use."""
    history = [Round(0, _jaccard(now), _distinct(now))]
    # Without usage, and without signals that we do not know, counts change no score: asking again would find the same.
    changes = profile.signals.get("usage", 0.0) > 0 or bool(profile.custom)
    results = now
    for number in range(1, rounds + 1):
        current: list[list[str]] = []
        for i, query in enumerate(queries):
            found = probe.ask(query, k, profile) if changes else now[i]
            probe.record(found)
            current.append(found)
        results = current
        history.append(Round(number, _jaccard(results), _distinct(results)))
    return history, results


# --- numbers ---------------------------------------------------------------------------------------------------------


def _jaccard(results: Sequence[Sequence[str]]) -> float:
    """Mean over pairs of |A ∩ B| / |A ∪ B|; two empty sets are no overlap."""
    sets = [set(r) for r in results]
    pairs = [(len(a & b), len(a | b)) for a, b in combinations(sets, 2)]
    return float(np.mean([both / either if either else 0.0 for both, either in pairs])) if pairs else 0.0


def _distinct(results: Sequence[Sequence[str]]) -> int:
    return len({i for r in results for i in r})


def _always(results: Sequence[Sequence[str]]) -> tuple[str, ...]:
    if len(results) < 2:
        return ()
    common = set(results[0]).intersection(*results[1:])
    return tuple(i for i in results[0] if i in common)


def _agreement(after: Sequence[Sequence[str]], alone: Sequence[Sequence[str]]) -> float:
    """Mean share of what the query alone would choose among what it got."""
    shares = [len(set(a) & set(b)) / len(a) for a, b in zip(after, alone, strict=True) if a]
    return float(np.mean(shares)) if shares else 0.0


def _correlation(probe: Probe, profile: Profile, queries: list[str]) -> float:
    found: list[float] = []
    for query in queries:
        scored = probe.scored(query, profile)
        found.append(spearman(scored.fused.scores, probe.usage(scored.rows)))
    return float(np.mean(found)) if found else 0.0


def spearman(one: Float64, two: Float64) -> float:
    """Rank correlation with mean ranks for equal values; 0 where either side is constant."""
    if len(one) < 2:
        return 0.0
    a, b = _ranks(one), _ranks(two)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 0 else 0.0


def _ranks(values: Float64) -> Float64:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + last - 1) / 2.0)[inverse.ravel()]


# --- the verdict -----------------------------------------------------------------------------------------------------


def _verdict(
    memories: int,
    queries: int,
    moving: Mapping[str, float],
    still: Mapping[str, float],
    history: Sequence[Round],
    own: float,
    agreement: float,
) -> tuple[bool, str]:
    """Follows the query or not, and why, in a sentence."""
    if not moving:
        return False, f"Results do not follow the query: none of the signals {', '.join(still)} moves with it."
    last = history[-1]
    numbers = (
        f"after {last.round} rounds of use, different queries share {last.jaccard:.0%} of their results "
        f"({history[0].jaccard:.0%} now, {own:.0%} by the query alone), all of them together return {last.distinct_returned} of "
        f"{memories} memories, and {agreement:.0%} of each result is what the query alone would choose"
    )
    usage, dependent = still.get("usage", 0.0), sum(moving.values())
    if usage >= dependent:
        return False, (
            f"Results no longer follow the query: usage weighs {usage:g} and all that moves with the query {dependent:g}, so what was "
            f"returned last outranks what matches best; {numbers}. Lower the weight of usage to 0.05 or less."
        )
    if memories < FEW or queries < 2:
        return True, f"Too little to tell: {memories} memories, {queries} queries. Ask again when there is more."
    pinned = (last.jaccard - own) / (1.0 - own) if own < 1.0 else 0.0
    dominated = bool(still) and dependent <= sum(w for n, w in still.items() if n != "range")
    if pinned >= PINNED or (dominated and (pinned >= DOMINATED_PINNED or agreement < DOMINATED_AGREEMENT)):
        blame = max(still, key=lambda n: still[n]) if usage <= 0.05 else "usage"
        return False, f"Results no longer follow the query: {numbers}. Lower the weight of {blame} ({still[blame]:g})."
    return True, f"Results follow the query: {numbers}."


def _notes(profile: Profile) -> tuple[str, ...]:
    notes: list[str] = []
    if profile.rerank != "off" and profile.reranker is not None:
        notes.append("measured without reranking, which orders what the first stage hands it")
    return tuple(notes)


__all__ = ["Spread", "diagnose", "spearman"]
