"""Script-aware tokens: where words are, and which terms a word stands for.

An identifier is one token that gives several terms, itself first: "CVE-2024-1234" → cve-2024-1234, cve, 2024, 1234,
cve20241234. Nothing here depends on a language except the stemmer that the caller passes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from memhybrid.text.normalise import fold, without_accents
from memhybrid.text.stopwords import ENGLISH

Stem = Callable[[str], tuple[str, ...]]
"""A folded plain word to its terms."""

MAX_TERM: Final = 200
"""Characters of the longest term; a longer token, such as inline data, is cut there."""

# Scripts without spaces between words, or with several morphemes in one word: cut into n-grams.
_HAN: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_HIRAGANA: Final = "\u3041-\u309f"
_KATAKANA: Final = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f"
_HANGUL: Final = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
_UNSPACED: Final = "\u0e01-\u0e3e\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u109f\u1780-\u17d3\u17dc-\u17e9"
NGRAM_CLASS: Final = _HAN + _HIRAGANA + _KATAKANA + _HANGUL + _UNSPACED
"""Characters of these scripts, for use inside a regular expression's brackets."""
NGRAM_RUN: Final = re.compile(f"[{NGRAM_CLASS}]+")
"""A run in scripts that are cut into n-grams."""

_CONNECTOR: Final = r"(?:://|:\\\\?|\\\\?|\+\+|[-._'’/@:+#&=?~%]|(?<=[0-9]),(?=[0-9]{3}(?![0-9])))"
_SEGMENT: Final = re.compile(r"[/\\:@?&=#+~%,]+")
_PART: Final = re.compile(r"[-._'’]+")
_STRUCTURE: Final = re.compile(r"[\W_]+")
_THOUSANDS: Final = re.compile(r",(?=[0-9]{3}(?![0-9]))")
_CAMEL: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CAMEL_INSIDE: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}|[A-Z][a-z]+[A-Z]")
_PLURAL_ACRONYM: Final = re.compile(r"[A-Z]{2,}s")
_DIGIT_GROUPS: Final = re.compile(r"(?<![\w.,/-])\(?[0-9]{1,5}\)?(?:[ .-]{1,2}\(?[0-9]{1,10}\)?)+(?![\w/])")
_NO_NUMBER: Final = re.compile(r"^[0-9]+\.[0-9]+$|\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b")
_MOST_GROUPS: Final = 8
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}")
_NO_DIGIT: Final = re.compile(r"[^0-9]+")
_SYMBOLS: Final = "\u231a-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001fbff"
"""Pictures: emoji, dingbats, game pieces; neither arrows nor what tables are drawn with nor skin tones."""
_LETTERS_DIGITS: Final = re.compile(r"([a-z]{2,})([0-9]+)|([0-9]+)([a-z]{2,})")
_PARTICLES: Final = frozenset(
    "은 는 이 가 을 를 에 의 도 로 와 과 만 랑 에서 에게 으로 까지 부터 처럼 보다 한테 이랑 마다 조차 에는 에도 이나 이고 이다".split()  # noqa: SIM905
)
_ORDINAL: Final = frozenset(("st", "nd", "rd", "th"))
_DOTTED_LETTERS: Final = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9]+){2,4}")
_TRANSLITERATED: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
"""How who has no such key writes these letters: Mueller, Koeln, Aalborg."""
_CLITIC: Final = re.compile(r"['’](?:[sS]|[mMdD]|re|RE|ve|VE|ll|LL)$")


def _pattern(word: str) -> str:
    return rf"(?:(?<![\w.])\.(?=[A-Za-z]))?{word}+(?:{_CONNECTOR}{word}+)*(?:(?:\+\+|\#)(?!{word}))?"


_ASCII: Final = re.compile(_pattern("[A-Za-z0-9_]"))


@cache
def _unicode() -> re.Pattern[str]:
    """Made at the first text that needs it: letters, digits and marks of the running Python's Unicode version."""
    inside: list[str] = []
    start = -1
    ngram = re.compile(f"[{NGRAM_CLASS}]")
    for code in range(0x20001):
        char = chr(code)
        member = char.isalnum() or char == "_" or (code >= 0x300 and unicodedata.category(char) in ("Mn", "Mc"))
        if member and code >= 0xFE00 and not char.isalnum():
            member = False  # variation selectors
        if member and not ngram.match(char):
            start = code if start < 0 else start
        elif start >= 0:
            inside.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = -1
    word = "[" + "".join(inside) + "]"
    kinds = (f"[{_HAN}]+", f"[{_KATAKANA}]+", f"[{_HIRAGANA}ー]+", f"[{_HANGUL}]+", f"[{_UNSPACED}]+", f"[{_SYMBOLS}]")
    return re.compile("|".join((_pattern(word), *kinds)))


def token_pattern(text: str) -> re.Pattern[str]:
    """The pattern whose matches are the tokens of a normalised text: words, identifiers, runs of n-gram scripts."""
    return _ASCII if text.isascii() else _unicode()


def surfaces(text: str) -> Iterator[tuple[str, int]]:
    """Tokens of a normalised text with their offsets."""
    for match in token_pattern(text).finditer(text):
        yield match.group(), match.start()


def is_ngram(surface: str) -> bool:
    """Whether a token is a run in a script that is cut into n-grams."""
    return surface[0] >= "\u0e01" and NGRAM_RUN.match(surface) is not None


def joined_numbers(text: str) -> list[str]:
    """Numbers of 7 to 19 digits in groups, as in "(555) 012-3456", without what parts the groups, in order.

    Whoever looks for a telephone number or an ISBN groups it in another way. Which groups belong together is not known, so each row of
    neighbours counts, but for rows of years or small numbers, longer rows, and addresses in a network.
    """
    found: dict[str, None] = {}
    for match in _DIGIT_GROUPS.finditer(text):
        run = match.group()
        groups = [group for group in _NO_DIGIT.split(run) if group]
        if len(groups) > _MOST_GROUPS or _NO_NUMBER.search(run) or all(_YEAR.fullmatch(group) for group in groups):
            continue
        for first in range(len(groups)):
            for last in range(first + 2, len(groups) + 1):
                digits = "".join(groups[first:last])
                small = all(len(group) < 3 for group in groups[first:last])
                if 7 <= len(digits) <= 19 and not (small and last - first < 5):
                    found[digits] = None
    return list(found)


def is_plain(surface: str) -> bool:
    """Whether a token is one word without inner structure (no identifier, no digits, no camel case)."""
    return surface.isalpha() and not _CAMEL_INSIDE.search(surface)


def ngram_terms(run: str) -> list[str]:
    """Terms of a run of kana, Hangul or a script without spaces: the word, pairs; threes where vowels combine."""
    length = len(run)
    if length <= 2:
        return [run, *_bare_syllable(run)]
    terms: list[str] = []
    combining = "\u0e01" <= run[0] < "\u1100" or "\u1780" <= run[0] < "\u1800"
    if not combining and length <= 16 and not "\u3041" <= run[0] <= "\u309f":
        terms.append(run)  # a katakana or Korean word is delimited; hiragana and Thai runs are sentences
        terms.extend(_bare_syllable(run))
    for at in range(length - 1):
        terms.append(run[at : at + 2])
        if combining and at + 3 <= length:
            terms.append(run[at : at + 3])
    return terms


def _bare_syllable(run: str) -> list[str]:
    """A Korean noun of one syllable without its particle: 차 of 차를, 집 of 집에서. Longer nouns are found by their pairs."""
    return [run[0]] if "\uac00" <= run[0] <= "\ud7a3" and run[1:] in _PARTICLES else []


def word_terms(surface: str, stem: Stem, *, keep_stop: bool = False) -> tuple[str, ...]:
    """Terms of a word or an identifier, the whole first, each once; none for a stop word unless `keep_stop`.

    A stop word in capitals ("IT", "US", "WHO") is an acronym and stays.
    """
    if len(surface) > MAX_TERM:
        parts = (part for part in _STRUCTURE.split(surface) if part)
        return tuple(dict.fromkeys((fold(surface[:MAX_TERM]), *(fold(part[:MAX_TERM]) for part in parts))))
    if surface.isalpha() and not _CAMEL_INSIDE.search(surface):
        return _plain(surface, stem, keep_stop=keep_stop)
    if "'" in surface or "’" in surface:
        surface = surface.replace("’", "'")
        if not keep_stop and surface.casefold() in ENGLISH:
            return ()
        shorter = _CLITIC.sub("", surface)
        if shorter != surface:
            return word_terms(shorter, stem, keep_stop=keep_stop)
    if _PLURAL_ACRONYM.fullmatch(surface):
        return _plain(surface, stem, keep_stop=keep_stop)
    if "," in surface:
        surface = _THOUSANDS.sub("", surface)
    whole = fold(surface)
    if not keep_stop and whole in ENGLISH:
        return ()
    if len(whole) == 2 + whole.endswith("++") and whole[-1] in "+#":
        return (whole,)  # "C++" is not "C"
    if _DOTTED_LETTERS.fullmatch(surface):
        return (whole, whole.replace(".", ""))
    if surface.isdecimal() and not surface.isascii():
        return (whole, "".join(str(unicodedata.decimal(char)) for char in surface))
    terms = dict.fromkeys(_variants(whole))
    for segment in _SEGMENT.split(surface):
        if segment == "C" and surface.startswith("C++"):
            terms["c++"] = None
        elif segment:
            _add_segment(segment, surface, stem, terms)
    return tuple(terms)


def _plain(surface: str, stem: Stem, *, keep_stop: bool) -> tuple[str, ...]:
    word = fold(surface)
    if word in ENGLISH and not keep_stop:
        return (word,) if surface.isupper() and len(surface) > 1 else ()
    if word.isascii():
        return stem(word)
    bare = without_accents(word)
    if bare == word:
        return stem(word)
    # Without accents "thé" would be an article; the accented form alone stays then.
    spelt = word.translate(_TRANSLITERATED)
    others = (*(stem(bare) if bare and bare not in ENGLISH else ()), *(stem(spelt) if spelt.isascii() else ()))
    return tuple(dict.fromkeys((word, *others)))


def _add_segment(segment: str, surface: str, stem: Stem, terms: dict[str, None]) -> None:
    parts = [part for part in _PART.split(segment) if part]
    if len(parts) > 1:
        if segment != surface:
            terms.update(dict.fromkeys(_variants(fold(segment.strip("-._'")))))
        if _VERSION.fullmatch(segment):
            terms.update(dict.fromkeys(".".join(parts[:length]) for length in range(2, len(parts))))
        if len(parts) <= 4 and "." not in segment and not all(part.isdigit() for part in parts):
            joined = fold("".join(parts))
            terms.update(dict.fromkeys(stem(joined) if joined.isalpha() and joined.isascii() else (joined,)))
    for part in parts:
        if len(part) > 1 or part.isdigit() or "'" not in segment:  # not the O of "O'Neil", the l of "l'avion"
            _add_part(part, part != surface, stem, terms)


def _add_part(part: str, inner: bool, stem: Stem, terms: dict[str, None]) -> None:
    folded = fold(part)
    if inner and folded not in ENGLISH:
        terms.update(dict.fromkeys(stem(folded) if folded.isalpha() and folded.isascii() else _variants(folded)))
    pieces: list[str] = []
    split = _LETTERS_DIGITS.fullmatch(folded)
    if split:
        pieces = [piece for piece in split.groups() if piece]
    elif part.isascii() and _CAMEL_INSIDE.search(part) and not _PLURAL_ACRONYM.fullmatch(part):
        pieces = [piece.lower() for piece in _CAMEL.findall(part)]
    for piece in pieces:
        if piece.isdigit():
            terms[piece] = None
        elif len(piece) > 1 and piece not in ENGLISH and piece not in _ORDINAL:
            terms.update(dict.fromkeys(stem(piece)))


def _variants(word: str) -> tuple[str, ...]:
    return (word,) if word.isascii() else tuple(dict.fromkeys((word, without_accents(word) or word)))
