"""Queries are plain text, whatever they contain."""

from __future__ import annotations

from typing import Any

import pytest

from memhybrid import HybridMemory, InputError, Memory
from tests.conftest import make_memory

PROFILES = ("semantic", "bm25", "mem0", "tipsy", "balanced", "best")


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("C:\\repo\\src", "path"),
        ("sh | bash", "pipe"),
        ("GB/s", "unit"),
        ("it's raining", "it"),
        ("foo:bar", "colon"),
        ('"unbalanced', "quote"),
        ("rain AND OR NOT", "it"),
        ("550e8400-e29b-41d4-a716-446655440000", "uuid"),
        ("CVE-2024-1234", "cve"),
        ("EBITDA", "acronym"),
        ("cafe\u0301", "accent"),
        ("榛子拿铁", "zh"),
        ("椎本", "zh2"),
        ("кассовый разрыв", "ru"),
    ],
)
def test_every_character_of_a_query_is_text(memory: HybridMemory, query: str, wanted: str) -> None:
    """Report 31, 40, 48, 49: there is no syntax, and the words inside still match, in every profile."""
    texts = {
        "path": "the code lies in C:\\repo\\src here",
        "pipe": "curl | bash is risky",
        "unit": "the bus does 12 GB/s",
        "it": "it's raining again",
        "colon": "set foo:bar to 1",
        "quote": "an unbalanced budget",
        "uuid": "tenant 550e8400-e29b-41d4-a716-446655440000 left",
        "cve": "patched CVE-2024-1234 today",
        "acronym": "the EBITDA forecast",
        "accent": "we met at the café",
        "zh": "我喜欢喝榛子拿铁",
        "zh2": "椎本先生来了",
        "ru": "кассовый разрыв 2026",
    }
    memory.add([Memory(i, text) for i, text in texts.items()])
    assert memory.search(query, profile="bm25").ids[0] == wanted
    for profile in PROFILES:
        assert memory.search(query, profile=profile).trace.degraded == ()


@pytest.mark.parametrize(
    "query", ["(", "*", "\\", "|", '"', "'", "-", ":", "(*)", "%_", "\x00", "\ud800", "🎉", "$where", "[a-z"]
)
def test_a_query_of_marks_alone_breaks_nothing(memory: HybridMemory, query: str) -> None:
    """Report 31: no exception, no keyword hit, nothing degraded."""
    memory.add([Memory("a", "apple"), Memory("b", "banana")])
    for profile in PROFILES:
        result = memory.search(query, profile=profile)
        assert result.trace.degraded == ()
    assert memory.search(query, profile="bm25").hits == ()


@pytest.mark.parametrize("query", ["", "   ", "\n", "\t\u3000"])
def test_an_empty_query_finds_nothing_by_its_words(memory: HybridMemory, query: str) -> None:
    """Report 32: an empty result with a note, and `tipsy` goes by importance, as its specification says."""
    memory.add([Memory("a", "apple", {"importance": 10}), Memory("b", "banana", {"importance": 90})])
    for profile in ("semantic", "bm25", "mem0", "balanced", "best"):
        result = memory.search(query, profile=profile)
        assert result.hits == ()
        assert any("empty" in note for note in result.trace.notes)
    assert memory.search(query, profile="tipsy").ids == ["b", "a"]


async def test_no_query_is_an_error_by_name_sync_and_async(memory: HybridMemory) -> None:
    """Report 32: None is no text."""
    nothing: Any = None
    with pytest.raises(InputError, match="query"):
        memory.search(nothing)
    with pytest.raises(InputError, match="query"):
        await memory.asearch(nothing)
    assert (await memory.asearch("")).hits == ()


def test_very_long_texts_and_queries_are_taken() -> None:
    """Report 33: 1.2 MB in a memory and in a query; the memory is found by its last word."""
    long = "apple pie is served daily. " * 44_000 + "Finally the xylophone."
    assert len(long) > 1_180_000
    with make_memory() as memory:
        memory.add([Memory("long", long), Memory("short", "a pear")])
        assert memory.search("xylophone", profile="bm25").ids == ["long"]
        assert memory.search(long, profile="bm25").ids[0] == "long"
        assert memory.search(long).ids[0] == "long"
        assert memory.get("long")[0].text == long
        assert memory.verify().ok


def test_a_leg_that_knows_nothing_is_no_penalty(memory: HybridMemory) -> None:
    """Report 37: a memory without terms for the query is scored by its vector alone, in the default profile."""
    memory.add([Memory("ru", "кассовый разрыв 2026"), Memory("en", "something else entirely")])
    hit = memory.search("кассовый разрыв").hits[0]
    assert hit.memory.id == "ru"
    assert hit.score > 0.5


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("Zurich", "I adore Zürich😍😍😍"),
        ("bike", "Love my new bike🚲!"),
        ("bike🚲", "Love my new bike🚲!"),
        ("Tokyo trip", "Ｔｏｋｙｏ ｔｒｉｐ was great"),
        ("final office memo", "The ﬁnal oﬃce memo."),
        ("done with taxes", "done✓ with my taxes→finally"),
        ("🍕", "🍕"),
    ],
)
def test_a_word_is_found_whatever_touches_it(query: str, wanted: str) -> None:
    """Symbols, letters of full width and ligatures leave the word what it is, for vectors as for keywords; each emoji is itself."""
    with HybridMemory.open() as memory:
        texts = [
            "Love my new bike🚲!",
            "I adore Zürich😍😍😍",
            "Ｔｏｋｙｏ ｔｒｉｐ was great",
            "The ﬁnal oﬃce memo.",
            "🍣",
        ]
        memory.add(
            [*texts, "done✓ with my taxes→finally", "🍕", "The bus was late.", "Nothing was final about the trip."]
        )
        hits = memory.search(query, 2).hits
        assert hits[0].memory.text == wanted
        assert hits[0].score > 1.3 * hits[1].score


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("车", "我买了新车。"),
        ("茶", "我喜欢喝茶。"),
        ("什么药", "他每天吃药两次。"),
        ("차", "나는 커피보다 차를 좋아한다."),
        ("집", "우리 집은 한강 근처에 있다."),
        ("약이", "매일 아침 약을 먹는다."),
        ("شاي", "أحب الشاي"),
        ("قهوه", "القهوة لذيذة"),
        ("کتاب", "كتاب جديد"),
        ("Mueller", "Herr Müller aus Ålborg"),
        ("Köln", "Die Adresse in Koeln"),
        ("Aalborg", "Herr Müller aus Ålborg"),
    ],
)
@pytest.mark.parametrize("profile", ["bm25", "balanced", "tipsy"])
def test_a_word_is_found_in_the_form_that_its_language_gives_it(
    memory: HybridMemory, query: str, wanted: str, profile: str
) -> None:
    """One character inside a longer word, a noun with its particle or article, a letter in another spelling."""
    texts = [
        "我买了新车。",
        "我喜欢喝茶。",
        "他每天吃药两次。",
        "나는 커피보다 차를 좋아한다.",
        "우리 집은 한강 근처에 있다.",
    ]
    texts += [
        "매일 아침 약을 먹는다.",
        "أحب الشاي",
        "القهوة لذيذة",
        "كتاب جديد",
        "Herr Müller aus Ålborg",
        "Die Adresse in Koeln",
    ]
    memory.add(texts)
    found = memory.search(query, len(texts), profile=profile)
    keyword = "lexical" if profile == "tipsy" else "bm25"
    matching = [h.memory.text for h in found.hits if (h.signals.get(keyword) or 0) > 0]
    assert matching == [wanted]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("5550123456", "plumber"),
        ("Whose number is 555-012-3456?", "plumber"),
        ("555 0123456", "plumber"),
        ("9783161484100", "book"),
        ("4111111111111234", "card"),
        ("5550129999", "sister"),
        ("5551234", "office"),
        ("call 555-1234 2 times", "office"),
    ],
)
def test_a_long_number_is_found_in_any_grouping(query: str, wanted: str) -> None:
    """Telephone numbers, ISBN and card numbers, with the country's code or without."""
    with HybridMemory.open() as memory:
        memory.add(
            [
                Memory("plumber", "The plumber's number is (555) 012-3456."),
                Memory("electrician", "The electrician's number is (555) 987-0000."),
                Memory("book", "Ordered the book with ISBN 978-3-16-148410-0"),
                Memory("card", "The card ends in 1234: 4111 1111 1111 1234"),
                Memory("sister", "My sister's new number is +1 555 012 9999"),
                Memory("office", "The office is in Suite 100 555-1234 is its number, open 9 10 11 12"),
            ]
        )
        assert memory.search(query, 1).ids == [wanted]


@pytest.mark.parametrize(
    "form", ["What happened on {month} {day}, 2026?", "2026-09-{day:02d}", "What did I do {ago} days ago?"]
)
def test_a_memory_of_the_day_that_is_named_comes_first(form: str) -> None:
    """Before those of the days beside it, whatever their words sound like."""
    texts = [
        "Fixed the leaking tap.",
        "Went climbing with Petra.",
        "Server outage until midnight.",
        "Booked flights to Lisbon.",
    ]
    texts += [
        "Dentist appointment, two fillings.",
        "Planted tomatoes on the balcony.",
        "Finished the quarterly report.",
    ]
    with HybridMemory.open() as memory:
        memory.add(
            [
                Memory(str(day), text, {"created_at": f"2026-09-{day:02d}T12:00:00Z"})
                for day, text in enumerate(texts, 11)
            ]
        )
        for day in range(11, 11 + len(texts)):
            query = form.format(month="September", day=day, ago=20 - day)
            assert memory.search(query, 1, now=1_789_905_600.0).ids == [str(day)]  # noon of 20 September 2026
