"""What a diagnosis found, as a table for people and as plain values for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memhybrid.explain import shorten, table


@dataclass(frozen=True)
class Round:
    """After so many rounds of write-back: mean overlap of different queries' results, and how many memories any of them returned."""

    round: int
    jaccard: float
    distinct_returned: int


@dataclass(frozen=True)
class Spread:
    """How much a signal tells memories apart.

    `low` and `high` are the 5th and 95th percentile over the scope (for a signal that moves with the query: median and maximum, as the
    mean over the queries), `known` the share of memories for which it knows a value. `remedy` says what to do where it ranks nothing.
    """

    weight: float
    low: float
    high: float
    known: float
    moves: bool
    remedy: str | None = None

    @property
    def spread(self) -> float:
        """high - low."""
        return self.high - self.low

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "weight": self.weight,
            "spread": self.spread,
            "low": self.low,
            "high": self.high,
            "known": self.known,
            "moves_with_query": self.moves,
            "remedy": self.remedy,
        }


@dataclass(frozen=True)
class DiagnoseReport:
    """Whether retrieval follows the query, in numbers.

    `query_dependent_weight`: share of the weights that moves with the query. `jaccard`: mean overlap of the result sets of different
    queries now (1: all the same); `query_only_jaccard`: the same by the signals that move with the query alone; `rounds`: the same
    after each round of write-back, round 0 being now. `agreement`: after the last round, the share of each result that the query alone
    would have chosen. `always_returned`: ids that every query gets now, `always_returned_after`: after the last round.
    `score_usage_correlation`: Spearman's, between score and usage over the scope after the last round, mean over the queries.
    """

    profile: str
    memories: int
    k: int
    queries: tuple[str, ...]
    query_dependent_weight: float
    usage_weight: float
    jaccard: float
    query_only_jaccard: float
    agreement: float
    always_returned: tuple[str, ...]
    always_returned_after: tuple[str, ...]
    score_usage_correlation: float
    spread: Mapping[str, Spread]
    rounds: Sequence[Round]
    follows_query: bool
    verdict: str
    notes: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values, ready for JSON."""
        return {
            "profile": self.profile,
            "memories": self.memories,
            "k": self.k,
            "queries": list(self.queries),
            "query_dependent_weight": self.query_dependent_weight,
            "usage_weight": self.usage_weight,
            "jaccard": self.jaccard,
            "query_only_jaccard": self.query_only_jaccard,
            "agreement": self.agreement,
            "always_returned": list(self.always_returned),
            "always_returned_after": list(self.always_returned_after),
            "score_usage_correlation": self.score_usage_correlation,
            "spread": {name: spread.as_dict() for name, spread in self.spread.items()},
            "rounds": [
                {"round": r.round, "jaccard": r.jaccard, "distinct_returned": r.distinct_returned} for r in self.rounds
            ],
            "follows_query": self.follows_query,
            "verdict": self.verdict,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        last = self.rounds[-1]
        head = [
            f"profile {self.profile} · {self.memories} memories · {len(self.queries)} queries · {self.k} results each",
            "",
            self.verdict,
            "",
        ]
        facts = [
            ["weight that moves with the query", f"{self.query_dependent_weight:.0%}"],
            ["weight of usage", f"{self.usage_weight:g}"],
            ["overlap of different queries' results, now", f"{self.jaccard:.2f}"],
            ["  by what moves with the query alone", f"{self.query_only_jaccard:.2f}"],
            [f"  after {last.round} rounds of use", f"{last.jaccard:.2f}"],
            ["results that the query alone would choose", f"{self.agreement:.0%}"],
            ["always returned, now / after", f"{len(self.always_returned)} / {len(self.always_returned_after)}"],
            ["rank correlation of score with usage", f"{self.score_usage_correlation:+.2f}"],
        ]
        rounds = [[str(r.round), f"{r.jaccard:.2f}", str(r.distinct_returned)] for r in self.rounds]
        signals = [
            [name, f"{s.weight:g}", f"{s.low:.2f}–{s.high:.2f}", f"{s.spread:.2f}", f"{s.known:.0%}"]
            for name, s in self.spread.items()
        ]
        parts = [
            *head,
            table(["what", "value"], facts, numeric={1}),
            "",
            table(["round", "overlap", "distinct memories"], rounds, numeric={0, 1, 2}),
            "",
            table(["signal", "weight", "from–to", "spread", "known"], signals, numeric={1, 2, 3, 4}),
        ]
        remedies = [f"{name}: {s.remedy}" for name, s in self.spread.items() if s.remedy]
        if remedies:
            parts += ["", *remedies]
        pinned = ", ".join(self.always_returned_after[:5])
        if pinned:
            parts += ["", f"every query gets, after {last.round} rounds: {shorten(pinned, 100)}"]
        return "\n".join([*parts, *(f"note: {note}" for note in self.notes)])
