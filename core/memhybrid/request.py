"""The arguments of a search, checked and made plain."""

from __future__ import annotations

import time
from datetime import date, datetime
from typing import Any

from memhybrid.errors import InputError
from memhybrid.profiles import Profile
from memhybrid.protocols import Float32
from memhybrid.scope import Filter
from memhybrid.signals.context import Request
from memhybrid.times import EARLIEST, LATEST, parse_time
from memhybrid.values import check_query, optional_number, positive

MAX_K = 100_000


def make_request(
    query: Any,
    k: Any,
    *,
    scope: str,
    where: Filter | None,
    embedding: Float32 | None,
    min_score: Any,
    max_tokens: Any,
    record_usage: Any,
    include_outdated: Any,
    now: Any,
    min_msg_id: Any = None,
    max_msg_id: Any = None,
    prefix_only: Any = False,
) -> Request:
    """A request that can be answered, or an error that names the argument."""
    tokens = optional_number(max_tokens, "max_tokens")
    if tokens is not None and (tokens < 0 or tokens != int(tokens)):
        raise InputError(f"max_tokens: expected a whole number of at least 0, got {max_tokens!r}")
    for name, value in (("prefix_only", prefix_only), ("include_outdated", include_outdated)):
        if not isinstance(value, bool):
            raise InputError(f"{name}: expected True or False, got {value!r}")
    if record_usage is not None and not isinstance(record_usage, bool):
        raise InputError(f"record_usage: expected True, False or None, got {record_usage!r}")
    return Request(
        query=check_query(query),
        k=positive(k, "k", most=MAX_K),
        scope=scope,
        where=where,
        embedding=embedding,
        min_score=optional_number(min_score, "min_score"),
        max_tokens=None if tokens is None else int(tokens),
        record_usage=record_usage,
        min_msg_id=optional_number(min_msg_id, "min_msg_id"),
        max_msg_id=optional_number(max_msg_id, "max_msg_id"),
        prefix_only=prefix_only,
        include_outdated=include_outdated,
        now=moment_of(now),
    )


def moment_of(now: Any, name: str = "now") -> float:
    """Epoch seconds of what was given; None is now."""
    if now is None:
        return time.time()
    moment = parse_time(now) if isinstance(now, datetime | date | int | float | str) else None
    if moment is None or not EARLIEST <= moment <= LATEST:
        raise InputError(f"{name}: expected a datetime, epoch seconds or ISO 8601 text, got {now!r}")
    return moment


def floor_of(min_score: Any, profile: Profile) -> Any:
    """The floor that is meant: "recommended" is the profile's own."""
    if not isinstance(min_score, str) or min_score != "recommended":
        return min_score
    if profile.recommended_min_score is None:
        raise InputError(f"min_score: the profile {profile.name!r} has no recommended value; give a number")
    return profile.recommended_min_score
