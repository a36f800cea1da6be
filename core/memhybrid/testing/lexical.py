"""The contract of a lexical index."""

from __future__ import annotations

from typing import Any

import numpy as np

from memhybrid.indexes.bm25 import Bm25Params

PARAMETERS = Bm25Params()


class LexicalIndexContract:
    """Give a fixture `index`: an empty LexicalIndex."""

    def test_added_words_are_found_and_removed_ones_are_not(self, index: Any) -> None:
        """A word is found at once after its memory is added, and no more after it is removed."""
        index.add([0, 1], [["red", "fox"], ["blue", "fox"]])
        assert index.state.top(["red"], 5, PARAMETERS).tolist() == [0]
        index.remove([0])
        assert index.state.top(["red"], 5, PARAMETERS).size == 0
        assert index.state.top(["fox"], 5, PARAMETERS).tolist() == [1]

    def test_an_unknown_word_finds_nothing(self, index: Any) -> None:
        """No candidate comes from a query that matches nothing, in an empty index either."""
        assert index.state.top(["red"], 5, PARAMETERS).size == 0
        index.add([0], [["blue"]])
        assert index.state.top(["jgosntih"], 5, PARAMETERS).size == 0
        assert np.isnan(index.state.scores(["jgosntih"], np.array([0]), PARAMETERS)).all()

    def test_a_pinned_state_does_not_change(self, index: Any) -> None:
        """A reader's state is what it was, whatever is written later."""
        index.add([0], [["red"]])
        state = index.state
        index.remove([0])
        index.add([1], [["red"]])
        assert state.top(["red"], 5, PARAMETERS).tolist() == [0]

    def test_empty_texts_are_counted_and_never_found(self, index: Any) -> None:
        """Memories without terms are part of the statistics and no error."""
        index.add([0, 1], [[], ["red"]])
        assert index.state.documents == 2
        assert index.state.top(["red"], 5, PARAMETERS).tolist() == [1]

    def test_history_does_not_matter(self, index: Any) -> None:
        """Scores after removes and adds are those of an index that only ever held what is there now."""
        fresh = type(index)()
        index.add(range(3), [["a", "b"], ["a"], ["c", "c"]])
        index.remove([1])
        index.add([3], [["b"]])
        fresh.add(range(3), [["a", "b"], ["c", "c"], ["b"]])
        mine = index.state.scores(["a", "b", "c"], np.array([0, 2, 3]), PARAMETERS)
        assert np.allclose(mine, fresh.state.scores(["a", "b", "c"], np.array([0, 1, 2]), PARAMETERS), atol=1e-12)

    def test_scores_and_share_agree_with_each_alone(self, index: Any) -> None:
        """What one pass gives is what `scores` and `share` give, repeated and unknown words and no words included."""
        index.add(range(3), [["a", "b"], ["a"], ["c", "c"]])
        rows = np.array([2, 0, 1])
        for terms in (["a", "b", "a"], ["c", "jgosntih"], ["jgosntih"], []):
            scores, share = index.state.scores_and_share(terms, rows, PARAMETERS)
            assert np.array_equal(scores, index.state.scores(terms, rows, PARAMETERS), equal_nan=True)
            assert np.array_equal(share, index.state.share(terms, rows))
