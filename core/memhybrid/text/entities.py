"""Names in a text by rules: capitals, quotes, identifiers, and for Chinese the segmenter's tags.

Every function takes a normalised text. What looks like a name only because of its place (start of a sentence,
heading, shouting) is none: an entity that many memories share ties unrelated ones together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from memhybrid.protocols import Entity
from memhybrid.text.han import han_names, rjieba_version
from memhybrid.text.normalise import fold, name_key, strip_possessive
from memhybrid.text.stopwords import CALENDAR, COMMON, ENGLISH
from memhybrid.text.tokens import MAX_TERM, NGRAM_CLASS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ENTITY_TEXT: Final = 200_000
"""Characters of a text that are searched for entities; terms are taken from all of it."""

_UPPER: Final = "A-Z" + "".join(
    chr(code)
    for code in (*range(0xC0, 0x250), *range(0x370, 0x530), *range(0x1E00, 0x2000))
    if chr(code).isupper() or chr(code).istitle()
)
_IN_NAME: Final = rf"[^\W{NGRAM_CLASS}]"
_INITIALS: Final = rf"(?:[{_UPPER}]\.)+(?=[ ][{_UPPER}])"
_NAME_WORD: Final = rf"(?:{_INITIALS}|[{_UPPER}](?:{_IN_NAME}|&|['’.-](?={_IN_NAME}))*)"
_INNER: Final = r"(?:of|the|of the|de|del|della|di|da|du|van|von|der|den|la|le|y|bin|al)"
_CAPITALS: Final = re.compile(rf"(?<![\w'’.&/\\@:#-]){_NAME_WORD}(?:[ ](?:{_INNER}[ ])?{_NAME_WORD})*")
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?:;…\n•*>\"“”«(\[]|[。！？：；]|(?:^|\s)[-–—])\s*[\"“”'‘«(\[]*\s*$")
# What follows "Woohoo!", "Appreciate your help", "Books are": a word that a sentence begins with, not a name.
_ORDINARY_AFTER: Final = re.compile(
    r"[.!?…](?!\Z)(?!\w)"
    r"|[ ](?:are|were|of|for|to|with|about|out|up|that|me|my|you|your|us|our|the|a|an|it|this|those)\b"
)
_IS_IDENTIFIER: Final = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # e-mail
    r"|[A-Za-z][A-Za-z0-9+.-]*://.+"
    r"|(?=[^A-Za-z]*[A-Za-z])(?=[^0-9]*[0-9])[\w.+-]+"
    r"|\w*[^\W_]_\w+|[A-Za-z]\w*(?:\+\+|\#)|\.[A-Z]\w*"
    r"|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*[a-z]\w*|[A-Z]{2,6}s?|[A-Z]{1,3}[&/][A-Z]{1,3}"
)
_UNIT: Final = re.compile(
    r"[0-9.]+(?:st|nd|rd|th|s|am|pm|AM|PM|k|K|m|h|x|ms|kg|g|km|cm|mm|lb|lbs|min|mins|hrs?|GB|MB|KB)"
)
_QUOTED: Final = re.compile(
    r"“([^“”\n]{2,80})”|\"([^\"\n]{2,80})\"|「([^「」\n]{1,80})」|『([^『』\n]{1,80})』|《([^《》\n]{1,80})》"
    r"|〈([^〈〉\n]{1,80})〉|«\s?([^«»\n]{2,80}?)\s?»|(?<!\w)‘([^‘’\n]{2,80})’(?!\w)"
)
_QUOTES: Final = re.compile('["“「『《〈«‘]')
_LOWER_INITIAL: Final = re.compile(r"(?<![\w'’])[a-z]")
_HAS_HAN: Final = re.compile("[\u3400-\u9fff]")
_ADVERB: Final = re.compile(r".+(?:ing|ly|ed)$")


class Entities:
    """Collects entities in order, one for each key."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, Entity]] = {}
        self._titles: list[tuple[int, int]] = []

    def add(self, name: str, kind: str, at: int) -> None:
        """Add a name found at an offset, unless its key is known or empty."""
        words = name.split()
        name = " ".join([*words[:-1], *(strip_possessive(word) for word in words[-1:])])
        key = name_key(name)
        if key and len(key) <= MAX_TERM and key not in self._found:
            self._found[key] = (at, Entity(key, name, kind))

    def add_title(self, name: str, at: int) -> None:
        """Add a quoted name; what lies inside it is not offered again. In order of offset."""
        self.add(name, "quoted", at)
        self._titles.append((at, at + len(name)))

    def outside_titles(self, names: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """Those of the names, given in order of offset, that lie in no quoted one."""
        titles = self._titles
        nearest = 0
        for name, at in names:
            while nearest < len(titles) and titles[nearest][1] <= at:
                nearest += 1
            if nearest == len(titles) or at < titles[nearest][0]:
                yield name, at

    def result(self) -> tuple[Entity, ...]:
        """The entities in order of appearance."""
        return tuple(entity for _, entity in sorted(self._found.values(), key=lambda found: found[0]))


def is_headline(text: str) -> bool:
    """Whether capitals say nothing: all in capitals, or in title case with the small words capitalised too."""
    if _LOWER_INITIAL.search(text):
        return False
    words = re.findall(r"[^\W\d_][\w'’]*", text[:2000])
    if len(words) < 2:
        return False
    if text.isupper():
        return len(words) > 2 or any(word.casefold() in COMMON for word in words)
    if len(words) < 3 or not all(word[0].isupper() for word in words):
        return False
    return len(words) > 4 or any(word.casefold() in ENGLISH for word in words[1:])


def collect(text: str, surfaces: Iterable[str], found: Entities, *, initials: bool = True) -> None:
    """Put the entities that rules find in a normalised text into `found`; `surfaces` are its tokens in order.

    `initials` False leaves out single words that may have their capital from the start of the sentence alone.
    """
    text = text[:ENTITY_TEXT]
    if _QUOTES.search(text):
        for name, at in quoted(text):
            found.add_title(name, at)
    headline = is_headline(text)
    if not (headline and text.isupper()):
        for name, at in _identifiers(text, surfaces):
            found.add(name, "identifier", at)
    if not headline:
        for name, at in found.outside_titles(_capitalised(text, initials=initials)):
            found.add(name, "proper", at)
    if not text.isascii() and _HAS_HAN.search(text) and rjieba_version():
        at = 0
        for name, _ in han_names(text):
            at = max(at, text.find(name, at))
            found.add(name, "proper", at)


def quoted(text: str) -> Iterator[tuple[str, int]]:
    """Short quoted pieces that are titles or terms rather than speech, with their offsets."""
    for match in _QUOTED.finditer(text):
        group = match.lastindex or 0
        name = match.group(group).strip()
        if not name or name[-1] in ",.!?;:，。！？；：…":
            continue
        if match.start() and match.group()[0] == '"' and text[match.start() - 1].isalnum():
            continue  # inches, or a quote that closes
        words = fold(name).split()
        if len(words) <= 8 and any(word not in COMMON for word in words):
            yield name, match.start(group)


def _identifiers(text: str, surfaces: Iterable[str]) -> Iterator[tuple[str, int]]:
    at = 0
    for surface in surfaces:
        if surface.isalpha() and (surface.islower() or surface.istitle()):
            continue
        if _identifies(strip_possessive(surface)):
            found = text.find(surface, at)
            if found < 0:
                return  # beyond the part of the text that is searched
            at = found
            yield surface, at


def _identifies(token: str) -> bool:
    if len(token) > MAX_TERM or not _IS_IDENTIFIER.fullmatch(token) or _UNIT.fullmatch(token):
        return False
    # "WANT" is a shout; "IT" and "US" are too likely to be one, too.
    return fold(token) not in COMMON and fold(token) not in CALENDAR


def _capitalised(text: str, *, initials: bool) -> Iterator[tuple[str, int]]:
    for match in _CAPITALS.finditer(text):
        at = match.start()
        initial = at == 0 or _SENTENCE_START.search(text[max(0, at - 8) : at]) is not None
        alone = initial and " " not in match.group() and text[match.end() : match.end() + 1] != ":"
        if alone and (not initials or _ORDINARY_AFTER.match(text, match.end())):
            continue
        words: list[str] = []
        start = at
        for word in [*match.group().split(" "), ""]:
            if word and not any(char.isdigit() for char in word):
                words.append(word)
            else:  # "NASA ZX-4471" is two entities, and the second is an identifier
                yield from trimmed(words, start, initial=initial)
                words, initial = [], False
                start = at + len(word) + 1
            at += len(word) + 1


def trimmed(words: list[str], at: int, *, initial: bool) -> Iterator[tuple[str, int]]:
    """The name in a sequence of capitalised words, if any, with its offset; `initial`: a sentence starts here."""
    if len(words) > 1 and fold(words[0]) in _ARTICLES and all(fold(word) in ENGLISH for word in words):
        yield " ".join(words), at  # "The Who"
        return
    if initial and len(words) == 1 and _ADVERB.fullmatch(words[0]):
        return
    first = 0
    last = len(words)
    while first < last and is_common(words[first]):
        if first + 1 < last and fold(words[first]) in _PART_OF_NAME and not is_common(words[first + 1]):
            break
        at += len(words[first]) + 1
        first += 1
    while last > first and (fold(words[last - 1]) in _NO_END or (last - first == 1 and is_common(words[first]))):
        last -= 1
    if last - first > 1 or (last > first and len(words[first].rstrip(".")) > 1):
        yield " ".join(words[first:last]), at


_NO_END: Final = ENGLISH | CALENDAR
_ARTICLES: Final = frozenset(("the", "a", "an"))
_PART_OF_NAME: Final = frozenset(("new", "great", "big", "little", "old", "high", "lake", "mount", "saint"))
_CLITICS: Final = frozenset(("s", "m", "d", "re", "ve", "ll", "t"))


def is_common(word: str) -> bool:
    """Whether a word, or what a contraction begins with, is so ordinary that capitals do not make a name of it."""
    word = fold(word).replace("’", "'")
    base, apostrophe, clitic = word.partition("'")
    return word in COMMON or (bool(apostrophe) and base in COMMON and clitic in _CLITICS)
