"""The config file: API keys, the scopes that they open, and limits.

    {"keys": [
        {"name": "app of u1",  "sha256": "<hex of sha256(key)>",  "scope": {"user_id": "u1"}},
        {"name": "backend",    "key": "plain text, for trying",   "scope": {}, "write": true},
        {"name": "dashboard",  "sha256": "…", "scope": {"user_id": "u1"}, "write": false}],
     "limits": {"max_body_bytes": 1000000, "max_limit": 100, "max_memories": 256, "timeout_s": 30, "max_concurrent": 64}}

A key is sent as `Authorization: Bearer KEY` or `X-API-Key: KEY`. `scope` binds it: requests are ANDed with it and cannot widen it. A key
with an empty scope may name any (for a backend that knows its users). `python -c "import hashlib, sys;
print(hashlib.sha256(sys.argv[1].encode()).hexdigest())" KEY` gives the hash.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError, model_validator

from memhybrid.errors import ConfigError
from memhybrid.service.problems import ProblemError

ScopeValue = StrictStr | StrictInt
SHORTEST = 16


class KeyEntry(BaseModel):
    """One API key as the config file has it: its hash, or the key itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{64}$", repr=False)
    key: str | None = Field(default=None, min_length=SHORTEST, repr=False)
    scope: dict[str, ScopeValue]
    write: bool = True

    @model_validator(mode="after")
    def _one_of_them(self) -> KeyEntry:
        if (self.sha256 is None) == (self.key is None):
            raise ValueError("give either sha256 or key")
        if any(value == "" for value in self.scope.values()):
            raise ValueError("scope values are non-empty strings or ints")
        return self

    @property
    def digest(self) -> bytes:
        """sha256 of the key."""
        if self.key is not None:
            return hashlib.sha256(self.key.encode()).digest()
        return bytes.fromhex(self.sha256 or "")


class Limits(BaseModel):
    """What one request may ask for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_body_bytes: int = Field(default=1_000_000, ge=1_000, le=1_000_000_000)
    max_limit: int = Field(default=100, ge=1, le=1_000)
    max_memories: int = Field(default=256, ge=1, le=10_000)
    timeout_s: float = Field(default=30.0, gt=0, le=3_600)
    max_concurrent: int = Field(default=64, ge=1, le=10_000)


class Config(BaseModel):
    """The config file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: tuple[KeyEntry, ...] = Field(min_length=1)
    limits: Limits = Limits()


def load_config(source: str | Path | Mapping[str, Any] | Config) -> Config:
    """From a JSON file or its content. ConfigError names what is wrong, never a key."""
    if isinstance(source, Config):
        return source
    if isinstance(source, Mapping):
        data: Any = source
    else:
        try:
            data = json.loads(Path(source).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot read the service's config {source}: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"the service's config {source} is not JSON: {type(error).__name__}") from None
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
        raise ConfigError(f"the service's config: {problems}") from None
    if len({entry.digest for entry in config.keys}) < len(config.keys):
        raise ConfigError("the service's config: the same key is there twice")
    return config


@dataclass(frozen=True)
class Caller:
    """Who asks: the scope that the key binds, and whether it may write."""

    scope: Mapping[str, ScopeValue] = field(default_factory=dict)
    write: bool = True

    def bind(self, asked: Mapping[str, ScopeValue | None], required: Sequence[str]) -> dict[str, ScopeValue]:
        """The scope of a request: the key's, narrowed by what the request names. 403 where they differ, 422 where one is missing."""
        bound: dict[str, ScopeValue] = dict(self.scope)
        for name, value in asked.items():
            if value is None:
                continue
            if name in bound and (bound[name] != value or type(bound[name]) is not type(value)):
                raise ProblemError(403, f"the key does not open this {name}")
            bound[name] = value
        for name in required:
            if name not in bound:
                raise ProblemError(422, f"{name} is required")
        return bound


class Keys:
    """Looks keys up in constant time: every stored digest is compared, whichever fits."""

    def __init__(self, entries: Sequence[KeyEntry]) -> None:
        self._known = [(entry.digest, Caller(dict(entry.scope), entry.write)) for entry in entries]

    def caller(self, authorization: str | None, api_key: str | None) -> Caller:
        """Who sent these headers; 401 for nobody that is known."""
        scheme, _, token = (authorization or "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else api_key or ""
        # Header bytes are read as Latin-1: a key beyond ASCII is UTF-8 there.
        digest = hashlib.sha256(given.encode("latin-1", "replace")).digest()
        found: Caller | None = None
        for known, caller in self._known:
            if hmac.compare_digest(known, digest):
                found = caller
        if found is None or not given:
            raise ProblemError(401, "an API key is required", {"WWW-Authenticate": "Bearer"})
        return found
