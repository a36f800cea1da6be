"""What stands before and around every request: the key, and limits of size, number and time."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from memhybrid.service.auth import Caller, Keys, Limits
from memhybrid.service.problems import MEDIA_TYPE, MISTAKE, ProblemError, body

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

T = TypeVar("T")
log = logging.getLogger("memhybrid.service")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Gate:
    """ASGI middleware: who asks and how much comes before anything is read, parsed or done.

    `keys` None: everybody may ask. `hosts`: the Host headers that are answered (None: any). Without API keys only loopback names are: a
    web page that a browser on this machine shows must not reach the service under a name of its own.
    """

    def __init__(self, app: ASGIApp, limits: Limits, keys: Keys | None, hosts: tuple[str, ...] | None) -> None:
        self._app = app
        self._limits = limits
        self._keys = keys
        self._hosts = hosts
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        self._running += 1
        try:
            await self._app(scope, await self._admit(scope, receive), noted)
        except ProblemError as error:
            await _refuse(noted, error)
        except Exception:
            # Whatever the handlers did not turn into an answer: the connection still gets one, without a trace.
            log.exception("unexpected")
            if not started:
                await _refuse(noted, ProblemError(500, MISTAKE))
        finally:
            self._running -= 1

    async def _admit(self, scope: Scope, receive: Receive) -> Receive:
        """The request's body, read; ProblemError for a request that is not let in."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if self._hosts is not None and _name(headers.get(b"host", b"")) not in self._hosts:
            raise ProblemError(421, "this service answers only under a loopback name")
        if scope["path"].startswith("/v1/"):
            caller = Caller()
            if self._keys is not None:
                caller = self._keys.caller(_text(headers, b"authorization"), _text(headers, b"x-api-key"))
            scope.setdefault("state", {})["caller"] = caller
            if self._running > self._limits.max_concurrent:
                raise ProblemError(503, "too many requests at once; try again", {"Retry-After": "1"})
            # What a web page can send without being asked is not JSON by its content type.
            if scope["method"] in ("POST", "DELETE") and not _is_json(headers.get(b"content-type", b"")):
                raise ProblemError(415, "send application/json")
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._limits.max_body_bytes:
            raise ProblemError(413, self._too_large())
        try:
            content = await asyncio.wait_for(self._read(receive), self._limits.timeout_s)
        except asyncio.TimeoutError:
            raise ProblemError(408, f"the request did not come in within {self._limits.timeout_s:g} s") from None
        sent = False

        async def replayed() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": content, "more_body": False}

        return replayed

    async def _read(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > self._limits.max_body_bytes:
                raise ProblemError(413, self._too_large())
            parts.append(part)
            more = bool(message.get("more_body", False))
        return b"".join(parts)

    def _too_large(self) -> str:
        return f"the request is larger than {self._limits.max_body_bytes} bytes"


def _is_json(content_type: bytes) -> bool:
    return content_type.split(b";")[0].strip().lower() == b"application/json"


def _text(headers: dict[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


def _name(host: bytes) -> str:
    """A Host header without its port."""
    text = host.decode("latin-1").lower()
    return text[: text.index("]") + 1] if text.startswith("[") and "]" in text else text.partition(":")[0]


async def _refuse(send: Send, error: ProblemError) -> None:
    content = json.dumps(body(error.status, error.detail)).encode()
    headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    fixed = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": content})


async def within(limits: Limits, work: Awaitable[T]) -> T:
    """What the work gives; 504 when it takes longer than the limit (a write that has begun is completed)."""
    try:
        return await asyncio.wait_for(work, limits.timeout_s)
    except asyncio.TimeoutError:
        raise ProblemError(504, f"no answer within {limits.timeout_s:g} s") from None
