"""The BM25 index against rank_bm25 and against its own definition."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import rank_bm25
from hypothesis import given, settings
from hypothesis import strategies as st

from memhybrid.indexes.bm25 import Bm25Index, Bm25Params, Bm25State
from memhybrid.indexes.rank_bm25 import RankBm25Index

WORDS = ["apple", "pear", "plum", "fig", "kiwi", "lime", "榛子", "zx-4471"]
documents = st.lists(st.sampled_from(WORDS), min_size=0, max_size=8)
histories = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(documents, min_size=1, max_size=4)),
        st.tuples(st.just("remove"), st.integers(0, 30)),
        st.tuples(st.just("replace"), st.tuples(st.integers(0, 30), documents)),
    ),
    min_size=1,
    max_size=25,
)
parameters = st.builds(
    Bm25Params, st.sampled_from(["lucene", "okapi", "plus", "l"]), st.floats(0.1, 3), st.floats(0, 1)
)


def play(history: list, index: Bm25Index) -> dict[int, list[str]]:
    """The living rows with their terms after a history of writes."""
    living: dict[int, list[str]] = {}
    rows = 0
    for kind, what in history:
        if kind == "add":
            index.add(range(rows, rows + len(what)), what)
            living.update(enumerate(what, rows))
            rows += len(what)
        elif kind == "remove":
            index.remove([what])
            living.pop(what, None)
        elif what[0] in living:
            index.remove([what[0]])
            del living[what[0]]
            index.add([rows], [what[1]])
            living[rows] = what[1]
            rows += 1
    return living


def by_definition(living: dict[int, list[str]], query: list[str], p: Bm25Params) -> dict[int, float]:
    """spec.md's Lucene form, and rank_bm25 for the others, term by term."""
    rows = list(living)
    corpus = [living[r] for r in rows]
    if not any(corpus):
        return {}
    if p.variant == "lucene":
        n = len(corpus)
        average = sum(map(len, corpus)) / n
        scores = []
        for doc in corpus:
            tf, total = Counter(doc), 0.0
            for term in query:
                df = sum(term in d for d in corpus)
                if tf[term]:
                    idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
                    total += idf * tf[term] * (p.k1 + 1) / (tf[term] + p.k1 * (1 - p.b + p.b * len(doc) / average))
            scores.append(total)
    else:
        kind = {"okapi": rank_bm25.BM25Okapi, "plus": rank_bm25.BM25Plus, "l": rank_bm25.BM25L}[p.variant]
        scores = kind(corpus, k1=p.k1, b=p.b).get_scores(query)
    return {r: float(s) for r, s, doc in zip(rows, scores, corpus, strict=True) if set(doc) & set(query)}


@given(histories, st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=5), parameters)
@settings(max_examples=300, deadline=None)
def test_scores_equal_the_definition_after_any_history(history: list, query: list[str], p: Bm25Params) -> None:
    """After any adds, removes and replaces, each variant scores exactly the hits, to 1e-9."""
    index = Bm25Index()
    living = play(history, index)
    expected = by_definition(living, query, p)
    rows = np.arange(index.state.n_rows, dtype=np.intp)
    got = index.state.scores(query, rows, p)
    alive = {int(r): float(s) for r, s in zip(rows, got, strict=True) if not math.isnan(s)}
    assert alive.keys() == expected.keys()
    for row, score in expected.items():
        assert alive[row] == pytest.approx(score, abs=1e-9)


@given(histories, st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), parameters, st.integers(1, 10))
@settings(max_examples=300, deadline=None)
def test_top_is_exact_and_keeps_ties(history: list, query: list[str], p: Bm25Params, n: int) -> None:
    """The n best are those of a full ranking, together with every row that ties with the last of them."""
    index = Bm25Index()
    expected = by_definition(play(history, index), query, p)
    got = {int(r) for r in index.state.top(query, n, p)}
    ranked = sorted(expected.values(), reverse=True)
    if len(ranked) <= n:
        assert got == expected.keys()
    else:
        last = ranked[n - 1]
        assert {r for r, s in expected.items() if s > last + 1e-9} <= got
        assert got <= {r for r, s in expected.items() if s >= last - 1e-9}
        assert len(got) >= n


def test_pruning_finds_what_a_full_scan_finds() -> None:
    """On a Zipf corpus, where frequent words are only looked up, the best are those of a full scan."""
    rng = np.random.default_rng(5)
    words = [f"w{i}" for i in range(2000)]
    weights = 1 / np.arange(1, 2001)
    docs = [list(rng.choice(words, size=rng.integers(3, 40), p=weights / weights.sum())) for _ in range(3000)]
    index = Bm25Index()
    for start in range(0, 3000, 700):
        index.add(range(start, min(start + 700, 3000)), docs[start : start + 700])
    index.remove(range(0, 3000, 7))
    everything = np.arange(3000, dtype=np.intp)
    for i in range(60):
        query = list(rng.choice(docs[i], size=6))
        full = np.nan_to_num(index.state.scores(query, everything, Bm25Params()), nan=-1)
        best = set(np.argsort(-full, kind="stable")[:20].tolist())
        got = index.state.top(query, 20, Bm25Params())
        assert {r for r in best if full[r] > np.sort(full)[-20] + 1e-9} <= set(got.tolist())


def test_a_masked_search_keeps_the_statistics_of_the_scope() -> None:
    """A filter decides who may be found and changes no score."""
    index = Bm25Index()
    index.add(range(4), [["a", "b"], ["a"], ["b"], ["c"]])
    mask = np.array([True, False, False, False])
    assert index.state.top(["a"], 5, Bm25Params(), mask).tolist() == [0]
    rows = np.array([0], dtype=np.intp)
    assert index.state.scores(["a"], rows, Bm25Params())[0] == pytest.approx(
        index.state.scores(["a"], np.arange(4, dtype=np.intp), Bm25Params())[0]
    )


def test_a_reader_keeps_the_state_that_it_took() -> None:
    """What is written later neither adds to nor takes from a state that was taken before."""
    index = Bm25Index()
    index.add([0, 1], [["x"], ["y"]])
    before: Bm25State = index.state
    index.add([2], [["x"]])
    index.remove([0])
    assert before.hits(["x"]).tolist() == [0]
    assert index.state.hits(["x"]).tolist() == [2]


@pytest.mark.parametrize("docs", [[[]], [[], []], [["only"]], [["same"], ["same"], ["same"]]])
def test_degenerate_stores_score_without_error(docs: list[list[str]]) -> None:
    """Empty texts, one memory and identical memories give finite, non-negative Lucene scores; gibberish gives no hits."""
    index = Bm25Index()
    index.add(range(len(docs)), docs)
    rows = np.arange(len(docs), dtype=np.intp)
    scores = index.state.scores(["only", "same"], rows, Bm25Params())
    assert np.all(np.nan_to_num(scores) >= 0)
    assert index.state.top(["jgosntih"], 3, Bm25Params()).size == 0
    assert index.state.top([], 3, Bm25Params()).size == 0


@given(histories, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.sampled_from(["okapi", "plus", "l"]))
@settings(max_examples=60, deadline=None)
def test_the_rank_bm25_engine_gives_rank_bm25s_scores(history: list, query: list[str], variant: str) -> None:
    """`bm25="rank-bm25"` scores exactly as rank_bm25 does."""
    index = RankBm25Index()
    p = Bm25Params(variant)  # type: ignore[arg-type]
    expected = by_definition(play(history, index), query, p)
    got = index.state.scores(query, np.arange(index.state.n_rows, dtype=np.intp), p)
    assert {i: float(s) for i, s in enumerate(got) if not math.isnan(s)} == pytest.approx(expected, abs=1e-12)
