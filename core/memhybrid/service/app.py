"""The routes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from memhybrid.concurrency import in_thread, in_write_thread
from memhybrid.explain import as_dict
from memhybrid.memory import HybridMemory, MemoryView
from memhybrid.profiles import SHIPPED, Profile
from memhybrid.records import Memory, SearchResult
from memhybrid.service.auth import Caller, Limits
from memhybrid.service.limits import within
from memhybrid.service.models import (
    AddRequest,
    AddResponse,
    DeleteRequest,
    DeleteResponse,
    Health,
    RetrieveRequest,
    RetrieveResponse,
    Scoped,
)
from memhybrid.service.problems import ProblemError, responses

ERRORS = responses(400, 401, 403, 408, 413, 415, 421, 422, 500, 503, 504)
router = APIRouter()


class Service:
    """What the routes share: the store and the limits."""

    def __init__(self, memory: HybridMemory, limits: Limits) -> None:
        self.memory = memory
        self.limits = limits

    def view(self, caller: Caller, asked: Scoped) -> MemoryView:
        """The part of the store that the request is about: bound to the key's scope and to what the request names."""
        fields = self.memory.profile.fields
        named = {"user_id": asked.user_id, "character_id": asked.character_id, fields.session_id: asked.session_id}
        bound = caller.bind(named, self.memory.scope_keys)
        return self.memory.scoped(**bound) if bound else self.memory

    def profile(self, name: str | None) -> Profile | None:
        """A shipped profile by its name: a path to a file is for those who start the service."""
        if name is None:
            return None
        if name not in SHIPPED:
            raise ProblemError(422, f"profile: expected one of {', '.join(SHIPPED)}")
        return SHIPPED[name]()


def service_of(request: Request) -> Service:
    """The application's service."""
    service: Service = request.app.state.service
    return service


def caller_of(request: Request) -> Caller:
    """Who asks, as the gate found out."""
    caller: Caller = request.state.caller
    return caller


def writer_of(caller: Annotated[Caller, Depends(caller_of)]) -> Caller:
    """Who asks, if the key may write."""
    if not caller.write:
        raise ProblemError(403, "the key may not write")
    return caller


Anyone = Annotated[Caller, Depends(caller_of)]
Writer = Annotated[Caller, Depends(writer_of)]
Shared = Annotated[Service, Depends(service_of)]


@router.post("/v1/memory/retrieve", responses=ERRORS, tags=["memories"])
async def retrieve(wanted: RetrieveRequest, caller: Anyone, service: Shared) -> RetrieveResponse:
    """Find memories for a query, with every signal and the trace of how they were found."""
    if wanted.limit > service.limits.max_limit:
        raise ProblemError(422, f"limit: at most {service.limits.max_limit}")
    view, profile = service.view(caller, wanted), service.profile(wanted.profile)
    search = in_thread(
        view.search,
        wanted.query,
        wanted.limit,
        where=wanted.where,
        profile=profile,
        min_score=wanted.min_score,
        max_tokens=wanted.max_tokens,
        min_msg_id=wanted.min_msg_id,
        max_msg_id=wanted.max_msg_id,
        prefix_only=wanted.prefix_only,
        # A key that may not write leaves no usage behind either.
        record_usage=None if caller.write else False,
    )
    result: SearchResult = await within(service.limits, search)
    shown: dict[str, Any] = as_dict(result)
    trace = {**shown["trace"], "degraded": [text.partition(":")[0] for text in result.trace.degraded]}
    return RetrieveResponse.model_validate({"memories": shown["hits"], "trace": trace})


@router.post("/v1/memories", status_code=201, responses={**ERRORS, **responses(409)}, tags=["memories"])
async def add(wanted: AddRequest, caller: Writer, service: Shared) -> AddResponse:
    """Store memories. An id that exists in the scope is replaced; one that exists elsewhere is refused."""
    if len(wanted.memories) > service.limits.max_memories:
        raise ProblemError(422, f"memories: at most {service.limits.max_memories} at once")
    view = service.view(caller, wanted)
    for memory in wanted.memories:
        caller.bind({k: memory.metadata.get(k) for k in view.scope}, ())
    items = [Memory(m.id, m.text, m.metadata) for m in wanted.memories]
    return AddResponse(ids=await within(service.limits, in_write_thread(view.add, items)))


@router.delete("/v1/memories", responses=ERRORS, tags=["memories"])
async def delete(wanted: DeleteRequest, caller: Writer, service: Shared) -> DeleteResponse:
    """Delete by ids, by filter, or everything in the scope. Ids outside the scope do not exist."""
    view = service.view(caller, wanted)
    if wanted.ids is None and not wanted.where and not wanted.all:
        raise ProblemError(422, "give ids, where, or all=true")
    delete = in_write_thread(view.delete, wanted.ids, where=wanted.where, all=wanted.all)
    return DeleteResponse(deleted=await within(service.limits, delete))


@router.get("/healthz", tags=["upkeep"])
async def healthz() -> Health:
    """Alive: the process answers."""
    return Health(status="ok")


@router.get("/readyz", responses=responses(503), tags=["upkeep"])
async def readyz(service: Shared) -> Health:
    """Ready: the store can be read. Says nothing about what is in it."""
    try:
        await within(service.limits, in_thread(service.memory.stats))
    except Exception as error:
        raise ProblemError(503, "the store cannot be read now") from error
    return Health(status="ok")
