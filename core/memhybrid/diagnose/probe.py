"""A view that searches as the given one does, on a copy of the usage ledger."""

# It takes a view apart and puts it together again around another ledger: nobody else needs that.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.journal import Journal
from memhybrid.memory import MemoryView
from memhybrid.protocols import Embedder, Fingerprint, Float32, Float64, TokenEmbedder, TokenVectors
from memhybrid.scored import Scored
from memhybrid.search import Searcher
from memhybrid.signals.usage import DAY, usage_value
from memhybrid.state.ledger import Ledger
from memhybrid.validity import still_valid

if TYPE_CHECKING:
    from memhybrid.indexes.partition import View
    from memhybrid.profiles import Profile
    from memhybrid.signals.context import SignalContext

SAMPLE = 5_000
"""Memories that the signals are measured on; a larger scope is sampled evenly."""


class Probe:
    """Asks a store what it would answer. What is recorded stays in the copy."""

    def __init__(self, view: MemoryView, where: Mapping[str, Any] | None, profile: Profile, now: float) -> None:
        store: Any = copy.copy(view._store)
        store.ledger = Ledger(None)
        store.ledger.set(view._store.ledger.export())
        store.embedder = _remembering(view._store.embedder)
        pinned, condition = view._view(where)
        store.partitions = _Pinned(pinned)
        self._view = MemoryView(store, profile, view.scope, consistency="bounded", strict=False)
        self._scorer = MemoryView(store, profile, view.scope, consistency="bounded", strict=False)
        if profile.exclude_outdated:
            condition = still_valid(pinned.partition.metadata, profile.fields, now, condition)
        mask = pinned.mask(condition)
        self.pinned: View = pinned
        self.rows: NDArray[np.intp] = pinned.living() if mask is None else np.flatnonzero(mask)
        self._recorder = _Recording(store, view._syncer, self.sample())
        self._scorer._searcher = self._recorder
        self._where = where
        self._ledger = store.ledger
        self._now = now

    def sample(self) -> NDArray[np.intp]:
        """At most SAMPLE rows of the scope, evenly."""
        return self.rows[:: max(-(-len(self.rows) // SAMPLE), 1)]

    def ask(self, query: str, k: int, profile: Profile) -> list[str]:
        """The ids that a search returns."""
        return self._view.search(query, k, where=self._where, profile=profile, record_usage=False, now=self._now).ids

    def record(self, ids: Sequence[str]) -> None:
        """Count them as returned now, in the copy."""
        self._ledger.record(ids, self._now)

    def scored(self, query: str, profile: Profile) -> Scored:
        """Signals and score of the whole sample for a query, whoever would be a candidate."""
        self._scorer.search(query, 1, where=self._where, profile=profile, record_usage=False, now=self._now)
        assert self._recorder.last is not None
        return self._recorder.last

    def usage(self, rows: NDArray[np.intp]) -> Float64:
        """The usage value of rows by the copied ledger."""
        ids = [self.pinned.id(int(row)) for row in rows]
        known = self._ledger.get(ids)

        def value(identifier: str) -> float:
            entry = known.get(identifier)
            if entry is None:
                return 0.0
            return usage_value(entry.count, None if entry.last is None else (self._now - entry.last) / DAY)

        return np.array([value(i) for i in ids], dtype=np.float64)


class _Pinned:
    """One partition as it was, for every search of a probe: another one may number its rows otherwise."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.vectors = view.partition.vectors
        self.row_of = view.partition.row_of

    def get(self, scope: str) -> _Pinned:
        """The one, whatever was written or loaded anew meanwhile."""
        del scope
        return self

    def view(self) -> View:
        """What every search works on."""
        return self._view


class _Recording(Searcher):
    """Scores a fixed set of rows and keeps what it found."""

    def __init__(self, store: Any, syncer: Any, rows: NDArray[np.intp]) -> None:
        super().__init__(store, syncer)
        self._rows = rows
        self.last: Scored | None = None

    def _candidates(
        self, context: SignalContext, journal: Journal
    ) -> tuple[NDArray[np.intp], dict[str, NDArray[np.intp]]]:
        del context, journal
        return self._rows, {}

    def _score(self, context: SignalContext, journal: Journal) -> Scored:
        self.last = super()._score(context, journal)
        return self.last


class _Remembering:
    """Each query is embedded once, however many rounds ask it."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._known: dict[tuple[str, ...], Float32] = {}

    @property
    def fingerprint(self) -> Fingerprint:
        return self._inner.fingerprint

    def covers(self, text: str) -> bool:
        return self._inner.covers(text)

    def embed_documents(self, texts: Sequence[str]) -> Float32:
        return self._inner.embed_documents(texts)

    def embed_query(self, texts: Sequence[str]) -> Float32:
        key = tuple(texts)
        if key not in self._known:
            self._known[key] = self._inner.embed_query(texts)
        return self._known[key]


class _RememberingTokens(_Remembering):
    def __init__(self, inner: Embedder, encoder: TokenEmbedder) -> None:
        super().__init__(inner)
        self._encoder = encoder
        self._encoded: dict[tuple[str, ...], tuple[Float32, list[TokenVectors]]] = {}

    def encode(self, texts: Sequence[str]) -> tuple[Float32, list[TokenVectors]]:
        key = tuple(texts)
        if key not in self._encoded:
            self._encoded[key] = self._encoder.encode(texts)
        return self._encoded[key]


def _remembering(embedder: Embedder) -> Embedder:
    return _RememberingTokens(embedder, embedder) if isinstance(embedder, TokenEmbedder) else _Remembering(embedder)
