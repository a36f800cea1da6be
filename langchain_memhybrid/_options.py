"""What a call can say about a search, as keyword arguments or in the run's config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config

from langchain_memhybrid._open import bind
from memhybrid.memory import MemoryView
from memhybrid.profiles import Profile

PREFIX = "memhybrid_"
_PLAIN = ("k", "filter", "scope")


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search; None is not said. An unknown one is a TypeError."""

    k: int | None = None
    filter: Mapping[str, Any] | None = None
    scope: Mapping[str, Any] | None = None
    profile: str | Path | Profile | None = None
    min_score: float | Literal["recommended"] | None = None
    max_tokens: int | None = None
    record_usage: bool | None = None
    include_outdated: bool | None = None
    now: datetime | float | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> SearchOptions:
        """From keyword arguments; TypeError for one that there is not, with those that there are."""
        unknown = sorted(set(options) - set(NAMES))
        if unknown:
            raise TypeError(f"a search has no option {', '.join(map(repr, unknown))}; it has {', '.join(NAMES)}")
        return cls(**options)

    def arguments(self, defaults: Any) -> dict[str, Any]:
        """The arguments of `MemoryView.search` beside the query; what is not said is an attribute of `defaults`."""
        said = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "scope"}
        filled = {name: getattr(defaults, name) if value is None else value for name, value in said.items()}
        filled["where"] = filled.pop("filter")
        filled["include_outdated"] = bool(filled["include_outdated"])
        return filled


NAMES = tuple(f.name for f in fields(SearchOptions))


def with_config(config: RunnableConfig | None, given: Mapping[str, Any], view: MemoryView) -> dict[str, Any]:
    """A call's keyword arguments with what `configurable` says: the former win, scopes add up inside `view`.

    `k`, `filter` and `scope` are read as they are; `memhybrid_k` and so on go before them. Names that are no options stay.
    """
    configurable: Mapping[str, Any] = ensure_config(config).get("configurable") or {}
    said = {name: configurable[name] for name in _PLAIN if configurable.get(name) is not None}
    said.update({n: configurable[PREFIX + n] for n in NAMES if configurable.get(PREFIX + n) is not None})
    if said.get("scope") == {} and configurable.get(PREFIX + "scope") == {}:
        # Nothing to add: how to say that another component's `scope` is not ours.
        del said["scope"]
    merged = {**said, **{name: value for name, value in given.items() if value is not None or name not in NAMES}}
    if said.get("scope") is not None and given.get("scope") is not None:
        merged["scope"] = bind(view, said["scope"], given["scope"]).scope
    return merged
