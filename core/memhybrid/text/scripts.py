"""Which scripts a text is written in. Cheap enough to ask of every memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import Final, Literal, get_args

Script = Literal[
    "latin",
    "han",
    "hiragana",
    "katakana",
    "hangul",
    "cyrillic",
    "greek",
    "arabic",
    "hebrew",
    "thai",
    "devanagari",
    "other",
]

SCRIPTS: Final[tuple[str, ...]] = get_args(Script)

# (first, last, script), both ends included. Blocks rather than single letters: `str.isalpha` sorts out the rest.
_BLOCKS: Final[tuple[tuple[int, int, Script], ...]] = (
    (0x0041, 0x005A, "latin"),
    (0x0061, 0x007A, "latin"),
    (0x00AA, 0x00AA, "latin"),
    (0x00BA, 0x02B8, "latin"),
    (0x02E0, 0x02E4, "latin"),
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "cyrillic"),
    (0x0590, 0x05FF, "hebrew"),
    (0x0600, 0x06FF, "arabic"),
    (0x0750, 0x077F, "arabic"),
    (0x0870, 0x08FF, "arabic"),
    (0x0900, 0x097F, "devanagari"),
    (0x0E00, 0x0E7F, "thai"),
    (0x1100, 0x11FF, "hangul"),
    (0x1C80, 0x1C8F, "cyrillic"),
    (0x1D00, 0x1D25, "latin"),
    (0x1D26, 0x1D2A, "greek"),
    (0x1D2B, 0x1D2B, "cyrillic"),
    (0x1D2C, 0x1DBF, "latin"),
    (0x1E00, 0x1EFF, "latin"),
    (0x1F00, 0x1FFF, "greek"),
    (0x2071, 0x209C, "latin"),
    (0x212A, 0x212B, "latin"),
    (0x2C60, 0x2C7F, "latin"),
    (0x2DE0, 0x2DFF, "cyrillic"),
    (0x2E80, 0x2FDF, "han"),
    (0x3005, 0x3007, "han"),
    (0x3021, 0x3029, "han"),
    (0x3038, 0x303B, "han"),
    (0x3041, 0x309F, "hiragana"),
    (0x30A0, 0x30FF, "katakana"),
    (0x3130, 0x318F, "hangul"),
    (0x31F0, 0x31FF, "katakana"),
    (0x3400, 0x4DBF, "han"),
    (0x4E00, 0x9FFF, "han"),
    (0xA640, 0xA69F, "cyrillic"),
    (0xA722, 0xA7FF, "latin"),
    (0xA8E0, 0xA8FF, "devanagari"),
    (0xA960, 0xA97F, "hangul"),
    (0xAB30, 0xAB64, "latin"),
    (0xAC00, 0xD7FF, "hangul"),
    (0xF900, 0xFAFF, "han"),
    (0xFB00, 0xFB06, "latin"),
    (0xFB1D, 0xFB4F, "hebrew"),
    (0xFB50, 0xFDFF, "arabic"),
    (0xFE70, 0xFEFE, "arabic"),
    (0xFF21, 0xFF3A, "latin"),
    (0xFF41, 0xFF5A, "latin"),
    (0xFF66, 0xFF9F, "katakana"),
    (0xFFA0, 0xFFDC, "hangul"),
    (0x1AFF0, 0x1B000, "katakana"),
    (0x1B001, 0x1B11F, "hiragana"),
    (0x1B120, 0x1B122, "katakana"),
    (0x1B150, 0x1B152, "hiragana"),
    (0x1B155, 0x1B167, "katakana"),
    (0x20000, 0x3FFFF, "han"),
)
_FIRSTS: Final = [first for first, _, _ in _BLOCKS]
_ASCII_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def script_of(char: str) -> Script | None:
    """The script of one character, None for what is not a letter (digits, marks, punctuation, emoji)."""
    if not char.isalpha():
        return None
    code = ord(char)
    at = bisect_right(_FIRSTS, code) - 1
    if at >= 0:
        _, last, script = _BLOCKS[at]
        if code <= last:
            return script
    return "other"


def scripts(text: str) -> dict[str, int]:
    """Letters of the text counted by script; only scripts that occur are keys, in the order of `SCRIPTS`."""
    if text.isascii():
        latin = len(text) - len(text.encode("ascii").translate(None, _ASCII_LETTERS))
        return {"latin": latin} if latin else {}
    counts: dict[str, int] = {}
    for char, times in Counter(text).items():
        script = script_of(char)
        if script is not None:
            counts[script] = counts.get(script, 0) + times
    return {script: counts[script] for script in SCRIPTS if script in counts}


def dominant_script(text: str) -> str | None:
    """The script most of the text's letters are in, the earlier one of `SCRIPTS` on a tie; None without letters."""
    counts = scripts(text)
    return max(counts, key=counts.__getitem__) if counts else None
