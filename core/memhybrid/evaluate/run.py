"""One system on one dataset: metrics in total and by category, and latency."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from memhybrid.evaluate import metrics
from memhybrid.evaluate.datasets import SESSION_KEY, USER_KEY, Dataset, Query
from memhybrid.memory import HybridMemory
from memhybrid.profiles import Profile

K = 10
WARM_UP = 5
Progress = Callable[[int, int], None]


class System(Protocol):
    """Anything that ranks a user's memories for a query: ids, best first, at most k."""

    name: str

    def rank(self, query: Query, k: int) -> Sequence[str]:
        """Ids, best first."""
        ...


class MemorySystem:
    """A HybridMemory with one profile."""

    def __init__(self, memory: HybridMemory, profile: Profile, *, scoped: bool, name: str | None = None) -> None:
        self.name = name or profile.name
        self._memory = memory
        self._profile = profile.replace(record_usage=False)
        self._scoped = scoped
        self._views: dict[Any, Any] = {}

    def rank(self, query: Query, k: int) -> Sequence[str]:
        """Through the same door as everyone."""
        view = self._views.get(query.user)
        if view is None:
            view = self._views[query.user] = (
                self._memory.scoped(**{USER_KEY: query.user}) if self._scoped else self._memory
            )
        return view.search(query.text, k, profile=self._profile, include_outdated=True).ids


@dataclass(frozen=True)
class Evaluation:
    """A system's numbers: `rows` are the metrics of each query by its id."""

    dataset: str
    system: str
    embedder: str
    rows: dict[str, dict[str, float]] = field(repr=False)
    categories: dict[str, str | None] = field(repr=False)
    latencies_ms: tuple[float, ...] = field(repr=False)

    @property
    def metrics(self) -> dict[str, float]:
        """Means over all queries."""
        return metrics.mean(list(self.rows.values()))

    def by_category(self) -> dict[str, dict[str, float]]:
        """Means by the queries' category, with the number of queries."""
        out: dict[str, dict[str, float]] = {}
        for category in sorted({c for c in self.categories.values() if c is not None}):
            rows = [self.rows[q] for q, c in self.categories.items() if c == category]
            out[category] = {**metrics.mean(rows), "queries": float(len(rows))}
        return out

    def latency(self) -> dict[str, float]:
        """p50 and p95 of a search for ten, in milliseconds."""
        if not self.latencies_ms:
            return {"p50": 0.0, "p95": 0.0}
        p50, p95 = np.percentile(self.latencies_ms, [50, 95])
        return {"p50": float(p50), "p95": float(p95)}

    def as_dict(self) -> dict[str, Any]:
        """As `eval --json` writes it."""
        return {
            "dataset": self.dataset,
            "profile": self.system,
            "embedder": self.embedder,
            "queries": len(self.rows),
            "metrics": self.metrics,
            "by_category": self.by_category(),
            "latency_ms": self.latency(),
        }


def build(dataset: Dataset, *, embedder: Any = None, progress: Progress | None = None, **options: Any) -> HybridMemory:
    """A store in memory with the dataset's memories."""
    memory = HybridMemory.open(None, embedder=embedder, scope_key=USER_KEY if dataset.scoped else None, **options)
    memory.add(dataset.memories, progress=progress)
    return memory


def evaluate(system: System, dataset: Dataset, *, embedder: str = "", progress: Progress | None = None) -> Evaluation:
    """Ask every question. Ten results are timed; sessions are counted on a ranking of everything, untimed."""
    session_of = {m.id or "": m.metadata[SESSION_KEY] for m in dataset.memories if SESSION_KEY in m.metadata}
    sizes = {user: len(dataset.of(user)) for user in dataset.users()}
    rankings: dict[str, Sequence[str]] = {}
    sessions: dict[str, float] = {}
    latencies: list[float] = []
    for query in dataset.queries[:WARM_UP]:
        system.rank(query, K)
    for done, query in enumerate(dataset.queries, 1):
        started = time.perf_counter()
        rankings[query.id] = system.rank(query, K)
        latencies.append((time.perf_counter() - started) * 1000.0)
        if session_of:
            everything = system.rank(query, max(sizes.get(query.user, 0), 1))
            sessions[query.id] = metrics.session_recall(everything, query.relevant, session_of)
        if progress is not None:
            progress(done, len(dataset.queries))
    rows = metrics.per_query(rankings, {q.id: q.relevant for q in dataset.queries})
    for identifier, value in sessions.items():
        rows[identifier][metrics.SESSION] = value
    return Evaluation(
        dataset.name, system.name, embedder, rows, {q.id: q.category for q in dataset.queries}, tuple(latencies)
    )
