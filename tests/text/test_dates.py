"""Dates that questions name."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhybrid.text.dates import DateMention, dates_in

WORDS = [
    *(["last", "this", "past", "on", "in", "of", "the", "few", "between", "and", "to"]),
    *(
        [
            "3",
            "12",
            "31",
            "2025",
            "may",
            "june",
            "q3",
            "summer",
            "monday",
            "weekend",
            "day",
            "days",
            "week",
            "month",
            "year",
            "ago",
        ]
    ),
    *"-/.,年月日上周三十前天",
]
FIRST, LAST = -62_135_596_800, 253_402_300_799
"""The first and the last second of the calendar."""
NOW = datetime(2026, 9, 17, 12, tzinfo=timezone.utc)  # a Thursday


def spans(text: str, now: datetime = NOW) -> list[str]:
    """Each mention as "first..last", or year-month-day with "?" for what is not said."""
    return [shown(mention) for mention in dates_in(text, now.timestamp())]


def shown(mention: DateMention) -> str:
    if mention.span is None:
        return f"{mention.year or '?'}-{mention.month}-{mention.day or '?'}"
    first, last = (date.fromordinal(day).isoformat() for day in mention.span)
    return first if first == last else f"{first}..{last}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What happened on September 15, 2026?", ["2026-9-15"]),
        ("on the 8th of May 2023", ["2023-5-8"]),
        ("2023-05-08", ["2023-5-8"]),
        ("8.5.2026", ["2026-5-8"]),
        ("05/09/2026", ["2026-9-5", "2026-5-9"]),
        ("31/12/2026", ["2026-12-31"]),
        ("May 2023", ["2023-5-?"]),
        ("2025-05", ["2025-5-?"]),
        ("in May", ["?-5-?"]),
        ("on 3 may", ["?-5-3"]),
        ("in 2025", ["2025-01-01..2025-12-31"]),
        ("Q3 2025", ["2025-07-01..2025-09-30"]),
        ("the third quarter of 2025", ["2025-07-01..2025-09-30"]),
        ("between May and July 2025", ["2025-05-01..2025-07-31"]),
        ("from November 2024 to February 2025", ["2024-11-01..2025-02-28"]),
        ("between November and January", ["?-11-?", "?-12-?", "?-1-?"]),
        ("in the summer of 2023", ["2023-06-01..2023-08-31"]),
        ("from 2020 to 2023", ["2020-01-01..2023-12-31"]),
        ("2023年5月8日", ["2023-5-8"]),
        ("五月三日", ["?-5-3"]),
        ("2025年十二月二十一日", ["2025-12-21"]),
        ("2025年", ["2025-01-01..2025-12-31"]),
        ("2025年第三季度", ["2025-07-01..2025-09-30"]),
        ("5月", ["?-5-?"]),
    ],
)
def test_dates_of_the_calendar(text: str, expected: list[str]) -> None:
    """A day, a month, a quarter, a year or from one month to another; where either order of day and month can be, both."""
    assert spans(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did I have for lunch today?", ["2026-09-17"]),
        ("last night", ["2026-09-16"]),
        ("yesterday", ["2026-09-16"]),
        ("the day before yesterday", ["2026-09-15"]),
        ("day before yesterday", ["2026-09-15"]),
        ("What did I eat on Monday?", ["2026-09-14"]),
        ("Who called on Thursday?", ["2026-09-17"]),
        ("since Monday", ["2026-09-14..2026-09-17"]),
        ("since 2025", ["2025-01-01..2026-09-17"]),
        ("last Tuesday", ["2026-09-15", "2026-09-08"]),
        ("last Thursday", ["2026-09-10"]),
        ("last weekend", ["2026-09-12..2026-09-13"]),
        ("this week", ["2026-09-14..2026-09-17"]),
        ("last week", ["2026-09-07..2026-09-13"]),
        ("the week before last", ["2026-08-31..2026-09-06"]),
        ("last month", ["2026-08-01..2026-08-31"]),
        ("last year", ["2025-01-01..2025-12-31"]),
        ("last May", ["2026-5-?"]),
        ("last October", ["2025-10-?"]),
        ("past 7 days", ["2026-09-10..2026-09-17"]),
        ("in the last two weeks", ["2026-09-03..2026-09-17"]),
        ("3 days ago", ["2026-09-14"]),
        ("seven days ago", ["2026-09-10"]),
        ("a week ago", ["2026-09-07..2026-09-13"]),
        ("a few days ago", ["2026-09-12..2026-09-16"]),
        ("a couple of weeks ago", ["2026-08-31..2026-09-06"]),
        ("last summer", ["2026-06-01..2026-08-31"]),
        ("last autumn", ["2025-09-01..2025-11-30"]),
        ("last winter", ["2025-12-01..2026-02-28"]),
        ("今天", ["2026-09-17"]),
        ("昨晚", ["2026-09-16"]),
        ("前天", ["2026-09-15"]),
        ("大前天", ["2026-09-14"]),
        ("周三", ["2026-09-16"]),
        ("上周五", ["2026-09-11"]),
        ("上上周", ["2026-08-31..2026-09-06"]),
        ("上周末", ["2026-09-12..2026-09-13"]),
        ("最近三天", ["2026-09-14..2026-09-17"]),
        ("三天前", ["2026-09-14"]),
        ("十五天前", ["2026-09-02"]),
        ("去年5月8日", ["2025-05-08"]),
        ("今年五月", ["2026-05-01..2026-05-31"]),
        ("上个月5日", ["2026-08-05"]),
        ("上个月", ["2026-08-01..2026-08-31"]),
        ("去年", ["2025-01-01..2025-12-31"]),
        ("前年", ["2024-01-01..2024-12-31"]),
        ("Was habe ich gestern gegessen?", ["2026-09-16"]),
        ("¿Qué comí ayer?", ["2026-09-16"]),
        ("что было вчера", ["2026-09-16"]),
        ("昨日は何をした", ["2026-09-16"]),
        ("지난주에 뭐 했어", ["2026-09-07..2026-09-13"]),
    ],
)
def test_dates_from_the_moment_of_asking(text: str, expected: list[str]) -> None:
    """Days and periods before now; where people mean different days by a word, each of them."""
    assert spans(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "which 3 may be best",
        "May I go?",
        "the second month of something",
        "he has 5 weeks left",
        "10.0.0.1",
        "version 1.2.3",
        "on sun and mon ami",
        "room 2025",
        "a marching band",
        "周围的人",
        "一个月饼",
        "13/13/2026",
        "How do I configure a data source in Spring?",
        "since the fall of the Berlin Wall",
        "Summarize it in 2000 words",
        "from 2000 to 3000 dollars",
        "Does the battery last a week?",
        "my phone last two days",
        "Is the gym open on Monday?",
        "my plan for this weekend",
        "the weekend before last",
        "twenty-one days ago",
        "half a year ago",
        "1,000 days ago",
        "下周五",
        "每周五",
        "附近日本料理",
        "最近天气",
        "当前日志",
        "当前年度",
        "目前天气",
        "晚上周杰伦",
        "日本周边",
        "一周日程",
        "三年前端经验",
        "",
    ],
)
def test_what_is_not_clearly_a_date_is_none(text: str) -> None:
    """Words and numbers that dates are also made of."""
    assert spans(text) == []


def test_no_part_of_a_text_counts_twice() -> None:
    """The longer reading wins, and the same date is one mention."""
    assert spans("between May and July 2025, or in May 2025, or 2025-05") == ["2025-5-?", "2025-05-01..2025-07-31"]
    assert spans("上周五和上周") == ["2026-09-11", "2026-09-07..2026-09-13"]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), max_size=12),
    st.integers(FIRST, LAST),
)
def test_any_words_at_any_moment_are_read(words: list[str], now: int) -> None:
    """No error at either end of the calendar; every span is in order and every distance at least 0."""
    for mention in dates_in(" ".join(words), now):
        assert mention.span is None or 1 <= mention.span[0] <= mention.span[1]
        assert all(mention.days_from(day) >= 0 for day in (1, 719_163, date.max.toordinal()))
