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
