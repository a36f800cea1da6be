"""Points in time as metadata carries them, read into epoch seconds (UTC) or refused; never misread."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timezone
from typing import Any

import numpy as np

MILLISECONDS_FROM = 1e11
"""Epoch numbers from here up are milliseconds: as seconds they would lie after the year 5138."""
EARLIEST = -62135596800.0  # 0001-01-01T00:00:00Z, the first
LATEST = 253402300799.0  # 9999-12-31T23:59:59Z, the last second that datetime knows
_ISO = re.compile(r"\s*[+-]?\d{4}-?\d{2}-?\d{2}")


def parse_time(value: Any) -> float | None:
    """Epoch seconds of a datetime, a date, an ISO 8601 text, or a number of seconds or milliseconds; None if it is none.

    Naive means UTC. Numbers from 1e11 up are milliseconds; microseconds and anything that is not finite are no time.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, datetime):
        aware = value if value.utcoffset() is not None else value.replace(tzinfo=timezone.utc)
        return aware.timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc).timestamp()
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return None
        if not math.isfinite(number):
            return None
        if abs(number) >= MILLISECONDS_FROM:
            number /= 1000.0
        return number if abs(number) < min(MILLISECONDS_FROM, LATEST) else None
    if isinstance(value, str) and _ISO.match(value):
        return _parse_iso(value.strip())
    return None


def _parse_iso(text: str) -> float | None:
    candidate = text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text
    parsed: datetime | None
    try:
        parsed = datetime.fromisoformat(candidate)
    except ValueError:
        # Python 3.10 knows neither other numbers of fraction digits than 3 and 6 nor the basic form.
        parsed = _parse_lenient(candidate)
    return None if parsed is None else parse_time(parsed)


_LENIENT = re.compile(
    r"(\d{4})-?(\d{2})-?(\d{2})(?:[T ](\d{2}):?(\d{2})(?::?(\d{2})(?:[.,](\d+))?)?)?\s*([+-]\d{2}(?::?\d{2})?)?$"
)


def _parse_lenient(text: str) -> datetime | None:
    match = _LENIENT.match(text)
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    micro = int((fraction or "0")[:6].ljust(6, "0"))
    zone = (offset or "+00:00").replace(":", "").ljust(5, "0")
    try:
        return datetime.strptime(
            f"{year}{month}{day}{hour or '00'}{minute or '00'}{second or '00'}{micro:06d}{zone}", "%Y%m%d%H%M%S%f%z"
        )
    except ValueError:
        return None


def plain_scalar(value: Any) -> Any:
    """A numpy scalar as Python's own, a datetime64 as a datetime. What Python has no type for stays as it is, NaT and spans included."""
    if isinstance(value, np.datetime64):
        # Of nanoseconds, `item` would make a mere int.
        made: Any = value.astype("datetime64[us]").item()
        return made if isinstance(made, datetime) else value
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.timedelta64) else value


def iso(moment: float) -> str:
    """ISO 8601 text in UTC of epoch seconds."""
    return datetime.fromtimestamp(moment, timezone.utc).isoformat()
