"""Words of Chinese text, by rjieba where it is installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import threading
from functools import cache
from typing import Any, Final

from memhybrid.text.stopwords import CHINESE
from memhybrid.text.tokens import MAX_TERM

_LOCK: Final = threading.Lock()
_PIECE: Final = 2000  # characters cut at once: a run without punctuation may be a megabyte long


class _Segmenter:
    """An own dictionary: words that the user adds to rjieba's global one must not change what is indexed."""

    def __init__(self) -> None:
        self.jieba: Any = None

    def load(self) -> Any:
        if self.jieba is None:
            with _LOCK:
                if self.jieba is None:
                    import rjieba  # pyright: ignore[reportMissingTypeStubs]

                    self.jieba = rjieba.Jieba()
        return self.jieba


_SEGMENTER: Final = _Segmenter()


@cache
def rjieba_version() -> str:
    """The version of the installed rjieba, "" without it. Does not import it."""
    if importlib.util.find_spec("rjieba") is None:
        return ""
    try:
        return importlib.metadata.version("rjieba")
    except importlib.metadata.PackageNotFoundError:
        return "?"


def han_terms(run: str, *, segment: bool, keep_stop: bool = False) -> list[str]:
    """Terms of an unbroken run of Han characters, in order.

    All pairs of neighbours, so that whatever two characters a query has are found; words of three and more; single
    characters that are words (without a segmenter, all). A run of one or two characters is a term as it is.
    nDCG@10 by BM25 on 848 passages of CMRC 2018: words alone .977, pairs alone .982, this .983.
    """
    if len(run) <= 2:
        return [run] if keep_stop or run not in CHINESE else []
    words: list[str] = []
    if segment:
        jieba = _SEGMENTER.load()
        for at in range(0, len(run), _PIECE):
            words.extend(jieba.cut(run[at : at + _PIECE]))
    else:
        words.extend(run)
    terms: list[str] = []
    at = 0
    end = len(run) - 1
    for word in words:
        if len(word) != 2 and (keep_stop or word not in CHINESE):
            terms.append(word[:MAX_TERM])  # rare characters that the segmenter does not know are one word, however many
        for start in range(at, min(at + len(word), end)):
            pair = run[start : start + 2]
            if keep_stop or not (pair in CHINESE or (pair[0] in CHINESE and pair[1] in CHINESE)):
                terms.append(pair)
        at += len(word)
    return terms


def inner_characters(run: str, *, segment: bool) -> list[str]:
    """Characters of an unbroken run of Han characters that are no terms of it, since they are part of a longer word.

    For memories, not for queries: 茶 is to find 喝茶 without every 喝茶 finding all that is 喝 or 茶.
    """
    terms = set(han_terms(run, segment=segment))
    return [char for char in run if char not in CHINESE and char not in terms]


def han_names(text: str) -> list[tuple[str, str]]:
    """Names in a text with Han characters by the segmenter's tags, as (name, tag) in order."""
    jieba = _SEGMENTER.load()
    found: list[tuple[str, str]] = []
    for at in range(0, len(text), _PIECE):
        found += [
            (word, tag)
            for word, tag in jieba.tag(text[at : at + _PIECE])
            if tag in _NAME_TAGS and 1 < len(word) <= (3 if tag == "nr" else 20) and word not in CHINESE
        ]
    return found


_NAME_TAGS: Final = frozenset(("nr", "nrt", "nrfg", "ns", "nt", "nz"))
