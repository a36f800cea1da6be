"""What a signal sees: one query, one pinned view, the candidate rows, and numbers that several signals share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memhybrid.protocols import Float32, Float64

if TYPE_CHECKING:
    from memhybrid.indexes.partition import View
    from memhybrid.late import QueryTokens
    from memhybrid.profiles import Profile
    from memhybrid.scope import Filter
    from memhybrid.state.ledger import Ledger
    from memhybrid.text.dates import DateMention


@dataclass(frozen=True)
class Request:
    """One search as it was asked for, checked."""

    query: str
    k: int
    scope: str
    where: Filter | None
    embedding: Float32 | None
    min_score: float | None
    max_tokens: int | None
    record_usage: bool | None
    min_msg_id: float | None
    max_msg_id: float | None
    prefix_only: bool
    include_outdated: bool
    now: float

    @property
    def has_query(self) -> bool:
        """Whether there is anything to match: words or a vector."""
        return bool(self.query.strip()) or self.embedding is not None

    @property
    def has_range(self) -> bool:
        """Whether a message range was asked for."""
        return self.min_msg_id is not None or self.max_msg_id is not None


@dataclass(frozen=True)
class QueryFeatures:
    """The query, analysed once. `vector` is a unit vector or None, `covered` whether the embedder is meant for its script."""

    text: str
    terms: tuple[str, ...]
    entities: tuple[str, ...]
    names: tuple[str, ...]
    vector: Float32 | None
    covered: bool
    tokens: QueryTokens | None = None
    dates: tuple[DateMention, ...] = ()
    identifiers: tuple[str, ...] = ()
    scan: Float32 | None = None


EmbedNames = Callable[[list[str]], Float32]


@dataclass
class SignalContext:
    """Everything a signal may look at. `shared` keeps what one part computed and another needs."""

    view: View
    rows: NDArray[np.intp]
    query: QueryFeatures
    request: Request
    profile: Profile
    mask: NDArray[np.bool_] | None
    ledger: Ledger | None = None
    embed_names: EmbedNames | None = None
    shared: dict[str, Any] = field(default_factory=dict)

    def over(self, rows: NDArray[np.intp]) -> SignalContext:
        """The same for other rows; `shared` stays shared."""
        return SignalContext(
            self.view,
            rows,
            self.query,
            self.request,
            self.profile,
            self.mask,
            self.ledger,
            self.embed_names,
            self.shared,
        )

    def field_name(self, role: str) -> str:
        """The metadata key that plays a role such as "importance"."""
        return str(getattr(self.profile.fields, role))

    def keywords(self) -> tuple[Float64, Float64]:
        """BM25 (NaN where no query term occurs) and the share of the query's terms, of every candidate; looked up once for both."""
        key = (self.query.terms, self.profile.bm25)
        kept = self.shared.get("keywords")
        if kept is None or kept[0] is not self.rows or kept[1] != key:
            kept = (self.rows, key, self.view.lexical.scores_and_share(self.query.terms, self.rows, self.profile.bm25))
            self.shared["keywords"] = kept
        scores, share = kept[2]
        return scores, share

    def unknown(self) -> Float64:
        """NaN for every candidate."""
        return np.full(len(self.rows), np.nan)

    def raw(self, name: str) -> Float64 | None:
        """A signal's numbers before normalisation, where it recorded them for just these rows."""
        kept: Mapping[str, Any] = self.shared.get("raw", {})
        values = kept.get(name)
        return values if values is not None and len(values) == len(self.rows) else None

    def record_raw(self, name: str, values: Float64) -> None:
        """Keep a signal's numbers before normalisation for the explanation."""
        self.shared.setdefault("raw", {})[name] = values
