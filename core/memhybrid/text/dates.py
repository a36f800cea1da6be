"""Dates that a question names, in English and Chinese, as spans of days.

"on 8 May 2023", "2023-05-08", "May 2023", "in May" (of any year), "8th of May", "2023年5月8日", "5月", and, from the moment of asking,
"yesterday", "last week", "3 days ago", "昨天", "上周", "上个月", "去年". What is not clearly a date is none.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime, timezone

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ),
        1,
    )
    for name in names.split()
}
_CHINESE = {c: i for i, c in enumerate("零一二三四五六七八九十")} | {"两": 2, "十一": 11, "十二": 12}
_M = "(?P<m>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_D = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_Y = r"(?P<y>(?:19|20)\d\d)"
_ABSOLUTE = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_Y}[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}})\b",
        rf"{_Y}\s*年\s*(?P<m>\d{{1,2}})\s*月\s*(?P<d>\d{{1,2}})\s*[日号]",
        rf"{_Y}\s*年\s*(?P<m>\d{{1,2}}|十[一二]?|[一二三四五六七八九])\s*月",
        r"(?<![\d年])(?P<m>\d{1,2})\s*月\s*(?P<d>\d{1,2})\s*[日号]",
        r"(?<![\d年个上下])(?P<m>1[0-2]|[1-9])\s*月(?!\s*\d)(?!饼|亮)",
        rf"\b{_D}(?:\s+of)?\s+{_M}(?:,?\s+{_Y})?(?!\w)",
        rf"\b{_M}\s+{_D}(?:,?\s+{_Y})?\b(?!\d)",
        rf"\b{_M},?\s+(?:of\s+)?{_Y}\b",
        rf"\b(?:in|during|of|since|last|this|by|early|late|mid)[\s-]+{_M}",
    )
]
_DAYS_AGO = re.compile(
    r"\b(?P<n>\d{1,3}|a|two|three|four|five|six)\s+(?P<u>day|week|month|year)s?\s+ago\b", re.IGNORECASE
)
_DAYS_AGO_ZH = re.compile(
    r"(?P<n>\d{1,3}|[一二两三四五六七八九十])\s*个?\s*(?P<u>天|周|星期|礼拜|月|年)\s*(?:之|以)?前"
)
_WORDS = {"a": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_UNITS = {"day": 1, "week": 7, "month": 30, "year": 365, "天": 1, "周": 7, "星期": 7, "礼拜": 7, "月": 30, "年": 365}
_RELATIVE = re.compile(
    r"\b(?P<en>yesterday|the day before yesterday|last week|last month|last year|this week|this month)\b"
    r"|(?P<zh>前天|昨天|上周|上个?星期|上个?礼拜|上个?月|去年|这周|本周|这个月|本月)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class DateMention:
    """A day, a month or a span. Without a year any year is meant; with `span` (first and last day, ordinals) that alone counts."""

    year: int | None = None
    month: int = 1
    day: int | None = None
    span: tuple[int, int] | None = None

    def days_from(self, ordinal: int) -> int:
        """Days between a day (proleptic ordinal) and the nearest day that is meant; 0 inside."""
        if self.span is not None:
            spans = [self.span]
        else:
            year = date.fromordinal(ordinal).year
            years = [self.year] if self.year else [y for y in (year - 1, year, year + 1) if 1 <= y <= 9999]
            spans = [self._in(y) for y in years]
        return min(max(first - ordinal, ordinal - last, 0) for first, last in spans)

    def _in(self, year: int) -> tuple[int, int]:
        last = calendar.monthrange(year, self.month)[1]
        first_day, last_day = (1, last) if self.day is None else (min(self.day, last), min(self.day, last))
        return date(year, self.month, first_day).toordinal(), date(year, self.month, last_day).toordinal()


def dates_in(text: str, now: float) -> tuple[DateMention, ...]:
    """The dates named in a text asked at `now` (epoch seconds), in order of the patterns above."""
    if len(text) > 10_000:
        text = text[:10_000]
    found: list[DateMention] = []
    used: list[tuple[int, int]] = []
    for pattern in _ABSOLUTE:
        for match in pattern.finditer(text):
            if any(start < match.end() and match.start() < stop for start, stop in used):
                continue
            mention = _absolute(match.groupdict())
            if mention is not None:
                found.append(mention)
                used.append(match.span())
    today = datetime.fromtimestamp(now, timezone.utc).date()
    found.extend(_relative(text, today))
    return tuple(found)


def _absolute(groups: dict[str, str | None]) -> DateMention | None:
    name = (groups.get("m") or "").lower()
    month = _MONTHS.get(name) or _CHINESE.get(name) or (int(name) if name.isdigit() else 0)
    day = int(groups["d"] or 0) if groups.get("d") else None
    year = int(groups["y"] or 0) if groups.get("y") else None
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return None
    return DateMention(year, month, day)


def _relative(text: str, today: date) -> list[DateMention]:
    spans = (_named_span((match["en"] or match["zh"]).lower(), today) for match in _RELATIVE.finditer(text))
    out = [DateMention(span=span) for span in spans if span[0] >= 1]
    for pattern in (_DAYS_AGO, _DAYS_AGO_ZH):
        for match in pattern.finditer(text):
            n, unit = match["n"].lower(), match["u"].lower()
            count = int(n) if n.isdigit() else _WORDS.get(n) or _CHINESE.get(n, 1)
            middle = today.toordinal() - count * _UNITS[unit]
            slack = (_UNITS[unit] - 1) // 2
            if middle - slack >= 1:
                out.append(DateMention(span=(middle - slack, middle + slack)))
    return out


def _named_span(word: str, today: date) -> tuple[int, int]:
    """First and last day, as ordinals; before 1 where there was no such day."""
    ordinal = today.toordinal()
    monday = ordinal - today.weekday()
    first_of_month = today.replace(day=1).toordinal()
    first_of_year = today.replace(month=1, day=1).toordinal()
    if word in ("yesterday", "昨天"):
        return ordinal - 1, ordinal - 1
    if word in ("the day before yesterday", "前天"):
        return ordinal - 2, ordinal - 2
    if word in ("this week", "这周", "本周"):
        return monday, ordinal
    if word in ("this month", "这个月", "本月"):
        return first_of_month, ordinal
    if word in ("last year", "去年"):
        return first_of_year - (366 if calendar.isleap(today.year - 1) else 365), first_of_year - 1
    if word == "last month" or word.endswith("月"):
        days = calendar.monthrange(today.year, today.month - 1)[1] if today.month > 1 else 31
        return first_of_month - days, first_of_month - 1
    return monday - 7, monday - 1
