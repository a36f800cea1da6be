"""What in a query might be a known entity's name, whatever its case."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from memhybrid.text.normalise import fold, name_key, strip_possessive
from memhybrid.text.stopwords import ENGLISH
from memhybrid.text.tokens import NGRAM_RUN, is_ngram, surfaces

if TYPE_CHECKING:
    from memhybrid.protocols import Entity

_WORDS: Final = 4
_CHARS: Final = 8
_LIMIT: Final = 4096  # names of one query; a whole document as query must not flood the entity index
_SPACES: Final = re.compile(r"\s+")


def candidate_names(text: str, entities: tuple[Entity, ...] = ()) -> tuple[str, ...]:
    """Keys that a known entity named in the normalised text would have, each once, at most 4,096.

    First those of the entities found; then one to four words in a row, unless all are stop words; then every two to
    eight characters in a row of scripts without spaces.
    """
    names: dict[str, None] = dict.fromkeys(entity.key for entity in entities)
    text = text[: 8 * _LIMIT]
    clean = strip_possessive(fold(text).replace("’", "'"))
    spaced = [key for key in map(name_key, _SPACES.split(clean)) if key]
    tokens = [surface for surface, _ in surfaces(clean) if not is_ngram(surface)]
    for words in (spaced, tokens) if spaced != tokens else (spaced,):
        _ngrams(words, names)
    for match in NGRAM_RUN.finditer(clean):
        run = match.group()
        for start in range(len(run)):
            for end in range(start + 2, min(start + _CHARS, len(run)) + 1):
                names[run[start:end]] = None
            if len(names) >= _LIMIT:
                break
    return tuple(names)[:_LIMIT]


def _ngrams(words: list[str], names: dict[str, None]) -> None:
    stop = [word in ENGLISH for word in words]
    everything = all(stop)  # "The Who" is all that is asked
    for start in range(len(words)):
        if len(names) >= _LIMIT:
            return
        for end in range(start + 1, min(start + _WORDS, len(words)) + 1):
            if everything or not all(stop[start:end]):
                names[" ".join(words[start:end])] = None
