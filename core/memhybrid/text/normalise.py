"""One spelling for what a reader takes for the same text."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Control characters separate; only the line break stays, since it ends a sentence.
_ASCII_CONTROLS: Final[dict[int, str]] = {code: " " for code in [*range(32), 127] if code != 10}
_TABLE: Final[dict[int, str]] = {
    **_ASCII_CONTROLS,
    **dict.fromkeys(range(128, 160), " "),
    0x85: "\n",
    0x2028: "\n",
    0x2029: "\n",
    # Invisible: a word with a soft hyphen or a joiner is the word without it.
    **dict.fromkeys((173, 1564, 1600, 6158, *range(8203, 8208), *range(8234, 8239)), ""),
    **dict.fromkeys((*range(8288, 8304), *range(65024, 65040), 65279), ""),
    # NFKC would glue the letters of these to the word before them.
    0x2120: " ",
    0x2122: " ",
    0xA9: " ",
    0xAE: " ",
    # Hyphens by any name; dashes stay separators.
    0x2010: "-",
    0x2011: "-",
    0xFE63: "-",
    0xFF0D: "-",
    0x02BC: "'",
    0xFF07: "'",
    # In NFKC these become a character of this table and another one.
    **{
        code: unicodedata.normalize("NFKC", chr(code)).replace("\u02bc", "'").replace("\u0640", "")
        for code in (0x149, 0xFCF2, 0xFCF3, 0xFCF4, 0xFE71, 0xFE77, 0xFE79, 0xFE7B, 0xFE7D, 0xFE7F)
    },
}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_POSSESSIVE: Final = re.compile(r"(?<=[^\W_])(?:['’][sS](?![^\W_])|(?<=[sS])['’](?![^\W_]))")
_MARKS: Final = "".join(
    chr(code)
    for code in (*range(0x0300, 0x1E00), *range(0xA800, 0xAC00), 0x3099, 0x309A)
    if unicodedata.category(chr(code)) in ("Mn", "Mc")
)  # of the scripts in use: vowel signs and accents belong to the word, though Python's \\w leaves them out
_OUTER: Final = re.compile(rf"^(?:[^\w.]|\.(?![^\W\d_])|(?<=\.)\.)+|[^\w+#{_MARKS}]+$")
_NOT_DECOMPOSED: Final = str.maketrans(
    {"đ": "d", "ð": "d", "ø": "o", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ħ": "h", "ŧ": "t", "ё": "е"}
    # One Arabic letter in other spellings: alef maqsura and Persian yeh, teh marbuta, Persian kaf.
    | {"ى": "ي", "ی": "ي", "ة": "ه", "ک": "ك", "ۀ": "ه"}
)
_KEEP_MARKS: Final = frozenset("йїў")  # letters of their own, not accented ones


def normalise(text: str) -> str:
    """The text in NFKC, lone surrogates as U+FFFD, control characters as spaces, invisible ones left out."""
    if text.isascii():
        return text if text.isprintable() else text.translate(_ASCII_CONTROLS)
    text = text.translate(_TABLE)
    if _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
    return unicodedata.normalize("NFKC", text)


def fold(text: str) -> str:
    """The text case-folded and composed: "Straße" and "STRASSE" become one."""
    text = text.casefold()
    # Folding can take a composed letter apart ("İ"), and a term must have one spelling.
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def without_accents(word: str) -> str:
    """A folded word without the accents of Latin, Greek, Cyrillic, Arabic and Hebrew letters; others are untouched."""
    if word.isascii():
        return word
    out: list[str] = []
    for char in word.translate(_NOT_DECOMPOSED):
        # Vowel signs of Indic scripts and Thai are marks too, but without them it is another word.
        if char < "\u0250" or "\u0370" <= char < "\u0700" or "\u1e00" <= char < "\u2000":
            if char in _KEEP_MARKS:
                out.append(char)
            else:
                out.extend(c for c in unicodedata.normalize("NFKD", char) if unicodedata.category(c) != "Mn")
        elif not "\u0300" <= char < "\u0370":
            out.append(char)
    return "".join(out)


def strip_possessive(text: str) -> str:
    """The text without the possessive of each word: "Joanna's hobbies" becomes "Joanna hobbies"."""
    if "'" not in text and "’" not in text:
        return text
    return _POSSESSIVE.sub("", text)


def entity_key(name: str) -> str:
    """The form by which names are compared: NFKC, case-folded, without possessive, outer punctuation, extra space.

    "" for a name without letters and digits. Marks that belong to a name stay: "C++", "C#", ".NET", "O'Neil".
    """
    return name_key(normalise(name))


def name_key(name: str) -> str:
    """`entity_key` of a name that is normalised already."""
    key = _OUTER.sub("", strip_possessive(" ".join(fold(name).replace("’", "'").split())))
    return key if any(char.isalnum() for char in key) else ""
