"""What goes in and what comes out: memories, hits, results and the trace of how they came about. All frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Memory:
    """One stored text with its metadata.

    `id` None lets the store make one. `metadata` values are str, int, float, bool, or a non-empty list of one of these;
    datetimes and dates are stored as ISO 8601 text, numpy scalars and enums as their plain value, None is left out.
    `embedding` (d floats) spares the embedder; results carry it only when asked for.
    """

    id: str | None = None
    text: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    embedding: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class StoredRecord:
    """A memory as the backend holds it. `vector` (d,) float32 as stored there, or None where it was not asked for."""

    id: str
    text: str
    metadata: Mapping[str, Any]
    vector: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class WriteEvent:
    """What a write left behind. `put` are the memories as now stored, `removed` the ids that are gone."""

    put: tuple[Memory, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class SignalDetail:
    """One signal of one hit.

    `raw` is the number before normalisation (BM25's score, cosine), `value` lies in [0, 1], `weight` is the weight that it
    really had for this hit after missing signals were left out, `contribution` is what it added to the score.
    """

    raw: float
    value: float
    weight: float
    contribution: float


@dataclass(frozen=True)
class Hit:
    """A memory found: its final `score` in [0, 1], and the value of each signal in [0, 1] (None: not known for it)."""

    memory: Memory
    score: float
    signals: Mapping[str, float | None]
    details: Mapping[str, SignalDetail] = field(default_factory=dict, repr=False)
    sources: tuple[str, ...] = ()
    adjustments: Mapping[str, float] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Dropped:
    """A memory that was scored and yet not returned, and why ("min_score", "max_tokens", "limit", …)."""

    id: str
    score: float
    reason: str


@dataclass(frozen=True)
class Trace:
    """How a result came about.

    `candidates` is the number each source brought, `pool` the number after the union, `weights` the profile's weights,
    `degraded` a sentence for each part that failed or is missing, `notes` decisions worth knowing (rerank skipped, …),
    `timings_ms` milliseconds by stage, `max_possible` the divisor of additive fusion.
    """

    profile: str
    scope: Mapping[str, Any]
    terms: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    candidates: Mapping[str, int] = field(default_factory=dict)
    pool: int = 0
    weights: Mapping[str, float] = field(default_factory=dict)
    max_possible: float | None = None
    min_score: float | None = None
    degraded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SearchResult:
    """The hits of one query, best first, with the trace. Iterates over the hits; prints as a table."""

    query: str
    hits: tuple[Hit, ...]
    trace: Trace

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    @property
    def ids(self) -> list[str]:
        """The ids of the hits, best first."""
        return [hit.memory.id or "" for hit in self.hits]

    def explain(self, *, format: Literal["table", "json"] = "table") -> str:  # noqa: A002 - the word users expect
        """Why each hit is where it is: every signal's value, weight and contribution, as a table or as JSON text."""
        from memhybrid.explain import as_json, as_table

        return as_json(self) if format == "json" else as_table(self)

    def __str__(self) -> str:
        return self.explain()
