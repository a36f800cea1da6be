"""What the targets share: a loop of executions, each made from (seed, number) alone, and the report."""

from __future__ import annotations

import faulthandler
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

HANGS_S = 60.0
"""An execution that takes longer ends the process with a traceback."""
KEPT = 3
"""Findings kept of one kind."""


class Wrong(AssertionError):  # noqa: N818 - a finding, not an error of the program
    """Something that may not be, with the input that shows it."""


@dataclass
class Report:
    """Counts of one run. `kinds` counts findings by kind, `findings` has the first few of each with what reproduces them."""

    executions: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    slowest: str = ""

    def timed(self, seconds: float, what: str) -> None:
        """Remember the slowest input."""
        if seconds > self.slowest_s:
            self.slowest_s, self.slowest = seconds, what[:200]

    def found(self, kind: str, text: str) -> None:
        """A finding; of each kind the first few are kept."""
        self.kinds[kind] += 1
        if self.kinds[kind] <= KEPT:
            self.findings.append(text[:2000])

    def as_dict(self) -> dict[str, Any]:
        """For the JSON line."""
        return {
            "executions": self.executions,
            "seconds": round(self.seconds, 1),
            "per_second": round(self.executions / self.seconds, 1) if self.seconds else 0.0,
            "findings": sum(self.kinds.values()),
            "counts": dict(self.counts),
            "slowest_s": round(self.slowest_s, 3),
            "slowest": self.slowest,
            "found": self.findings,
        }


class Target(Protocol):
    """One kind of input. `run` makes one from the generator and raises whatever is not allowed."""

    def run(self, chance: random.Random, report: Report) -> None:
        """One execution."""
        ...

    def close(self) -> None:
        """Let go of files."""
        ...


def fuzz(
    target: Target,
    seconds: float,
    seed: int,
    *,
    first: int = 0,
    last: int | None = None,
    began: Callable[[int], None] | None = None,
) -> Report:
    """Executions `first`, `first` + 1, … until the time is over, or `last` is done. `began` is told each number before it starts."""
    report = Report()
    start = time.monotonic()
    number = first
    while time.monotonic() - start < seconds and (last is None or number <= last):
        if began is not None:
            began(number)
            faulthandler.dump_traceback_later(HANGS_S, exit=True)
        try:
            target.run(random.Random(f"{seed}/{number}"), report)
        except Exception as error:  # noqa: BLE001 - whatever a target lets through is a finding
            frames = traceback.extract_tb(error.__traceback__)
            kind = f"{type(error).__name__} at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"
            if isinstance(error, Wrong):
                kind = str(error).partition("\n")[0][:60]
            report.found(kind, f"seed {seed}, execution {number}: {kind}: {error}")
        number += 1
        report.executions += 1
    if began is not None:
        faulthandler.cancel_dump_traceback_later()
    report.seconds = time.monotonic() - start
    return report
