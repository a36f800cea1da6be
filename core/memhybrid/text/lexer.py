"""Terms of whole texts by rules and Snowball stems; what the analysers share."""

from __future__ import annotations

import importlib.metadata
import re
import threading
import unicodedata
import warnings
from typing import Any, Final

from memhybrid.text.han import han_terms, inner_characters, rjieba_version
from memhybrid.text.normalise import fold
from memhybrid.text.scripts import script_of
from memhybrid.text.tokens import Stem, is_ngram, ngram_terms, token_pattern, word_terms

VERSION: Final = 3
"""Of the rules in this folder: goes up whenever a text's terms or entities may change."""

_LIMIT: Final = 1 << 16  # entries of a memo, some 10 MB; then it starts afresh, so that memory stays bounded
_ARTICLE: Final = re.compile("^(?:[وبكف]?ال|لل)(?=[^\\W\\d_]{2})")
"""The Arabic article, with what is written together with it."""
_LONGEST: Final = 40  # longer surfaces are hashes and links, which do not come again


class MissingPieceWarning(UserWarning):
    """An optional part is not installed and a simpler one does its work."""


_warned: set[str] = set()


def warn_once(piece: str, message: str) -> None:
    """Warn of a missing piece, once for each process."""
    if piece not in _warned:
        _warned.add(piece)
        warnings.warn(message, MissingPieceWarning, stacklevel=3)


class Stemmer:
    """Folded words to Snowball stems: English for Latin letters, Russian and Greek for theirs.

    The pure Python stemmers whatever else is installed, so that the same version gives the same terms. They keep state
    while they work: one set for each thread.
    """

    def __init__(self) -> None:
        self._local = threading.local()
        self._memo: dict[str, tuple[str, ...]] = {}

    def __call__(self, word: str) -> tuple[str, ...]:
        """The stem of one folded word, as a tuple of one."""
        known = self._memo.get(word)
        if known is None:
            known = (self._stem(word),)
            if len(word) <= _LONGEST:
                if len(self._memo) >= _LIMIT:
                    self._memo = {}
                self._memo[word] = known
        return known

    def _stem(self, word: str) -> str:
        if len(word) < 3 or len(word) > _LONGEST:
            return word
        language = "latin" if word.isascii() else script_of(word[0])
        stemmers: dict[str | None, Any] | None = getattr(self._local, "stemmers", None)
        if stemmers is None:
            from snowballstemmer.english_stemmer import EnglishStemmer
            from snowballstemmer.greek_stemmer import GreekStemmer
            from snowballstemmer.russian_stemmer import RussianStemmer

            stemmers = {"latin": EnglishStemmer(), "cyrillic": RussianStemmer(), "greek": GreekStemmer()}
            self._local.stemmers = stemmers
        if language == "arabic":
            return _ARTICLE.sub("", word)
        stemmer = stemmers.get(language)
        return str(stemmer.stemWord(word)) or word if stemmer else word


def _unstemmed(word: str) -> tuple[str, ...]:
    return (word,)


class Lexer:
    """Normalised text to terms. Thread-safe; memory is bounded whatever the texts are."""

    def __init__(self, *, stem: bool = True) -> None:
        self.stem: Stem = Stemmer() if stem else _unstemmed
        self._stems = stem
        self._rjieba = rjieba_version()
        self.segment = bool(self._rjieba)
        self._memo: dict[str, tuple[str, ...]] = {}

    @property
    def fingerprint(self) -> str:
        """What the terms depend on: rules, stemmer, segmenter, and Python's idea of letters."""
        rjieba = self._rjieba or "none"
        stems = f"snowball-{importlib.metadata.version('snowballstemmer')}" if self._stems else "unstemmed"
        return f"rules-{VERSION}+{stems}+rjieba-{rjieba}+ucd-{unicodedata.unidata_version}"

    def terms(self, text: str, surfaces: list[str] | None = None) -> list[str]:
        """Terms of a text, or of its tokens if given, in order with repeats; stop words only where all are."""
        if surfaces is None or text.isupper():
            # In a text that shouts, "IT" is no acronym.
            surfaces = self.surfaces(text.lower() if text.isupper() else text)
        terms: list[str] = []
        memo = self._memo
        for surface in surfaces:
            terms += memo.get(surface) or self.cached_terms(surface)
        return self.with_stop_words(terms, surfaces)

    def with_stop_words(self, terms: list[str], surfaces: list[str]) -> list[str]:
        """The terms, or those of stop words too where there is no word among them: pictures alone say little of "who is it? 😊"."""
        return terms if any(term[0].isalnum() or len(term) > 1 for term in terms) else self.stop_terms(surfaces)

    def cached_terms(self, surface: str) -> tuple[str, ...]:
        """Terms of one token, none for a stop word; computed once for the frequent ones."""
        known = self._memo.get(surface)
        if known is None:
            known = self.surface_terms(surface)
            if len(surface) <= _LONGEST:
                if len(self._memo) >= _LIMIT:
                    self._memo.clear()
                self._memo[surface] = known
        return known

    def inner_terms(self, text: str) -> list[str]:
        """What a memory with this text is found by beside its terms: the characters inside its Chinese words."""
        if text.isascii():
            return []
        runs = (surface for surface in self.surfaces(text) if script_of(surface[0]) == "han")
        return [char for run in runs for char in inner_characters(run, segment=self.segment)]

    def surfaces(self, text: str) -> list[str]:
        """The tokens of a normalised text."""
        return token_pattern(text).findall(text)

    def has_terms(self, text: str) -> bool:
        """Whether the text has any term that is not a stop word."""
        return any(self.surface_terms(surface) for surface in self.surfaces(text))

    def stop_terms(self, surfaces: list[str]) -> list[str]:
        """Terms of tokens that are all stop words."""
        return [term for surface in surfaces for term in self.surface_terms(surface, keep_stop=True)]

    def surface_terms(self, surface: str, *, keep_stop: bool = False) -> tuple[str, ...]:
        """Terms of one token."""
        if not is_ngram(surface):
            return word_terms(surface, self.stem, keep_stop=keep_stop)
        script = script_of(surface[0])
        if script == "han" or surface[0] in "\u3007\u3021\u3022\u3023":
            if not self.segment:
                warn_once(
                    "rjieba", "Chinese text without rjieba is indexed by characters: pip install 'memhybrid[local]'"
                )
            return tuple(han_terms(surface, segment=self.segment, keep_stop=keep_stop))
        if script == "hiragana" and len(surface) == 1 and not keep_stop:
            return ()  # a particle
        return tuple(fold(term) for term in ngram_terms(surface))
