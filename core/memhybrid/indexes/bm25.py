"""BM25 over rows that come and go: integer statistics, numpy postings in immutable segments, tombstones.

A segment holds, for each term it knows, the rows that contain it and how often. Adding makes a small segment; neighbours of
like size are merged, so that there are O(log n) of them. Removing sets a tombstone. A reader works on the state it took and
never waits. Terms are kept as 64-bit hashes (blake2b): no vocabulary, neither in memory nor on disk.

Formulae (N memories, df of them contain the term, tf times in a memory of dl terms, average length avgdl):

    lucene   idf = ln(1 + (N-df+.5)/(df+.5))            part = tf(k1+1) / (tf + k1(1-b+b·dl/avgdl))
    okapi    idf = ln(N-df+.5) - ln(df+.5), negative ones replaced by .25·(mean idf of the vocabulary); part as above
    plus     idf = ln((N+1)/df)                         part = delta + tf(k1+1) / (tf + k1(1-b+b·dl/avgdl)), delta 1
    l        idf = ln(N+1) - ln(df+.5)                  part = tf(k1+1)(c+delta)/(k1+c+delta), c = tf/(1-b+b·dl/avgdl), delta .5

The last three are those of rank_bm25 0.2.2 to the letter (Trotman et al. 2014; Lv and Zhai 2011), with one difference: only a
memory that contains a query term is a hit. The first is Lucene's idf with the factor k1+1 (Robertson and Zaragoza 2009).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memhybrid.indexes.growable import Growable
from memhybrid.indexes.postings import PackedTerms, Segment, term_hash
from memhybrid.indexes.scratch import Scratch

Variant = Literal["lucene", "okapi", "plus", "l"]
_CACHED_POSTINGS = 4_000_000
"""Postings whose scores one state keeps (12 bytes each), so that frequent terms are not computed again for each query."""
_DENSE_FROM = 4
"""Terms that a quarter of the rows contain are kept as one score a row, too: adding them needs no scattered access."""
_LOOKED_AT = 16_384
"""Rows (and eight more for each one wanted) up to which the terms left are looked up row by row."""
_SHORT = 1_000
"""A list of so few rows is added rather than looked at twice."""
EPSILON = 0.25


@dataclass(frozen=True)
class Bm25Params:
    """k1 ≥ 0 saturates repeats, b in [0, 1] weighs length, delta is the constant of `plus` (1) and `l` (.5)."""

    variant: Variant = "lucene"
    k1: float = 1.5
    b: float = 0.75

    @property
    def delta(self) -> float:
        """rank_bm25's default for the variant."""
        return 0.5 if self.variant == "l" else 1.0


@dataclass(frozen=True)
class _Postings:
    """A query term's live rows (ascending) with their scores, and the largest of these."""

    rows: NDArray[np.int32]
    scores: NDArray[np.float64]
    bound: float
    dense: NDArray[np.float64] | None = None
    """The score of every row, 0 where the term does not occur; for frequent terms only."""

    def at(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """The score of each of the rows, 0 where the term does not occur."""
        if self.dense is not None:
            return self.dense[rows]
        place, there = _places(self.rows, rows)
        return np.where(there, self.scores[place], 0.0)


@dataclass(frozen=True)
class Bm25State:
    """What a reader pins: segments, lengths, which rows live (None: all of 0..n), and the integer statistics."""

    n_rows: int
    segments: tuple[Segment, ...]
    lengths: NDArray[np.int32]
    alive: NDArray[np.bool_] | None
    documents: int
    total_length: int
    scratch: Scratch = field(default_factory=Scratch, repr=False, compare=False)
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def average_length(self) -> float:
        """Mean number of terms of the live memories, 0 in an empty store."""
        return self.total_length / self.documents if self.documents else 0.0

    def postings(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Live rows that contain the term, ascending, and how often."""
        found = [hit for segment in self.segments if (hit := segment.find(term)) is not None]
        if not found:
            return np.empty(0, np.int32), np.empty(0, np.uint16)
        rows = found[0][0] if len(found) == 1 else np.concatenate([rows for rows, _ in found])
        counts = found[0][1] if len(found) == 1 else np.concatenate([counts for _, counts in found])
        if self.alive is not None:
            living = self.alive[rows]
            rows, counts = rows[living], counts[living]
        return rows, counts

    def _rows(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """`postings`, kept for the next query that asks."""
        known = self._cache.get(term)
        if known is None:
            known = self.postings(term)
            self._keep(term, known, len(known[0]))
        return known

    def _room(self, size: int) -> bool:
        return self._cache.get("postings", 0) + size <= _CACHED_POSTINGS

    def _keep(self, key: Any, value: Any, size: int) -> None:
        if self._room(size):
            self._cache[key] = value
            self._cache["postings"] = self._cache.get("postings", 0) + size

    def document_frequency(self, term: str) -> int:
        """How many live memories contain the term."""
        return len(self._rows(term_hash(term))[0])

    def idf_of(self, term: str) -> float:
        """Lucene's idf of a term; that of a term which no memory has where none has it."""
        return self._lucene_idf(self.document_frequency(term))

    def _lucene_idf(self, df: int) -> float:
        return math.log(1.0 + (self.documents - df + 0.5) / (df + 0.5))

    def idf_unseen(self) -> float:
        """Lucene's idf of a term that no memory has: the largest there is."""
        return math.log(1.0 + (self.documents + 0.5) / 0.5)

    def idf(self, df: int, params: Bm25Params) -> float:
        """The variant's idf for a term that `df` of the memories contain; 0 where none does."""
        n = self.documents
        if df == 0:
            return 0.0
        if params.variant == "lucene":
            return self._lucene_idf(df)
        if params.variant == "plus":
            return math.log((n + 1) / df)
        if params.variant == "l":
            return math.log(n + 1) - math.log(df + 0.5)
        idf = math.log(n - df + 0.5) - math.log(df + 0.5)
        return idf if idf >= 0 else EPSILON * self._average_okapi_idf()

    def _average_okapi_idf(self) -> float:
        known = self._cache.get("average_okapi_idf")
        if known is None:
            if self.alive is None:
                terms = np.concatenate([s.terms for s in self.segments])
                dfs = np.concatenate([np.diff(s.indptr) for s in self.segments])
            else:
                terms = np.concatenate([np.repeat(s.terms, np.diff(s.indptr)) for s in self.segments])
                dfs = np.concatenate([self.alive[s.rows] for s in self.segments]).astype(np.int32)
            _, inverse = np.unique(terms, return_inverse=True)
            df = np.bincount(inverse, weights=dfs)
            df = df[df > 0]
            known = float(np.mean(np.log(self.documents - df + 0.5) - np.log(df + 0.5)))
            self._cache["average_okapi_idf"] = known
        return known

    def _scored(self, term: int, params: Bm25Params) -> _Postings:
        key = (term, params)
        known = self._cache.get(key)
        if known is not None:
            return known
        rows, counts = self._rows(term)
        idf = self.idf(len(rows), params)
        tf = counts.astype(np.float64)
        norm = 1.0 - params.b + params.b * self.lengths[rows] / (self.average_length or 1.0)
        if params.variant == "l":
            c = tf / norm
            scores = idf * tf * (params.k1 + 1.0) * (c + params.delta) / (params.k1 + c + params.delta)
        else:
            scores = idf * (tf * (params.k1 + 1.0) / (tf + params.k1 * norm))
        dense = None
        if len(rows) * _DENSE_FROM >= self.n_rows and self._room(len(rows) + self.n_rows):
            dense = np.zeros(self.n_rows)
            dense[rows] = scores
        made = _Postings(rows, scores, float(scores.max()) if len(scores) else 0.0, dense)
        self._keep(key, made, len(rows) if dense is None else len(rows) + self.n_rows)
        return made

    def _query(self, terms: Sequence[str], params: Bm25Params) -> list[tuple[_Postings, int]]:
        return [(self._scored(term_hash(t), params), times) for t, times in Counter(terms).items()]

    def scores(self, terms: Sequence[str], rows: NDArray[np.intp], params: Bm25Params) -> NDArray[np.float64]:
        """Each row's score, NaN where it contains no query term. Repeated query terms count as often as they occur.

        Summed in the order of the query, so that a score does not depend on what else is scored.
        """
        return self.scores_and_share(terms, rows, params)[0]

    def scores_and_share(
        self, terms: Sequence[str], rows: NDArray[np.intp], params: Bm25Params
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`scores` and `share` in one pass."""
        total, held = np.zeros(len(rows)), np.zeros(len(rows))
        hit = np.zeros(len(rows), dtype=np.bool_)
        narrow = rows.astype(np.int32)
        constant = asked = 0.0
        for postings, times in self._query(terms, params):
            idf = self._lucene_idf(len(postings.rows))
            asked += idf
            if not len(postings.rows):
                continue
            at, contains = _places(postings.rows, narrow)
            total[contains] += times * postings.scores[at[contains]]
            held[contains] += idf
            hit |= contains
            if params.variant == "plus":
                constant += times * params.delta * self.idf(len(postings.rows), params)
        return np.where(hit, total + constant, np.nan), np.clip(held / asked, 0.0, 1.0) if asked > 0 else held

    def share(self, terms: Sequence[str], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """The share of the query's distinct terms weighted by `idf_of`, that each row contains; 0 without terms."""
        total = 0.0
        held = np.zeros(len(rows))
        narrow = rows.astype(np.int32)
        for term in dict.fromkeys(terms):
            idf = self.idf_of(term)
            total += idf
            found = self._rows(term_hash(term))[0]
            if len(found):
                held[_places(found, narrow)[1]] += idf
        return np.clip(held / total, 0.0, 1.0) if total > 0 else held

    def hits(self, terms: Sequence[str], mask: NDArray[np.bool_] | None = None) -> NDArray[np.intp]:
        """All live rows that contain a query term (and are in the mask), ascending."""
        found = [self._rows(term_hash(t))[0] for t in dict.fromkeys(terms)]
        rows = np.unique(np.concatenate(found)) if found else np.empty(0, np.int32)
        return (rows if mask is None else rows[mask[rows]]).astype(np.intp)

    def top(
        self, terms: Sequence[str], n: int, params: Bm25Params, mask: NDArray[np.bool_] | None = None
    ) -> NDArray[np.intp]:
        """The n best rows, in no particular order, with all that tie with the last of them. n ≥ 1.

        Exact. Terms are taken from the most telling to the least; once n rows score more than all the terms left can give
        together, no new row can get in, and the long lists of frequent words are only looked up (MaxScore, Turtle and
        Flood 1995).
        """
        query = [(p, t) for p, t in self._query(terms, params) if len(p.rows)]
        query.sort(key=lambda entry: (-entry[0].bound * entry[1], len(entry[0].rows)))
        left = sum(max(p.bound, 0.0) * t for p, t in query)
        prunable = all(p.bound >= 0 for p, _ in query) and params.variant != "okapi"
        few = 8 * n + _LOOKED_AT
        with self.scratch.borrow(self.n_rows) as (buffer, touched):
            fresh: list[NDArray[np.int32]] = []
            count = 0
            for i, (postings, times) in enumerate(query):
                left -= max(postings.bound, 0.0) * times
                found, scores = postings.rows, postings.scores
                if mask is not None:
                    inside = mask[found]
                    found, scores = found[inside], scores[inside]
                touched.append(found)
                if count <= few and postings.bound > 0:
                    # Scores are positive: who has none yet was not met before.
                    fresh.append(found[buffer[found] == 0.0])
                    count += len(fresh[-1])
                else:
                    count = few + 1
                if postings.dense is not None and mask is None:
                    np.add(buffer, postings.dense if times == 1 else times * postings.dense, out=buffer)
                else:
                    buffer[found] += scores if times == 1 else times * scores
                if prunable and n <= count <= few and i + 1 < len(query) and len(query[i + 1][0].rows) > _SHORT:
                    rows = np.concatenate(fresh)
                    partial = buffer[rows]
                    if _nth(partial, n) > left * (1 + 1e-9):
                        return self._finish(rows, partial, query[i + 1 :], left, n)
            return self._select(buffer, fresh, touched, n)

    def _finish(
        self,
        rows: NDArray[np.int32],
        partial: NDArray[np.float64],
        rest: Sequence[tuple[_Postings, int]],
        left: float,
        n: int,
    ) -> NDArray[np.intp]:
        """The best of rows to which no other can be added: the terms left are looked up for those that may still get in."""
        for postings, times in rest:
            if len(rows) > n:
                able = partial + left >= _nth(partial, n) * (1 - 1e-9)
                rows, partial = rows[able], partial[able]
            partial = partial + times * postings.at(rows)
            left -= max(postings.bound, 0.0) * times
        return best_of(rows, partial, n)

    @staticmethod
    def _select(
        buffer: NDArray[np.float64], fresh: list[NDArray[np.int32]], touched: list[NDArray[np.int32]], n: int
    ) -> NDArray[np.intp]:
        """The best of a full accumulation. The rows met first give a floor that spares sorting the whole buffer."""
        floor = -math.inf
        if sum(map(len, fresh)) >= n:
            floor = _nth(buffer[np.concatenate(fresh)], n)
        if floor > 0:
            rows = np.flatnonzero(buffer >= floor * (1 - 1e-12)).astype(np.int32)
        elif touched:
            rows = np.unique(np.concatenate(touched))
        else:
            rows = np.empty(0, np.int32)
        return best_of(rows, buffer[rows], n)


def _places(found: NDArray[np.int32], rows: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where each row is in an ascending list, and whether it is there. Both of one type: numpy would copy the list otherwise."""
    at = np.searchsorted(found, rows)
    at[at == len(found)] = 0
    return at, found[at] == rows


def _nth(scores: NDArray[np.float64], n: int) -> float:
    """The n-th largest."""
    return float(np.partition(scores, len(scores) - n)[len(scores) - n])


def best_of(rows: NDArray[Any], scores: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    """The n best rows and those that tie with the last of them (to rounding)."""
    if len(rows) > n:
        last = _nth(scores, n)
        rows = rows[scores >= last - 1e-12 * abs(last)]
    return rows.astype(np.intp)


class Bm25Index:
    """The writer's side. Rows are appended in ascending order; `state` is what a reader takes."""

    def __init__(self) -> None:
        self._lengths = Growable(np.int32)
        self._scratch = Scratch()
        self.state = Bm25State(0, (), self._lengths.view(0), None, 0, 0, self._scratch)

    def add(self, rows: Sequence[int], terms: Sequence[Sequence[str]]) -> None:
        """Append memories given by their terms."""
        self.add_packed(rows, [PackedTerms.of(t) for t in terms])

    def add_packed(self, rows: Sequence[int], packed: Sequence[PackedTerms]) -> None:
        """Append memories whose terms are counted already."""
        if not rows:
            return
        old = self.state
        sizes = np.fromiter((len(p.hashes) for p in packed), dtype=np.int64, count=len(packed))
        hashes = np.concatenate([p.hashes for p in packed])
        counts = np.concatenate([p.counts for p in packed])
        lengths = _sums(counts, sizes)
        self._append(old, np.asarray(rows, dtype=np.int32), sizes, hashes, counts, lengths)

    def _append(
        self,
        old: Bm25State,
        rows: NDArray[np.int32],
        sizes: NDArray[np.int64],
        hashes: NDArray[np.uint64],
        counts: NDArray[np.uint16],
        lengths: NDArray[np.int64],
    ) -> None:
        top = int(rows[-1]) + 1
        self._lengths.reserve(top)[rows] = lengths
        segments = list(old.segments)
        segments.append(Segment.build(np.repeat(rows, sizes), hashes, counts))
        while len(segments) > 1 and len(segments[-1].rows) * 2 >= len(segments[-2].rows):
            right, left = segments.pop(), segments.pop()
            segments.append(Segment.merge(left, right))
        alive = old.alive
        skipped = top - old.n_rows - len(rows)
        if alive is not None or skipped:
            grown = np.zeros(top, dtype=np.bool_)
            grown[: old.n_rows] = True if alive is None else alive
            grown[rows] = True
            alive = grown
        self.state = Bm25State(
            top,
            tuple(segments),
            self._lengths.view(top),
            alive,
            old.documents + len(rows),
            old.total_length + int(lengths.sum()),
            self._scratch,
        )

    def remove(self, rows: Iterable[int]) -> None:
        """Tombstone rows; unknown and dead ones are ignored."""
        old = self.state
        alive = np.ones(old.n_rows, dtype=np.bool_) if old.alive is None else old.alive.copy()
        gone = np.array([r for r in set(rows) if 0 <= r < old.n_rows and alive[r]], dtype=np.intp)
        if not len(gone):
            return
        alive[gone] = False
        self.state = Bm25State(
            old.n_rows,
            old.segments,
            old.lengths,
            alive,
            old.documents - len(gone),
            old.total_length - int(old.lengths[gone].sum(dtype=np.int64)),
            self._scratch,
        )

    def nbytes(self) -> int:
        """Resident bytes, without the score cache."""
        return self._lengths.nbytes() + sum(segment.nbytes() for segment in self.state.segments)


def _sums(values: NDArray[np.uint16], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of consecutive groups of the given sizes; empty groups give 0."""
    totals = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    ends = np.cumsum(sizes)
    return totals[ends] - totals[ends - sizes]
