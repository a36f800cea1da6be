"""rank_bm25 as the engine: its own classes, rebuilt when something was written. Slower, and the same interface as ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.indexes.bm25 import Bm25Index, Bm25Params, Bm25State, best_of
from memhybrid.indexes.postings import PackedTerms, term_hash
from memhybrid.protocols import Float64


@dataclass(frozen=True)
class RankBm25State(Bm25State):
    """Postings say which rows are hits; the scores are rank_bm25's (its Okapi where the profile says `lucene`)."""

    packed: tuple[PackedTerms | None, ...] = ()

    def _engine(self, params: Bm25Params) -> tuple[Any, NDArray[np.intp]]:
        key = ("engine", params)
        known = self._cache.get(key)
        if known is None:
            import rank_bm25

            rows = np.arange(self.n_rows, dtype=np.intp) if self.alive is None else np.flatnonzero(self.alive)
            corpus = [_tokens(self.packed[row]) for row in rows.tolist()]
            kinds: dict[str, Any] = {"plus": rank_bm25.BM25Plus, "l": rank_bm25.BM25L}
            kind = kinds.get(params.variant, rank_bm25.BM25Okapi)
            known = self._cache[key] = (kind(corpus, k1=params.k1, b=params.b) if any(corpus) else None, rows)
        return known

    def _all(self, terms: Sequence[str], params: Bm25Params) -> Float64:
        """rank_bm25's score of every row, NaN for those without a query term."""
        out = np.full(self.n_rows, np.nan)
        engine, rows = self._engine(params)
        if engine is not None and terms:
            scores = np.full(self.n_rows, np.nan)
            scores[rows] = engine.get_scores([term_hash(t) for t in terms])
            hits = Bm25State.hits(self, terms)
            out[hits] = scores[hits]
        return out

    def scores(self, terms: Sequence[str], rows: NDArray[np.intp], params: Bm25Params) -> Float64:
        """rank_bm25's scores of the rows."""
        return self._all(terms, params)[rows]

    def scores_and_share(
        self, terms: Sequence[str], rows: NDArray[np.intp], params: Bm25Params
    ) -> tuple[Float64, Float64]:
        """rank_bm25's scores, and our share of the query's terms."""
        return self.scores(terms, rows, params), self.share(terms, rows)

    def top(
        self, terms: Sequence[str], n: int, params: Bm25Params, mask: NDArray[np.bool_] | None = None
    ) -> NDArray[np.intp]:
        """The n best hits by rank_bm25's scores, with ties."""
        scores = self._all(terms, params)
        hits = np.isfinite(scores) if mask is None else np.isfinite(scores) & mask
        rows = np.flatnonzero(hits)
        return best_of(rows, scores[rows], n)


def _tokens(packed: PackedTerms | None) -> list[int]:
    return [] if packed is None else np.repeat(packed.hashes, packed.counts).tolist()


class RankBm25Index(Bm25Index):
    """The writer's side: our postings, and the terms for rank_bm25."""

    def __init__(self) -> None:
        super().__init__()
        self._packed: list[PackedTerms | None] = []
        self._publish()

    def add_packed(self, rows: Sequence[int], packed: Sequence[PackedTerms]) -> None:
        """Append memories whose terms are counted already."""
        for row, terms in zip(rows, packed, strict=True):
            self._packed.extend([None] * (row - len(self._packed)))
            self._packed.append(terms)
        super().add_packed(rows, packed)
        self._publish()

    def remove(self, rows: Iterable[int]) -> None:
        """Tombstone rows."""
        super().remove(rows)
        self._publish()

    def _publish(self) -> None:
        s = self.state
        self.state = RankBm25State(
            s.n_rows, s.segments, s.lengths, s.alive, s.documents, s.total_length, packed=tuple(self._packed)
        )
