"""The parts that can be replaced, each as small as it can be.

An implementation needs no base class. `memhybrid.testing` has a contract suite for the larger ones; run it on
yours. Shapes: n memories, d dimensions; vectors are float32, scores float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from memhybrid.records import StoredRecord, WriteEvent
    from memhybrid.signals import SignalContext

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Fingerprint:
    """What vectors were made by: a store made by one embedder refuses another.

    `name` identifies the model, `dimension` is the length of its vectors, `revision` changes whenever its output does
    ("" where the embedder cannot tell).
    """

    name: str
    dimension: int
    revision: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.dimension} dimensions{', revision ' + self.revision if self.revision else ''})"


@runtime_checkable
class Embedder(Protocol):
    """Text to vectors. Both methods take a list of texts and return an array of shape (n, d), float32, finite.

    Thread-safe. Raising is allowed: a search then goes on without the semantic signal, a write fails as a whole.
    """

    @property
    def fingerprint(self) -> Fingerprint: ...

    def embed_documents(self, texts: Sequence[str]) -> Float32: ...

    def embed_query(self, texts: Sequence[str]) -> Float32: ...

    def covers(self, text: str) -> bool:
        """Whether the model is meant for the script that most of the text is written in."""
        ...


@dataclass(frozen=True)
class TokenVectors:
    """The vectors of one text's tokens: `vectors` (tokens, d) float32, `tokens` their strings (no special tokens)."""

    tokens: tuple[str, ...]
    vectors: Float32


@runtime_checkable
class TokenEmbedder(Protocol):
    """An embedder that also gives token vectors from the same pass, for late interaction."""

    def encode(self, texts: Sequence[str]) -> tuple[Float32, list[TokenVectors]]: ...


@dataclass(frozen=True)
class Entity:
    """A name found in a text: `name` as written, `key` normalised (NFKC, case-folded, one space), `kind` a rough class.

    Kinds: "proper", "quoted", "compound", "identifier".
    """

    key: str
    name: str
    kind: str


@dataclass(frozen=True)
class Analysis:
    """One analysed text: its terms in order with repeats, and its entities without repeats in order of appearance."""

    terms: tuple[str, ...]
    entities: tuple[Entity, ...] = ()


@dataclass(frozen=True)
class QueryAnalysis:
    """One analysed query.

    `names` are the normalised word or character sequences that might be a known entity's key. `words` are the surface words,
    case-folded, each with the terms that it became (none for a stop word).
    """

    terms: tuple[str, ...]
    entities: tuple[Entity, ...] = ()
    names: tuple[str, ...] = ()
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()


@runtime_checkable
class Analyzer(Protocol):
    """Text to terms and entities, the same for writes and queries.

    Deterministic and thread-safe; never raises on any str; `fingerprint` changes whenever the output may.
    `missing` names pieces that are not installed, such as "spacy-pipeline" or "rjieba" (empty: all there).
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def missing(self) -> tuple[str, ...]: ...

    def analyze(self, texts: Sequence[str]) -> list[Analysis]: ...

    def analyze_query(self, text: str) -> QueryAnalysis: ...


@runtime_checkable
class Backend(Protocol):
    """Where texts, metadata and vectors live. All batches and pages are the backend's business.

    Metadata given is what is stored (replaced, not merged). `get` returns what exists, in any order.
    `nearest` returns about n ids, best first, by the store's own index; ids that are gone may be among them.
    """

    @property
    def identity(self) -> str:
        """Changes when the collection is dropped and made again."""
        ...

    def upsert(self, records: Sequence[StoredRecord], *, previous: Mapping[str, Mapping[str, Any]]) -> None: ...

    def delete(self, ids: Sequence[str]) -> None: ...

    def get(self, ids: Sequence[str], *, vectors: bool = True) -> list[StoredRecord]: ...

    def ids(self) -> Iterator[str]: ...

    def pages(self, *, vectors: bool = True) -> Iterator[list[StoredRecord]]: ...

    def count(self) -> int: ...

    def nearest(self, vector: Float32, n: int) -> list[str]: ...

    def settle(self) -> None:
        """Called once before the first look at the change token: finish what a killed process left behind."""
        ...

    def change_token(self) -> str | None:
        """A cheap value that changes with every write by anyone, or None where there is no such thing."""
        ...

    def changed_since(self, token: str) -> list[str] | None:
        """Ids written after `token` (deleted ones are not among them), or None if that cannot be told."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class LexicalIndex(Protocol):
    """Keyword index over rows 0..n of one scope: rows are appended, removed, scored for a query's terms."""

    def add(self, rows: Sequence[int], terms: Sequence[Sequence[str]]) -> None: ...

    def remove(self, rows: Iterable[int]) -> None: ...


class Signal(Protocol):
    """A number in [0, 1] for each candidate of a query, or NaN where it does not know.

    `query_dependent` tells the guards whether the number moves with the query. `values` gets all candidates at once
    and returns float64 of shape (candidates,).
    """

    name: str
    query_dependent: bool

    def values(self, context: SignalContext) -> Float64: ...


class Reranker(Protocol):
    """Relevance in [0, 1] of each text for the query; as many scores as texts, in their order."""

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[float]: ...


class WriteListener(Protocol):
    """Told after each write what the store now holds. An exception in a listener is logged, never raised to the writer."""

    def __call__(self, event: WriteEvent, /) -> object: ...
