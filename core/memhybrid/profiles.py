"""Profiles: which sources bring candidates, which signals score them, how these are fused, and the limits.

Shipped: `semantic`, `bm25`, `mem0`, `tipsy`, `balanced` (the default) and `best`. A profile is checked when it is made and cannot
change; `replace` makes another. `to_json`/`from_json` keep it in a file.
"""

from __future__ import annotations

import inspect
import math
import warnings
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer, field_validator, model_validator

from memhybrid.budget import check_counter
from memhybrid.errors import ConfigError
from memhybrid.indexes.bm25 import Bm25Params
from memhybrid.protocols import Reranker, Signal
from memhybrid.signals import REGISTRY

USAGE_WARN = 0.05
DOMINANCE_WARN = 1.2
DOMINANCE_REFUSE = 1.0


class FieldMap(BaseModel):
    """Which metadata key plays which role, so that a user's own names serve."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    importance: str = "importance"
    created_at: str = "created_at"
    updated_at: str = "updated_at"
    type: str = "type"
    session_id: str = "session_id"
    msg_id: str = "msg_id"
    speaker: str = "speaker"
    min_msg_id: str = "min_msg_id"
    max_msg_id: str = "max_msg_id"
    expires_at: str = "expires_at"
    valid_to: str = "valid_to"
    superseded_by: str = "superseded_by"


class Profile(BaseModel):
    """How one kind of search works. All weights are finite and not negative; at least one is positive.

    `sources`: semantic, bm25, entity, importance, date, everything. `signals`: name in the registry → weight.
    `mmr_lambda` and `collapse_from` (trigram similarity) spread results out, see memhybrid.diversity; None leaves the order alone.
    `pool`: candidates a source brings, `factor`·k but at least `pool_min` and at most `pool_max`. Where Chroma's index serves the
    vectors, it is asked for at most `pool_from_index` or 4·k, whichever is more (None: for as many as any source).
    `gate`: candidates whose cosine is below it are dropped before fusion. `min_score` is what searches with this profile use when
    the call says nothing; `recommended_min_score` is a calibrated value to choose for "nothing relevant" answers.
    `embed_timeout_s`: seconds a query that the embedder has before the search goes on without it (None: as long as it takes).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)

    name: str = "custom"
    sources: tuple[str, ...] = ("semantic", "bm25", "entity")
    signals: dict[str, float] = Field(default_factory=dict)
    fusion: Literal["weighted", "additive", "renormalised"] = "weighted"
    pool_factor: int = Field(default=4, ge=1, le=1000)
    pool_min: int = Field(default=60, ge=1, le=10_000)
    pool_max: int = Field(default=1_000, ge=1, le=100_000)
    pool_from_index: int | None = Field(default=None, ge=1)
    exhaustive_up_to: int = Field(default=0, ge=0)
    gate: float | None = Field(default=None, ge=-1, le=1)
    bm25_variant: Literal["lucene", "okapi", "plus", "l"] = "lucene"
    bm25_k1: float = Field(default=1.5, ge=0, le=100)
    bm25_b: float = Field(default=0.75, ge=0, le=1)
    bm25_half: float = Field(default=1.0, gt=0)
    context: bool = False
    context_expand: int = Field(default=40, ge=0, le=1_000)
    adjustments: bool = False
    positive_only: bool = False
    order_by_updated: bool = False
    exclude_outdated: bool = True
    importance_scale: float = Field(default=1.0, gt=0)
    stretch: Literal["none", "quantile"] = "none"
    recency_days: float = Field(default=30.0, gt=0)
    min_score: float | None = None
    recommended_min_score: float | None = None
    rerank: Literal["auto", "off"] = "off"
    rerank_top: int = Field(default=8, ge=2, le=1_000)
    rerank_blend: float = Field(default=0.5, ge=0, le=1)
    rerank_margin: float | None = Field(default=0.08, ge=0, le=1)
    embed_timeout_s: float | None = Field(default=None, gt=0)
    deadline_s: float = Field(default=1.35, gt=0)
    rerank_min_left_s: float = Field(default=0.40, ge=0)
    mmr_lambda: float | None = Field(default=None, ge=0, le=1)
    collapse_from: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=0)
    token_counter: Any = "script"  # noqa: S105 - tokens of text
    record_usage: bool = False
    entity_vectors: bool = False
    fields: FieldMap = FieldMap()
    allow_query_independent: bool = False
    identity_predicate: Any = Field(default=None, exclude=True, repr=False)
    custom: tuple[Any, ...] = Field(default=(), exclude=True, repr=False)
    reranker: Any = Field(default=None, exclude=True, repr=False)

    @field_validator("signals")
    @classmethod
    def _weights(cls, weights: dict[str, float]) -> dict[str, float]:
        for name, weight in weights.items():
            if not math.isfinite(weight) or weight < 0:
                raise ValueError(f"the weight of {name!r} is {weight!r}; weights are finite and at least 0")
        return weights

    @field_serializer("token_counter")
    def _counter_name(self, counter: Any) -> str:
        return counter if isinstance(counter, str) else "script"

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for name, weight in dict(data.get("signals") or {}).items():
                if isinstance(weight, bool) or not isinstance(weight, int | float):
                    raise ValueError(f"the weight of {name!r} is {weight!r}; weights are numbers")
        return data

    @model_validator(mode="after")
    def _check(self) -> Profile:
        from memhybrid.sources import SOURCES

        known = set(REGISTRY) | {signal.name for signal in self.custom}
        unknown = [name for name in self.signals if name not in known]
        if unknown:
            raise ValueError(f"unknown signals {unknown}; known: {sorted(known)}")
        strange = [name for name in self.sources if name not in SOURCES]
        if strange or not self.sources:
            raise ValueError(f"unknown sources {strange}; give at least one of {sorted(SOURCES)}")
        if not any(weight > 0 for weight in self.signals.values()):
            raise ValueError("signals: give at least one signal a positive weight")
        if self.pool_min > self.pool_max:
            raise ValueError(f"pool_min {self.pool_min} is above pool_max {self.pool_max}")
        if self.reranker is not None:
            from memhybrid.rerank import check_reranker

            check_reranker(self.reranker)
        check_counter(self.token_counter)
        self._guard_against_the_trap()
        return self

    def _guard_against_the_trap(self) -> None:
        """Weights that do not move with the query must not outweigh those that do (spec: the usage trap)."""
        moving = {n: w for n, w in self.signals.items() if w > 0 and self.make_signal(n).query_dependent}
        still = {n: w for n, w in self.signals.items() if w > 0 and n not in moving and n != "range"}
        # Range moves with the request and not with the words: it is on neither side.
        dependent = sum(moving.values())
        independent = sum(still.values())
        named = f"query-dependent {moving or '{}'} against query-independent {still}"
        if (
            independent
            and dependent <= DOMINANCE_REFUSE * independent * (1 + 1e-9)
            and not self.allow_query_independent
        ):
            raise ValueError(
                f"results would not follow the query: {named}. Lower the latter, or say allow_query_independent=True"
            )
        if independent and dependent < DOMINANCE_WARN * independent:
            warnings.warn(f"profile {self.name!r}: results hardly follow the query: {named}", UserWarning, stacklevel=6)
        usage = self.signals.get("usage", 0.0)
        if usage > USAGE_WARN:
            warnings.warn(
                f"profile {self.name!r}: usage weighs {usage}; above {USAGE_WARN} it feeds itself until a few memories answer "
                "everything. `memhybrid diagnose` shows it",
                UserWarning,
                stacklevel=6,
            )

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'profile'}: {e['msg']}" for e in error.errors())
            raise ConfigError(f"profile {data.get('name', 'custom')!r}: {problems}") from error

    @property
    def bm25(self) -> Bm25Params:
        """The BM25 variant and its parameters."""
        return Bm25Params(self.bm25_variant, self.bm25_k1, self.bm25_b)

    def pool_size(self, k: int) -> int:
        """How many candidates each source brings for k results."""
        return min(max(self.pool_factor * k, self.pool_min), self.pool_max)

    def make_signal(self, name: str) -> Signal:
        """The signal behind a name: one handed to `with_signal`, else the registry's."""
        for signal in self.custom:
            if signal.name == name:
                return signal
        return REGISTRY[name]()

    def replace(self, **changes: Any) -> Profile:
        """Another profile with some fields changed; checked like the first."""
        data: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return Profile(**{**data, **changes})

    def with_signal(self, signal: Signal, weight: float) -> Profile:
        """Another profile with a signal of your own."""
        return self.replace(custom=(*self.custom, signal), signals={**self.signals, signal.name: weight})

    def with_reranker(self, reranker: Reranker | Any, **changes: Any) -> Profile:
        """Another profile that reranks its best candidates, by "late-interaction" or a reranker of your own; see memhybrid.rerank."""
        call = reranker.__call__ if callable(reranker) else None
        if inspect.iscoroutinefunction(reranker) or inspect.iscoroutinefunction(call):
            raise ConfigError("reranker: expected a plain function; an async one would never be awaited")
        return self.replace(reranker=reranker, rerank="auto", **changes)

    def to_json(self, path: str | Path | None = None) -> str:
        """The profile as JSON text, written to a file if one is given. Code of your own is not part of it."""
        import json

        data = self.model_dump(mode="json")
        if isinstance(self.reranker, str):
            data["reranker"] = self.reranker
        text = json.dumps(data, indent=2, ensure_ascii=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> Profile:
        """From JSON text or a file."""
        import json

        text = str(source)
        if not text.lstrip().startswith("{"):
            try:
                text = Path(source).read_text(encoding="utf-8")
            except OSError as error:
                raise ConfigError(f"cannot read the profile {source}: {error}") from error
        try:
            data = json.loads(text)
        except ValueError as error:
            raise ConfigError(f"the profile is not JSON: {error}") from error
        if not isinstance(data, dict):
            raise ConfigError("the profile is not a JSON object")
        return cls(**data)

    # --- shipped -----------------------------------------------------------------------------------------------------

    @classmethod
    def semantic(cls) -> Profile:
        """Vectors alone."""
        return cls(name="semantic", sources=("semantic",), signals={"semantic": 1.0}, pool_max=100_000)

    @classmethod
    def keywords(cls) -> Profile:
        """BM25 alone (`bm25`)."""
        return cls(name="bm25", sources=("bm25",), signals={"bm25": 1.0}, pool_max=100_000)

    @classmethod
    def mem0(cls) -> Profile:
        """Mem0's additive fusion, with its known weaknesses (spec section 1)."""
        return cls(
            name="mem0",
            sources=("semantic",),
            signals={"semantic": 1.0, "bm25_sigmoid": 1.0, "entity": 1.0},
            fusion="additive",
            gate=0.1,
            pool_max=100_000,
            entity_vectors=True,
        )

    @classmethod
    def tipsy(cls) -> Profile:
        """tipsy-memory's seven signals, reranking, budget and usage write-back (spec section 2)."""
        return cls(
            name="tipsy",
            sources=("semantic", "importance"),
            signals={
                "semantic": 0.38,
                "lexical": 0.18,
                "importance": 0.22,
                "recency": 0.04,
                "range": 0.06,
                "type": 0.12,
                "usage": 0.05,
            },
            pool_factor=20,
            pool_min=1,
            pool_max=100,
            adjustments=True,
            positive_only=True,
            order_by_updated=True,
            importance_scale=100.0,
            embed_timeout_s=5.0,
            rerank="auto",
            token_counter="ceil4",  # noqa: S106 - tokens of text
            record_usage=True,
        )

    @classmethod
    def balanced(cls) -> Profile:
        """The default: the union of all candidates, calibrated signals, late interaction, dates and neighbours."""
        return cls(
            name="balanced",
            sources=("semantic_covered", "bm25", "entity", "date"),
            signals={
                "semantic_covered": 0.1,
                "bm25_calibrated": 0.2,
                "coverage": 0.018,
                "late": 0.7,
                "date": 0.2,
                "identifier": 0.5,
            },
            fusion="renormalised",
            pool_factor=10,
            pool_min=150,
            pool_max=1_000,
            pool_from_index=60,
            exhaustive_up_to=400,
            bm25_k1=1.5,
            bm25_b=0.6,
            context=True,
            context_expand=20,
            recommended_min_score=0.20,
        )

    @classmethod
    def best(cls) -> Profile:
        """`balanced` with more candidates: slower, a little better."""
        return cls.balanced().replace(
            name="best", pool_min=500, pool_max=2_000, pool_from_index=None, exhaustive_up_to=5_000, context_expand=200
        )


SHIPPED = {
    "semantic": Profile.semantic,
    "bm25": Profile.keywords,
    "mem0": Profile.mem0,
    "tipsy": Profile.tipsy,
    "balanced": Profile.balanced,
    "best": Profile.best,
}


def as_profile(profile: Any) -> Profile:
    """A profile from a name, a path to a JSON file, or a Profile."""
    if isinstance(profile, Profile):
        return profile
    if isinstance(profile, str) and profile in SHIPPED:
        return SHIPPED[profile]()
    if isinstance(profile, Path) or (isinstance(profile, str) and profile.endswith(".json")):
        return Profile.from_json(profile)
    raise ConfigError(f"profile: expected one of {sorted(SHIPPED)}, a .json file or a Profile, got {profile!r}")
