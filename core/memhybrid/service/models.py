"""What goes over the wire."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from memhybrid.profiles import SHIPPED

ScopeId = Annotated[StrictStr, Field(min_length=1, max_length=500)] | Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
MessageId = Annotated[StrictInt, Field(ge=-(2**53), le=2**53)]
MAX_QUERY = 20_000
MAX_LIMIT = 1_000
MAX_IDS = 10_000


class _In(BaseModel):
    """A request: unknown fields are errors, so that a misspelt one is not silently ignored."""

    model_config = ConfigDict(extra="forbid")


class Scoped(_In):
    """Whose memories. A key that is bound to a scope need not repeat it, and cannot name another."""

    user_id: ScopeId | None = Field(default=None, examples=["u1"])
    character_id: ScopeId | None = Field(default=None, examples=["c1"])
    session_id: ScopeId | None = Field(default=None, examples=["s1"])


class RetrieveRequest(Scoped):
    """Find memories for a query; without a query, the most important ones."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"user_id": "u1", "query": "What does Daniel do for a living?", "limit": 5, "max_tokens": 400},
                {"user_id": "u1", "session_id": "s1", "max_msg_id": 120, "prefix_only": True},
            ]
        },
    )

    query: str = Field(default="", max_length=MAX_QUERY)
    limit: Annotated[StrictInt, Field(ge=1, le=MAX_LIMIT)] = 10
    max_tokens: Annotated[StrictInt, Field(ge=0, le=10_000_000)] | None = None
    min_msg_id: MessageId | None = None
    max_msg_id: MessageId | None = None
    prefix_only: StrictBool = False
    profile: str | None = Field(default=None, description=f"One of {', '.join(SHIPPED)}; default: the service's.")
    where: dict[str, Any] | None = Field(
        default=None, examples=[{"type": "preference"}], description="A filter, as in memory.search."
    )
    min_score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None


class Found(BaseModel):
    """One memory, its score and each signal's value (null: not known for it)."""

    id: str
    text: str
    metadata: dict[str, Any]
    score: float
    signals: dict[str, float | None]
    adjustments: dict[str, float]
    sources: list[str]


class DroppedOut(BaseModel):
    """A memory that was scored and not returned, and why."""

    id: str
    score: float
    reason: str


class TraceOut(BaseModel):
    """How the result came about."""

    profile: str
    scope: dict[str, Any]
    terms: list[str]
    entities: list[str]
    candidates: dict[str, int]
    pool: int
    weights: dict[str, float]
    max_possible: float | None
    min_score: float | None
    degraded: list[str]
    notes: list[str]
    dropped: list[DroppedOut]
    timings_ms: dict[str, float]


class RetrieveResponse(BaseModel):
    """Memories, best first, and the trace."""

    memories: list[Found]
    trace: TraceOut


class NewMemory(_In):
    """A memory to store. An id that exists is replaced; without one it gets one."""

    id: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    text: str = Field(examples=["Daniel is a carpenter for a small theatre."])
    metadata: dict[str, Any] = Field(default_factory=dict, examples=[{"type": "fact", "importance": 60}])


class AddRequest(Scoped):
    """Store memories in one scope; `session_id` and the like become part of their metadata."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"user_id": "u1", "memories": [{"text": "Daniel is a carpenter.", "metadata": {"importance": 60}}]}
            ]
        },
    )

    memories: list[NewMemory] = Field(min_length=1)


class AddResponse(BaseModel):
    """The ids, in the order of the memories."""

    ids: list[str]


class DeleteRequest(Scoped):
    """Delete by ids, by a filter, or everything in the scope with `all`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"user_id": "u1", "ids": ["m1"]}, {"user_id": "u1", "where": {"session_id": "s1"}}]
        },
    )

    ids: (
        Annotated[list[Annotated[str, Field(min_length=1, max_length=500)]], Field(min_length=1, max_length=MAX_IDS)]
        | None
    ) = None
    where: dict[str, Any] | None = None
    all: StrictBool = False


class DeleteResponse(BaseModel):
    """How many existed and are gone."""

    deleted: int


class Health(BaseModel):
    """`ok`, or what is wrong."""

    status: str = Field(examples=["ok"])
