"""Diversity as an option that really changes results."""

from __future__ import annotations

import pytest

from memhybrid import HybridMemory, Memory, Profile
from memhybrid.diversity import jaccard, shingles


def fill(memory: HybridMemory) -> None:
    """Many ways to say one thing, and three other things about the same word."""
    memory.add([Memory(f"same{i}", f"the harbour cafe opens at nine on day {i}") for i in range(30)])
    memory.add(
        [
            Memory("other1", "the harbour museum is closed for repairs all summer"),
            Memory("other2", "my uncle keeps a blue boat in the harbour"),
            Memory("other3", "swimming in the harbour is forbidden since the storm"),
        ]
    )


def test_off_leaves_the_order_untouched(memory: HybridMemory) -> None:
    """Without the options results are those of the profile."""
    fill(memory)
    plain = memory.search("harbour", k=10)
    neutral = memory.search("harbour", k=10, profile=Profile.balanced().replace(mmr_lambda=1.0))
    assert neutral.ids == plain.ids


def test_collapse_makes_room_for_other_facts(memory: HybridMemory) -> None:
    """With collapse one of the paraphrases stays, the other facts come in, and the trace says who was left out."""
    fill(memory)
    result = memory.search("harbour cafe opens", k=4, profile=Profile.balanced().replace(collapse_from=0.6))
    assert sum(i.startswith("same") for i in result.ids) == 1
    assert {"other1", "other2", "other3"} <= set(result.ids)
    assert any(d.reason == "near-duplicate" for d in result.trace.dropped)


def test_mmr_brings_different_memories_forward(memory: HybridMemory) -> None:
    """A trade-off below 1 shows more different memories and keeps the best one first."""
    fill(memory)
    plain = memory.search("harbour cafe opens", k=4)
    spread = memory.search("harbour cafe opens", k=4, profile=Profile.balanced().replace(mmr_lambda=0.4))
    assert spread.ids[0] == plain.ids[0]
    assert sum(i.startswith("other") for i in spread.ids) > sum(i.startswith("other") for i in plain.ids)


@pytest.mark.parametrize(("one", "other"), [("!!!", "???"), ("", ""), ("🙂", "🙃")])
def test_texts_without_letters_are_not_alike(one: str, other: str) -> None:
    """Texts that have no letters in any script are never taken for duplicates of each other."""
    assert jaccard(shingles(one), shingles(other)) == 0.0


@pytest.mark.parametrize("text", ["我喜欢喝榛子拿铁", "مرحبا بالعالم", "кассовый разрыв", "สวัสดีชาวโลก"])
def test_any_script_has_shingles(text: str) -> None:
    """A text in any script is like itself and unlike another."""
    assert jaccard(shingles(text), shingles(text + "!")) == 1.0
    assert jaccard(shingles(text), shingles("the harbour cafe")) == 0.0
