from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from memhybrid import HybridMemory, demo
from memhybrid.embedders import HashEmbedder
from memhybrid.explain import width
from memhybrid.profiles import Profile
from tests.evaluate.sets import write_set

Asked = tuple[HybridMemory, demo.Material, list[demo.Answer]]


@pytest.fixture(scope="module")
def asked() -> Iterator[Asked]:
    """The packaged examples in a store with the packaged model, all questions asked."""
    material = demo.packaged()
    with demo.build(material) as memory:
        yield memory, material, demo.ask(memory, material, Profile.balanced())


def shown(memory: HybridMemory, material: demo.Material, answers: list[demo.Answer], columns: int = 100) -> str:
    screen = Console(file=io.StringIO(), width=columns, color_system=None)
    demo.show(screen, memory, material, Profile.balanced(), answers)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_the_examples_are_as_many_and_as_different_as_promised() -> None:
    """At least 150 memories of several people in two languages, and a dozen questions that need different signals."""
    material = demo.packaged()
    assert len(material.memories) >= 150
    assert len(material.questions) >= 12
    assert {"bm25", "entity", "semantic", "context", "date", "late_interaction"} == {
        q.needs for q in material.questions
    }
    assert len({m.metadata["user_id"] for m in material.memories}) >= 3
    known = {m.id for m in material.memories}
    assert all(q.relevant and q.relevant <= known for q in material.questions)


def test_the_right_memory_is_found(asked: Asked) -> None:
    """Among the first three for three questions of four, and first more often than by vectors alone."""
    answers = asked[2]
    assert sum(a.found(a.ours, 3) for a in answers) >= 0.75 * len(answers)
    assert sum(a.found(a.ours, 1) for a in answers) > sum(a.found(a.vectors, 1) for a in answers)
    assert not [text for a in answers for text in a.ours.trace.degraded]


def test_the_output_shows_question_signals_and_what_vectors_would_say(asked: Asked) -> None:
    """For each question who asks, why it needs its signal, each signal's value, the sources, and the comparison."""
    text = shown(*asked)
    for question in asked[1].questions:
        assert f"{question.user} asks: " in text
    for word in (
        "semantic",
        "bm25",
        "late",
        "date",
        "context",
        "found by",
        "vectors alone",
        "Where a right memory was",
    ):
        assert word in text
    assert "✓ 1" in text
    assert "ZX-4471" in text


def test_the_output_fits_a_hundred_columns(asked: Asked) -> None:
    """Chinese characters take two."""
    assert max(width(line) for line in shown(*asked).splitlines()) <= 100


def test_quick_asks_one_question_for_each_signal() -> None:
    """And keeps all memories."""
    quick = demo.packaged(quick=True)
    assert len(quick.questions) == len({q.needs for q in quick.questions}) == 6
    assert len(quick.memories) == len(demo.packaged().memories)


def test_a_folder_of_ones_own_is_sampled(tmp_path: Path) -> None:
    """Twelve questions spread over the set."""
    material = demo.from_folder(write_set(tmp_path, queries=20))
    assert len(material.questions) == 12
    assert len({q.user for q in material.questions}) == 2
    with demo.build(material, embedder=HashEmbedder(64)) as memory:
        text = shown(memory, material, demo.ask(memory, material, Profile.balanced()))
    assert "12 of 40 queries" in text
