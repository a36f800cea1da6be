"""Fitting a profile to someone's own labelled queries, and saying honestly whether it helps.

Coordinate search over a small grid around a profile, on nDCG@10. What the search gains is measured on folds that it did not see:
whole users where there are several, else queries. A gain whose bootstrap interval reaches 0 is noise and is not recommended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.errors import InputError
from memhybrid.evaluate.datasets import Query
from memhybrid.evaluate.pools import Pools, bm25_key
from memhybrid.evaluate.significance import SEED, interval
from memhybrid.profiles import Profile
from memhybrid.protocols import Float64

MULTIPLES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""A signal's weight is tried at these multiples of the profile's own."""
SHAPES = ((0.9, 0.4), (1.2, 0.75), (2.0, 0.75))
"""BM25's k1 and b, beside the profile's own."""
HALVES = (0.5, 1.0, 2.0, 4.0)
ROUNDS = 2
FOLDS = 5
STEP = 0.001
"""A change is made only where it gains this much on the queries that are fitted to."""
FEWEST = 20
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Fold:
    """What the search gained on queries that it did not see."""

    name: str
    queries: int
    before: float
    after: float


@dataclass(frozen=True)
class Tuned:
    """A fitted profile. `gain` is the mean held-out gain in nDCG@10, `low` and `high` its 95 % bootstrap interval."""

    base: Profile
    profile: Profile
    folds: tuple[Fold, ...]
    before: float
    after: float
    low: float
    high: float
    changes: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def gain(self) -> float:
        """Mean held-out gain."""
        return self.after - self.before

    @property
    def recommended(self) -> bool:
        """Whether the gain is more than noise, and there is something to change."""
        return self.low > 0.0 and bool(self.changes)


def keyword_profiles(base: Profile) -> list[Profile]:
    """Every setting of BM25 that is tried."""
    shapes = dict.fromkeys([(base.bm25_k1, base.bm25_b), *SHAPES])
    halves = dict.fromkeys([base.bm25_half, *HALVES])
    return [base.replace(bm25_k1=k1, bm25_b=b, bm25_half=half) for k1, b in shapes for half in halves]


class _Judge:
    """nDCG@10 of every query by profile, each computed once."""

    def __init__(self, pools: Pools, progress: Progress | None) -> None:
        self._pools = pools
        self._known: dict[tuple[Any, ...], Float64] = {}
        self._progress = progress

    def __call__(self, profile: Profile) -> Float64:
        """(Q,) numbers."""
        total = sum(profile.signals.values())
        shares = tuple(round(weight / total, 9) for weight in profile.signals.values())
        key = (shares, bm25_key(profile), profile.context)
        if key not in self._known:
            self._known[key] = self._pools.ndcg(profile)
            if self._progress is not None:
                self._progress(len(self._known), 0)
        return self._known[key]


def _variants(base: Profile, current: Profile) -> Iterator[list[Profile]]:
    """For each coordinate the profiles that differ from the current one in it alone."""
    for name, weight in base.signals.items():
        if weight > 0:
            weights = [{**current.signals, name: round(weight * m, 6)} for m in MULTIPLES]
            yield [
                current.replace(signals=w) for w in weights if any(v > 0 for v in w.values()) and w != current.signals
            ]
    shapes = dict.fromkeys([(base.bm25_k1, base.bm25_b), *SHAPES])
    yield [current.replace(bm25_k1=k1, bm25_b=b) for k1, b in shapes if (k1, b) != (current.bm25_k1, current.bm25_b)]
    yield [current.replace(bm25_half=h) for h in dict.fromkeys([base.bm25_half, *HALVES]) if h != current.bm25_half]
    yield [current.replace(context=not current.context)]


def _search(judge: _Judge, base: Profile, inside: NDArray[np.intp]) -> Profile:
    """The best profile that coordinate search finds for some of the queries."""
    current, best = base, float(judge(base)[inside].mean())
    for _ in range(ROUNDS):
        before = best
        for variants in _variants(base, current):
            tried = [(float(judge(v)[inside].mean()), -i, v) for i, v in enumerate(variants)]
            value, _, variant = max(tried, key=lambda item: item[:2], default=(-1.0, 0, current))
            if value >= best + STEP:
                current, best = variant, value
        if best == before:
            break
    return current


def folds_of(queries: Sequence[Query]) -> dict[str, NDArray[np.intp]]:
    """Held-out positions by the fold's name: users together where there are several, else queries at random."""
    users = list(dict.fromkeys(q.user for q in queries))
    generator = np.random.default_rng(SEED)
    if len(users) > 1:
        count = min(FOLDS, len(users))
        at = {users[place]: i % count for i, place in enumerate(generator.permutation(len(users)).tolist())}
        numbers = np.array([at[q.user] for q in queries])
        names = [", ".join(str(u) for u in users if at[u] == i) for i in range(count)]
    else:
        count = FOLDS
        numbers = generator.permutation(len(queries)) % count
        names = [f"fold {i + 1}" for i in range(count)]
    return {name: np.flatnonzero(numbers == i) for i, name in enumerate(names)}


def tune(
    pools: Pools, queries: Sequence[Query], base: Profile, *, name: str = "tuned", progress: Progress | None = None
) -> Tuned:
    """Fit on each fold's rest, measure on the fold, then fit on everything. `progress` gets the number of profiles tried."""
    if len(queries) < FEWEST:
        raise InputError(f"{len(queries)} labelled queries are too few to fit anything; {FEWEST} is the least")
    judge = _Judge(pools, progress)
    before = judge(base)
    after = before.copy()
    folds: list[Fold] = []
    for label, held_out in folds_of(queries).items():
        rest = np.setdiff1d(np.arange(len(queries)), held_out)
        after[held_out] = judge(_search(judge, base, rest))[held_out]
        folds.append(Fold(label, len(held_out), float(before[held_out].mean()), float(after[held_out].mean())))
    low, high = interval(after - before)
    found = _search(judge, base, np.arange(len(queries)))
    return Tuned(
        base,
        found.replace(name=name),
        tuple(folds),
        float(before.mean()),
        float(after.mean()),
        low,
        high,
        _changes(base, found),
    )


def _changes(base: Profile, found: Profile) -> dict[str, tuple[Any, Any]]:
    pairs = {f"weight of {n}": (w, found.signals[n]) for n, w in base.signals.items()}
    pairs |= {n: (getattr(base, n), getattr(found, n)) for n in ("bm25_k1", "bm25_b", "bm25_half", "context")}
    return {n: pair for n, pair in pairs.items() if pair[0] != pair[1]}
