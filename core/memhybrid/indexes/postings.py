"""Terms as hashes, and postings in immutable segments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=1 << 17)
def term_hash(term: str) -> int:
    """64 bits that stand for a term, the same in every process."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class PackedTerms:
    """One memory's distinct terms as hashes, uint64 (m,), and how often each occurs, uint16 (m,)."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.uint16]

    @classmethod
    def of(cls, terms: Sequence[str]) -> PackedTerms:
        """Count and hash."""
        counter = Counter(terms)
        hashes = np.array([term_hash(t) for t in counter], dtype=np.uint64)
        counts = np.array([min(c, 65535) for c in counter.values()], dtype=np.uint16)
        return cls(hashes, counts)

    @property
    def length(self) -> int:
        """Number of terms with repeats."""
        return int(self.counts.sum(dtype=np.int64))


@dataclass(frozen=True)
class Segment:
    """Postings of a run of rows: `rows[indptr[i]:indptr[i+1]]` contain the term `terms[i]`, `counts` times each."""

    terms: NDArray[np.uint64]
    indptr: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.uint16]

    @classmethod
    def build(cls, rows: NDArray[np.int32], hashes: NDArray[np.uint64], counts: NDArray[np.uint16]) -> Segment:
        """From one entry a posting, in row order."""
        order = np.argsort(hashes, kind="stable")
        sorted_hashes = hashes[order]
        starts = (
            np.flatnonzero(np.concatenate([[True], sorted_hashes[1:] != sorted_hashes[:-1]])) if len(order) else order
        )
        indptr = np.append(starts, len(order)).astype(np.int32)
        return cls(sorted_hashes[starts], indptr, rows[order], counts[order])

    @classmethod
    def merge(cls, left: Segment, right: Segment) -> Segment:
        """Two neighbouring runs as one; every row of `left` comes before those of `right`."""
        hashes = np.concatenate([np.repeat(s.terms, np.diff(s.indptr)) for s in (left, right)])
        rows = np.concatenate([left.rows, right.rows])
        return cls.build(rows, hashes, np.concatenate([left.counts, right.counts]))

    def find(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]] | None:
        """Rows (ascending) and counts of a term."""
        at = int(np.searchsorted(self.terms, np.uint64(term)))
        if at == len(self.terms) or int(self.terms[at]) != term:
            return None
        start, stop = self.indptr[at], self.indptr[at + 1]
        return self.rows[start:stop], self.counts[start:stop]

    def nbytes(self) -> int:
        """Resident bytes."""
        return int(self.terms.nbytes + self.indptr.nbytes + self.rows.nbytes + self.counts.nbytes)
