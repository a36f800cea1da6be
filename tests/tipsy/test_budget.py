"""Step 9: at most k memories in so many tokens."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhybrid import HybridMemory, Memory, Profile
from memhybrid.budget import as_counter, ceil4, script_aware
from memhybrid.errors import ConfigError, InputError, MissingExtraError
from tests.conftest import make_memory

texts = st.text(max_size=60)


def filled(memory: HybridMemory, sizes: list[int]) -> None:
    """One memory for each size in characters, more important the earlier."""
    memory.add([Memory(f"m{i:02d}", "x" * size, {"importance": 99 - i}, [1.0, 0.0]) for i, size in enumerate(sizes)])


def ask(memory: HybridMemory, k: int, tokens: int | None, **options: Any) -> Any:
    return memory.search(
        "", k, max_tokens=tokens, profile=options.pop("profile", "tipsy"), record_usage=False, **options
    )


@given(st.lists(st.integers(1, 400), min_size=1, max_size=10), st.integers(1, 10), st.integers(0, 200))
@settings(max_examples=40, deadline=None)
def test_packing_is_greedy_and_skips_what_does_not_fit(sizes: list[int], k: int, tokens: int) -> None:
    """In order, each memory that still fits is taken, up to k; the budget is never exceeded; all others are listed with a reason."""
    with make_memory(None) as memory:
        filled(memory, sizes)
        result = ask(memory, k, tokens)
        order = ask(memory, 10, None).ids
    left, chosen, reasons = tokens, [], {}
    for identifier in order:
        need = math.ceil(sizes[int(identifier[1:])] / 4)
        if len(chosen) == k:
            reasons[identifier] = "limit"
        elif need > left:
            reasons[identifier] = "max_tokens"
        else:
            chosen.append(identifier)
            left -= need
    assert result.ids == chosen
    assert {d.id: d.reason for d in result.trace.dropped} == reasons
    assert sum(ceil4(h.memory.text) for h in result) <= tokens


def test_a_large_first_memory_does_not_empty_the_result() -> None:
    """One of 200 tokens before others of 20 in a budget of 80: it is dropped, four others come."""
    with make_memory(None) as memory:
        filled(memory, [800, 80, 80, 80, 80, 80])
        result = ask(memory, 10, 80)
    assert result.ids == ["m01", "m02", "m03", "m04"]
    assert [(d.id, d.reason) for d in result.trace.dropped] == [("m00", "max_tokens"), ("m05", "max_tokens")]
    assert "dropped: 2 by max_tokens" in str(result)


@pytest.mark.parametrize("tokens", [0, 1])
def test_where_nothing_fits_the_result_is_empty_and_says_why(tokens: int) -> None:
    """No text is cut; every memory is listed as dropped by max_tokens."""
    with make_memory(None) as memory:
        filled(memory, [800, 900])
        result = ask(memory, 10, tokens)
    assert len(result) == 0
    assert {d.reason for d in result.trace.dropped} == {"max_tokens"}
    assert len(result.trace.dropped) == 2


@pytest.mark.parametrize("bad", [-1, 1.5, float("nan"), "80", True])
def test_a_budget_that_is_none_is_refused(bad: Any) -> None:
    """Negative, fractional and other budgets are errors; None is no budget."""
    with make_memory(None) as memory:
        filled(memory, [8])
        with pytest.raises(InputError, match="max_tokens"):
            ask(memory, 10, bad)
        assert len(ask(memory, 10, None)) == 1


def test_usage_is_counted_for_what_was_returned_alone() -> None:
    """What the budget drops was not used."""
    with make_memory(None) as memory:
        filled(memory, [800, 8])
        memory.search("", 10, max_tokens=20, profile="tipsy")
        assert set(memory.usage()) == {"m01"}


@given(texts)
def test_ceil4_is_a_quarter_of_the_characters_rounded_up(text: str) -> None:
    """tipsy-memory's rule."""
    assert ceil4(text) == math.ceil(len(text) / 4)


@given(texts, texts)
def test_the_script_aware_count_grows_with_the_text(one: str, two: str) -> None:
    """More text never counts less, parts together count at least the whole, and it is never below ceil4."""
    assert script_aware(one + two) >= max(script_aware(one), script_aware(two))
    assert script_aware(one) + script_aware(two) >= script_aware(one + two)
    assert script_aware(one) >= ceil4(one)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("我们昨天在西湖边上喝茶", 11),
        ("きのう京都へ行きました", 11),
        ("어제 서울에 갔어요", 8),
        ("🙂🙂🙂", 3),
        ("Москва", 3),
        ("plain words here", 4),
    ],
)
def test_wide_scripts_count_about_a_token_a_character(text: str, least: int) -> None:
    """Chinese, Japanese, Korean and emoji are not counted as a quarter of themselves."""
    assert script_aware(text) >= least


def test_chinese_notes_keep_the_budget() -> None:
    """Fifty tokens hold about fifty characters of Chinese, not two hundred."""
    with make_memory(None) as memory:
        memory.add(
            [
                Memory(f"{i}", "今天的会议改到下午三点在二楼" + "一二三四五六"[i], {"importance": 0.5}, [1.0, 0.0])
                for i in range(6)
            ]
        )
        result = ask(memory, 10, 50, profile=Profile.tipsy().replace(token_counter="script"))
    assert len(result) == 3


def test_counters_by_name_and_function() -> None:
    """ "ceil4", "script", and any function of a text; anything else is refused with what is known."""
    assert as_counter("ceil4")("abcde") == 2
    assert as_counter("script")("我们") == 2
    assert as_counter(len)("abc") == 3
    for bad in ("words", 4, None, ""):
        with pytest.raises(ConfigError, match="tiktoken:NAME"):
            as_counter(bad)


def test_tiktoken_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoding's or a model's name is looked up in tiktoken; without the package the message says what to install."""

    class Encoding:
        def encode(self, text: str, disallowed_special: Any) -> list[str]:
            assert disallowed_special == ()
            return text.split()

    class Tiktoken:
        @staticmethod
        def list_encoding_names() -> list[str]:
            return ["cl100k_base"]

        @staticmethod
        def get_encoding(name: str) -> Encoding:
            return Encoding()

        @staticmethod
        def encoding_for_model(name: str) -> Encoding:
            if name != "gpt-4o":
                raise KeyError(name)
            return Encoding()

    monkeypatch.setitem(sys.modules, "tiktoken", Tiktoken)  # type: ignore[arg-type]
    assert as_counter("tiktoken:cl100k_base")("three small words") == 3
    assert as_counter("tiktoken:gpt-4o")("two words") == 2
    with pytest.raises(ConfigError, match="gpt-none"):
        as_counter("tiktoken:gpt-none")
    monkeypatch.setitem(sys.modules, "tiktoken", None)  # type: ignore[arg-type]
    with pytest.raises(MissingExtraError, match="tiktoken"):
        as_counter("tiktoken:cl100k_base")


def test_a_counter_that_fails_is_replaced_and_said() -> None:
    """A function that raises, or tiktoken without its tables, leaves the script-aware count and a word in the trace."""

    def broken(text: str) -> int:
        raise OSError("no tables")

    with make_memory(None) as memory:
        filled(memory, [40, 40, 40])
        result = ask(memory, 10, 20, profile=Profile.tipsy().replace(token_counter=broken))
    assert len(result) == 2
    assert any("no tables" in text for text in result.trace.degraded)


def test_a_counter_of_ones_own_in_a_profile() -> None:
    """A function counts; a name that is none is refused when the profile is made; JSON keeps names alone."""
    with make_memory(None) as memory:
        filled(memory, [40, 40, 40])
        assert len(ask(memory, 10, 2, profile=Profile.tipsy().replace(token_counter=lambda text: 1))) == 2
    with pytest.raises(ConfigError, match="token_counter"):
        Profile.tipsy().replace(token_counter="tiktoken:")
    assert Profile.from_json(Profile.tipsy().replace(token_counter=len).to_json()).token_counter == "script"
    assert Profile.from_json(Profile.tipsy().to_json()) == Profile.tipsy()
