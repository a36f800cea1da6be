"""What a search notes down for its trace."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from memhybrid.records import Dropped


@dataclass
class Journal:
    """What the trace will say: timings, degradations, notes, drops."""

    started: float = field(default_factory=time.perf_counter)
    timings: dict[str, float] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    failed_parts: set[str] = field(default_factory=set)
    _last: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        """The time since the last lap belongs to this stage."""
        now = time.perf_counter()
        self.timings[stage] = self.timings.get(stage, 0.0) + (now - self._last) * 1000.0
        self._last = now

    def failed(self, part: str, error: Exception) -> None:
        """A part raised and is left out."""
        self.failed_parts.add(part)
        self.degraded.append(f"{part}: {type(error).__name__}: {error}")

    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self.started
