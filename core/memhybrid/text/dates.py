"""Dates that a question names, in English and Chinese, as spans of days.

Absolute: "on 8 May 2023", "2023-05-08", "8.5.2023", "5/8/2023" (either way round), "May 2023", "in May" (of any year), "in 2025",
"Q3 2025", "summer of 2023", "between May and July 2025", "2023年5月8日", "五月八日", "5月", "2023年".

From the moment of asking, in UTC: "today", "last night", "on Monday", "last Tuesday", "last weekend", "last week", "past 7 days",
"3 days ago", "a few weeks ago", "last May", "this year", "今天", "昨晚", "周三", "上周五", "上上周", "最近三天", "三天前", "上个月",
"去年", "前年"; "today", "yesterday" and "last week" in some more languages. What is not clearly a date is none.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timezone

Span = tuple[int, int]
"""First and last day, as proleptic ordinals."""

_MOST = 32
"""Mentions in one text; nobody asks for more."""
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
_CHINESE = {c: i for i, c in enumerate("零一二三四五六七八九十")} | {"两": 2, "十一": 11, "十二": 12, "几": 5}
_WORDS = {
    word: number
    for number, words in enumerate(
        [
            "a an one",
            "two couple",
            "three few",
            "four",
            "five several",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ],
        1,
    )
    for word in words.split()
} | {"fourteen": 14, "fifteen": 15, "twenty": 20, "thirty": 30}
_UNITS = {
    "day": 1,
    "week": 7,
    "month": 30,
    "year": 365,
    "天": 1,
    "日": 1,
    "周": 7,
    "星期": 7,
    "礼拜": 7,
    "月": 30,
    "年": 365,
}
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        ["monday", "tuesday tues", "wednesday", "thursday thurs", "friday", "saturday", "sunday"]
    )
    for name in names.split()
}
_WEEKDAYS_ZH = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6, "末": 5}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4}

_M = "(?P<m>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_MAY = r"(?!\s+(?:be|not|have|i|we|you|he|she|it|they|also|well|even|need|want|work|apply|help|never|still|\w+ly)\b)"
"""Not after the month: "which 3 may be best" names none."""
_D = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_Y = r"(?P<y>(?:19|20)\d\d)"
_M_ZH = r"(?P<m>\d{1,2}|十[一二]?|[一二三四五六七八九])"
_N = r"(?<![\w,.-])(?P<n>\d{1,3}|" + "|".join(sorted(_WORDS, key=len, reverse=True)) + ")"
_N_ZH = r"(?P<n>\d{1,3}|[一二三]?十[一二三四五六七八九]?|[一二两三四五六七八九几])"


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

    def _in(self, year: int) -> Span:
        return _days_of(year, self.month, self.day)


def dates_in(text: str, now: float) -> tuple[DateMention, ...]:
    """The dates named in a text asked at `now` (epoch seconds), in order of the patterns below; no part of the text counts twice."""
    if len(text) > 10_000:
        text = text[:10_000]
    if text.isascii() and not _HINT.search(text):
        return ()
    today = datetime.fromtimestamp(now, timezone.utc).date()
    found: list[DateMention] = []
    used: list[tuple[int, int]] = []
    for pattern, read in _PATTERNS:
        for match in pattern.finditer(text):
            if len(used) >= _MOST:
                break
            if any(start < match.end() and match.start() < stop for start, stop in used):
                continue
            try:
                mentions = [m for m in read(match, today) if m.span is None or 1 <= m.span[0] <= m.span[1]]
            except ValueError:  # before the first year or after the last
                continue
            if mentions:
                found.extend(mentions)
                used.append(match.span())
    return tuple(dict.fromkeys(found))


# --- absolute ---------------------------------------------------------------------------------------------------------


def _month(name: str) -> int:
    name = name.lower()
    return _MONTHS.get(name) or _CHINESE.get(name) or (int(name) if name.isdigit() else 0)


def _days_of(year: int, month: int, day: int | None = None) -> Span:
    """A day, or a month where `day` is None; a day that the month does not have is its last."""
    last = calendar.monthrange(year, month)[1]
    first_day, last_day = (1, last) if day is None else (min(day, last), min(day, last))
    return date(year, month, first_day).toordinal(), date(year, month, last_day).toordinal()


def _absolute(match: re.Match[str], today: date) -> Iterator[DateMention]:
    groups = match.groupdict()
    month = _month(groups["m"] or "")
    day = int(groups["d"]) if groups.get("d") else _chinese(groups["dz"]) if groups.get("dz") else None
    year = int(groups["y"]) if groups.get("y") else None
    if year is None and groups.get("last"):
        # The one before now, or of this year; a month to come may be meant as well as the last one.
        year = today.year - (month >= today.month) if groups["last"].lower() == "last" else today.year
    if 1 <= month <= 12 and (day is None or 1 <= day <= 31):
        yield DateMention(year, month, day)


def _chinese(name: str) -> int:
    """1 to 39 in characters: 三, 十五, 二十一; 几 is some five."""
    tens, ten, ones = name.partition("十")
    return (_CHINESE.get(tens, 1) * 10 if ten else 0) + _CHINESE.get(ones if ten else name, 0)


def _slashed(match: re.Match[str], today: date) -> Iterator[DateMention]:  # noqa: ARG001
    """Day and month in either order where both can be; with points the day comes first."""
    one, other, year = int(match["a"]), int(match["b"]), int(match["y"])
    orders = [(one, other)] if match["s"] == "." else [(one, other), (other, one)]
    for day, month in orders:
        if 1 <= month <= 12 and 1 <= day <= 31:
            yield DateMention(year, month, day)


def _year(match: re.Match[str], today: date) -> Iterator[DateMention]:
    """A year, from one to another, or from one until now."""
    first = int(match["y"])
    last = int(match.groupdict().get("y2") or first)
    end = today if match.groupdict().get("since") else date(last, 12, 31)
    yield DateMention(span=(date(first, 1, 1).toordinal(), end.toordinal()))


def _this_or_last(match: re.Match[str], today: date) -> Iterator[DateMention]:
    """A month or a day of 今年, 去年, 前年, or a day of 上个月."""
    day = _chinese(match["dz"]) if match["dz"] else int(match["d"]) if match["d"] else None
    if match["year"]:
        year, month = today.year - {"今年": 0, "去年": 1, "前年": 2}[match["year"]], _month(match["m"])
    else:
        year, month = (today.year, today.month - 1) if today.month > 1 else (today.year - 1, 12)
    if 1 <= month <= 12 and (day is None or 1 <= day <= 31):
        yield DateMention(span=_days_of(year, month, day))


def _quarter(match: re.Match[str], today: date) -> Iterator[DateMention]:  # noqa: ARG001
    name = match["q"].lower()
    quarter = _QUARTERS.get(name) or _CHINESE.get(name) or int(name)
    year = int(match["y"])
    yield DateMention(span=(_days_of(year, 3 * quarter - 2)[0], _days_of(year, 3 * quarter)[1]))


def _season(match: re.Match[str], today: date) -> Iterator[DateMention]:
    """Of the northern half; without a year the last one that is over."""
    month = _SEASONS[match["season"].lower()]
    named = match.groupdict().get("y")
    year = int(named) if named else today.year
    while not named and _season_of(year, month)[1] >= today.toordinal():
        year -= 1
    yield DateMention(span=_season_of(year, month))


def _season_of(year: int, month: int) -> Span:
    return _days_of(year, month)[0], _days_of(*((year, month + 2) if month < 12 else (year + 1, 2)))[1]


def _months(match: re.Match[str], today: date) -> Iterator[DateMention]:  # noqa: ARG001
    """From one month to another, of the years that are named."""
    first, last, year = _MONTHS[match["m1"].lower()], _MONTHS[match["m2"].lower()], int(match["y"])
    start = int(match["y1"] or year - (first > last))
    yield DateMention(span=(_days_of(start, first)[0], _days_of(year, last)[1]))


def _months_of_any_year(match: re.Match[str], today: date) -> Iterator[DateMention]:  # noqa: ARG001
    first, last = _MONTHS[match["m1"].lower()], _MONTHS[match["m2"].lower()]
    for month in range(first, first + (last - first) % 12 + 1):
        yield DateMention(None, (month - 1) % 12 + 1)


# --- from the moment of asking ----------------------------------------------------------------------------------------


def _offset(match: re.Match[str], today: date) -> Iterator[DateMention]:
    word = " ".join(match.group().lower().split())
    day = today.toordinal() - _DAYS[word]
    yield DateMention(span=(day, day))


def _period(match: re.Match[str], today: date) -> Iterator[DateMention]:
    """This, the last or the one before the last week, month or year."""
    which, unit = _PERIODS[" ".join(match.group().lower().split())]
    ordinal = today.toordinal()
    if unit == "week":
        monday = ordinal - today.weekday() - 7 * which
        span = (monday, monday + 6)
    elif unit == "month":
        index = 12 * today.year + today.month - 1 - which
        span = _days_of(index // 12, index % 12 + 1)
    else:
        span = (date(today.year - which, 1, 1).toordinal(), date(today.year - which, 12, 31).toordinal())
    yield DateMention(span=span if which else (span[0], ordinal))


def _weekday(match: re.Match[str], today: date) -> Iterator[DateMention]:
    """The last such day, today included; for "last Tuesday" that before today, and, as people differ, that of last week.

    "On Monday" alone may be one to come, or every one: only in a question about the past is it the last.
    """
    which = match["which"].lower()
    back = (today.weekday() - _WEEKDAYS[match["w"].lower()]) % 7
    ordinal = today.toordinal()
    if which in ("last", "past"):
        recent = ordinal - (back or 7)
        of_last_week = ordinal - today.weekday() - 7 + _WEEKDAYS[match["w"].lower()]
        for day in dict.fromkeys((recent, of_last_week)):
            yield DateMention(span=(day, day))
    elif which == "since":
        yield DateMention(span=(ordinal - back, ordinal))
    elif _IN_THE_PAST.search(match.string):
        yield DateMention(span=(ordinal - back, ordinal - back))


def _weekday_zh(match: re.Match[str], today: date) -> Iterator[DateMention]:
    day = _WEEKDAYS_ZH[match["w"]]
    monday = today.toordinal() - today.weekday()
    weeks = match["which"].count("上")
    first = monday + day - 7 * weeks
    if not match["which"] and first > today.toordinal():
        first -= 7
    yield DateMention(span=(first, first + (match["w"] == "末")))


def _weekend(match: re.Match[str], today: date) -> Iterator[DateMention]:
    """The last one that has begun; "last weekend" during one is the one before. As for weekdays, "the weekend" may be to come."""
    if match["which"].lower() == "the" and not _IN_THE_PAST.search(match.string):
        return
    saturday = today.toordinal() - (today.weekday() - 5) % 7
    if match["which"].lower() in ("last", "past") and today.weekday() >= 5:
        saturday -= 7
    yield DateMention(span=(saturday, saturday + 1))


def _count(match: re.Match[str]) -> int:
    word = (match["n"] or "1").lower()
    return int(word) if word.isdigit() else _WORDS.get(word) or _chinese(word) or 1


def _past(match: re.Match[str], today: date) -> Iterator[DateMention]:
    """From so many days, weeks, months or years before until now."""
    ordinal = today.toordinal()
    yield DateMention(span=(max(ordinal - _count(match) * _UNITS[match["u"].lower()], 1), ordinal))


def _ago(match: re.Match[str], today: date) -> Iterator[DateMention]:
    """The unit around that day; twice as wide where the number is no number."""
    unit, word = _UNITS[match["u"].lower()], (match["n"] or "").lower()
    middle = today.toordinal() - _count(match) * unit
    slack = (unit - 1) // 2
    if word in ("few", "several", "几"):
        slack += 2 * unit
    yield DateMention(span=(middle - slack, min(middle + slack, today.toordinal())))


_DAYS = {
    word: days
    for days, words in enumerate(
        (
            "today|tonight|this morning|this afternoon|this evening|今天|今日|今早|今晚|今晨|heute|hoy|aujourd'hui|oggi|hoje|сегодня|오늘",
            "yesterday|last night|昨天|昨日|昨晚|昨夜|gestern|ayer|ieri|ontem|вчера|어제",
            "the day before yesterday|day before yesterday|前天|一昨日|おととい|vorgestern|anteayer|avant-hier|позавчера|그저께",
            "大前天",
        )
    )
    for word in words.split("|")
}
_PERIODS: dict[str, tuple[int, str]] = {
    **{f"this {unit}": (0, unit) for unit in ("week", "month", "year")},
    **{f"last {unit}": (1, unit) for unit in ("week", "month", "year")},
    **{f"the {unit} before last": (2, unit) for unit in ("week", "month", "year")},
    **dict.fromkeys(("这周", "本周", "这个星期", "这星期", "这个礼拜", "今週", "diese woche", "이번 주"), (0, "week")),
    **dict.fromkeys(("上周", "上星期", "上个星期", "上个礼拜", "上礼拜", "先週", "letzte woche", "지난주", "지난 주"), (1, "week")),
    **dict.fromkeys(("上上周", "上上星期", "上上个星期", "上上个礼拜", "先々週"), (2, "week")),
    **dict.fromkeys(("这个月", "本月", "今月", "diesen monat", "이번 달"), (0, "month")),
    **dict.fromkeys(("上月", "上个月", "先月", "letzten monat", "지난달", "지난 달"), (1, "month")),
    **dict.fromkeys(("上上个月", "上上月"), (2, "month")),
    **dict.fromkeys(("今年", "dieses jahr", "올해"), (0, "year")),
    **dict.fromkeys(("去年", "letztes jahr", "작년"), (1, "year")),
    **dict.fromkeys(("前年", "一昨年"), (2, "year")),
    "大前年": (3, "year"),
}  # fmt: skip


_NOT_INSIDE = "(?<![当目之以提面跟眼晚早日大])"
_NOT_BESIDE = "(?![杰边围刊报志度期端])"
"""Characters with which these are other words: 当前年度, 目前天气, 晚上周杰伦, 日本周边."""


def _one_of(words: tuple[str, ...] | list[str]) -> str:
    """The longest first; words of letters with spaces between stand alone, others may touch what is beside them."""
    ordered = sorted(words, key=len, reverse=True)
    return "|".join(
        (
            rf"(?<!\w)(?<!before ){re.escape(w)}(?!\w)" if w[0] < "\u3000" else _NOT_INSIDE + re.escape(w) + _NOT_BESIDE
        ).replace(r"\ ", r"\s+")
        for w in ordered
    )


_S = r"\s{0,3}"
"""A bound for spaces: any number of them, beside what may be missing, would be looked at again and again."""
_IN_THE_PAST = re.compile(r"\b(?:did|was|were|had|went|said|told|saw|met|ate|bought|\w{2,}ed)\b", re.IGNORECASE)
_END = r"(?=\s*(?:[?.!,;:)\"']|$)|\s+(?:and|or|with|by|for|at|on|in|to|was|were|did|do|that|when|who|is|because|after|before)\b)"
"""What may follow a year: "in 2000 words" is no year."""
_WEEKDAY_NAMES = "|".join(sorted(_WEEKDAYS, key=len, reverse=True))
_D_ZH = r"(?P<dz>[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九])"
_U_ZH = r"(?P<u>天|日|周|星期|礼拜|月|年)"
_U = r"(?P<u>day|week|month|year)"
_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)"
_M1, _M2 = _M.replace("<m>", "<m1>"), _M.replace("<m>", "<m2>")
_Y1 = _Y.replace("<y>", "<y1>")
_TO = r"(?:and|to|until|till|through|-|–)"
_Reader = Callable[[re.Match[str], date], Iterator[DateMention]]
_PATTERNS: list[tuple[re.Pattern[str], _Reader]] = [
    (re.compile(pattern, re.IGNORECASE), read)
    for pattern, read in (
        (rf"\b{_Y}[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}})\b", _absolute),
        (rf"\b{_Y}-(?P<m>0[1-9]|1[0-2])\b(?!-)", _absolute),
        (rf"(?<![\d.])(?P<a>\d{{1,2}})(?P<s>[/.])(?P<b>\d{{1,2}})(?P=s){_Y}\b", _slashed),
        (rf"{_Y}{_S}年{_S}{_M_ZH}{_S}月{_S}(?:(?P<d>\d{{1,2}})|{_D_ZH}){_S}[日号]", _absolute),
        (rf"{_Y}{_S}年{_S}第?(?P<q>[一二三四])季度", _quarter),
        (rf"{_Y}{_S}年{_S}{_M_ZH}{_S}月", _absolute),
        (rf"{_Y}{_S}年(?!{_S}\d)", _year),
        (r"(?<![\d年个上下这])(?P<m>\d{1,2})\s{0,3}月\s{0,3}(?P<d>\d{1,2})\s{0,3}[日号]", _absolute),
        (rf"(?<![\d年个上下这一二三四五六七八九十])(?P<m>十[一二]?|[一二三四五六七八九])月{_D_ZH}[日号]", _absolute),
        (r"(?<![\d年个上下])(?P<m>1[0-2]|[1-9])\s{0,3}月(?!\s{0,3}\d)(?!饼|亮)", _absolute),
        (rf"\b(?:(?:between|from)\s+)?{_M1}(?:,?\s+{_Y1})?{_S}{_TO}{_S}{_M2},?\s+{_Y}\b", _months),
        (rf"\b(?:between|from)\s+{_M1}\s+{_TO}\s+{_M2}", _months_of_any_year),
        (rf"\b{_D}(?:\s+of)?\s+{_M}(?:,?\s+{_Y})?(?!\w){_MAY}", _absolute),
        (rf"\b{_M}\s+{_D}(?:,?\s+{_Y})?\b(?!\d)", _absolute),
        (rf"\b{_M},?\s+(?:of\s+)?{_Y}\b", _absolute),
        (rf"\b(?:(?P<last>last|this)|in|during|of|since|by|early|late|mid)[\s-]+{_M}{_MAY}", _absolute),
        (rf"\bq(?P<q>[1-4])(?:\s+of)?,?\s+{_Y}\b", _quarter),
        (rf"\b(?P<q>first|second|third|fourth)\s+quarter(?:\s+of)?\s+{_Y}\b", _quarter),
        (rf"\b(?:last|past)\s+{_SEASON}(?!\w)(?!\s+(?:of\s+)?(?:19|20)\d\d)", _season),
        (rf"\b{_SEASON}\s+(?:of\s+)?{_Y}\b", _season),
        (rf"\b(?:from|between)\s+{_Y}\s+(?:and|to|until|till)\s+{_Y.replace('<y>', '<y2>')}\b{_END}", _year),
        (rf"\b(?:in|during|throughout|of|(?P<since>since))\s+{_Y}\b(?![-/.]?\d){_END}", _year),
        (rf"(?P<year>今年|去年|前年){_S}{_M_ZH}{_S}月(?:{_S}(?:(?P<d>\d{{1,2}})|{_D_ZH}){_S}[日号])?", _this_or_last),
        (rf"(?P<year>(?!))?上个?月{_S}(?P<m>(?!))?(?:(?P<d>\d{{1,2}})|{_D_ZH}){_S}[日号]", _this_or_last),
        (
            r"(?<![下每晚早\d一二三四五六七八九十两几])(?P<which>上{0,3}|这|本)(?:周|星期|礼拜)(?P<w>[一二三四五六日天末])(?![年福])",
            _weekday_zh,
        ),
        (rf"(?:最近|过去|(?<![附最])近)的?{_S}{_N_ZH}{_S}个?{_S}{_U_ZH}", _past),
        (rf"{_N_ZH}{_S}个?{_S}{_U_ZH}{_S}(?:之|以)?前(?![端台面后途线排景])", _ago),
        (
            rf"(?:^|\b(?:in|over|during|for|within|from|of)\s+(?:the\s+|my\s+|our\s+)?|\bthe\s+)(?:last|past)\s+(?:couple\s+of\s+)?{_N}\s+{_U}s?\b",
            _past,
        ),
        (rf"\bpast\s+(?:couple\s+of\s+)?{_N}\s+{_U}s?\b", _past),
        (rf"\b(?:the\s+)?past(?P<n>)\s+{_U}\b", _past),
        (rf"(?<!half )\b(?:a\s+)?{_N}(?:\s+of)?\s+{_U}s?\s+ago\b", _ago),
        (_one_of(list(_DAYS)), _offset),
        (rf"\b(?:on\s+)?(?P<which>last|past|on|since)\s+(?P<w>{_WEEKDAY_NAMES})\b", _weekday),
        (r"\b(?:on\s+|over\s+)?(?P<which>last|past|the)\s+weekend\b(?!\s+(?:before|of|after))", _weekend),
        (_one_of(list(_PERIODS)), _period),
    )
]
_HINT = re.compile(
    "|".join(
        [
            r"\d",
            "ago",
            "last",
            "past",
            "weekend",
            *_MONTHS,
            *_WEEKDAYS,
            *_SEASONS,
            *filter(str.isascii, [*_DAYS, *_PERIODS]),
        ]
    ),
    re.IGNORECASE,
)
"""What every date in ASCII has something of: most questions name none, and are spared the patterns."""
