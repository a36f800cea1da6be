"""Errors as problem details (RFC 9457). They say what the caller can change, and never a stack trace, a path or another's data."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from memhybrid.errors import InputError, MemHybridError, StoreError

if TYPE_CHECKING:
    from fastapi import FastAPI, Request
    from fastapi.responses import JSONResponse

log = logging.getLogger("memhybrid.service")
MEDIA_TYPE = "application/problem+json"
MAX_LISTED = 20
MISTAKE = "the service made a mistake; it is in its log"


class Problem(BaseModel):
    """What went wrong, for people (`title`, `detail`) and programs (`status`, `errors`)."""

    model_config = ConfigDict(extra="forbid")

    type: str = "about:blank"
    title: str = Field(examples=["Unprocessable Content"])
    status: int = Field(examples=[422])
    detail: str | None = Field(default=None, examples=["limit: expected at least 1"])
    errors: list[dict[str, str]] | None = Field(
        default=None, examples=[[{"where": "body.limit", "message": "too small"}]]
    )


class ProblemError(Exception):
    """Answered as a problem with this status."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}


def body(status: int, detail: str | None = None, errors: list[dict[str, str]] | None = None) -> dict[str, Any]:
    """A problem as JSON values."""
    title = HTTPStatus(status).phrase
    return Problem(title=title, status=status, detail=detail, errors=errors).model_dump(exclude_none=True)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These statuses as problems in the OpenAPI schema."""
    content = {MEDIA_TYPE: {"schema": Problem.model_json_schema()}}
    return {s: {"description": HTTPStatus(s).phrase, "content": content} for s in statuses}


def answer(
    status: int, detail: str | None = None, *, errors: Any = None, headers: dict[str, str] | None = None
) -> JSONResponse:
    """A problem as a response."""
    from fastapi.responses import JSONResponse

    return JSONResponse(body(status, detail, errors), status, headers, MEDIA_TYPE)


def plain(text: str) -> str:
    """A message that can be encoded, whatever the caller sent, in bounded length."""
    return text.encode("utf-8", "replace").decode("utf-8")[:500]


def from_error(error: MemHybridError) -> tuple[int, str]:
    """Status and detail of an error of the library. What is the caller's to change is said; what is ours is logged."""
    if isinstance(error, InputError):
        taken = "this id is taken" in str(error)
        return (409, "an id is taken; use another one") if taken else (422, plain(str(error)))
    log.error("the request failed", exc_info=error)
    if isinstance(error, StoreError):
        return 503, "the store does not answer now; try again later"
    return 503, "a part that the request needs does not work now; see the service's log"


def install(app: FastAPI) -> None:
    """Every error of the application becomes a problem."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    async def known(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ProblemError)
        return answer(error.status, error.detail, headers=error.headers)

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return answer(error.status_code, None, headers=dict(error.headers or {}))

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        # Where and what, not the value: it may be anything, also what JSON cannot carry back.
        listed = [
            {"where": plain(".".join(map(str, e["loc"]))), "message": plain(str(e["msg"]))}
            for e in error.errors()[:MAX_LISTED]
        ]
        return answer(422, "the request does not fit the schema", errors=listed)

    async def library(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, MemHybridError)
        return answer(*from_error(error))

    app.add_exception_handler(ProblemError, known)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(MemHybridError, library)
