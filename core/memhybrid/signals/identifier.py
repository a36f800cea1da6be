"""Whether a memory has just the identifiers that the query asks for: order numbers, versions, file names, flight numbers."""

from __future__ import annotations

import re

import numpy as np

from memhybrid.protocols import Float64, QueryAnalysis
from memhybrid.signals.context import SignalContext

_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_FIVE_DIGITS = re.compile(r"\d{5}")
_NEXT_GROUP = re.compile(r"[-./:_#]\d")
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}(st|nd|rd|th)|\d{1,2}:\d{2}|(19|20)\d\ds?|\d+(am|pm)")


def identifiers(analysis: QueryAnalysis) -> tuple[str, ...]:
    """The whole terms of the query's identifiers: letters with digits, digits in groups, or at least five digits; dates are none."""
    found: list[str] = []
    for surface, terms in analysis.words:
        if terms and _identifies(surface) and not _DATE.fullmatch(surface):
            found.append(surface if surface in terms else terms[0])
    return tuple(dict.fromkeys(found))


def _identifies(surface: str) -> bool:
    """Each pattern looks at each character once: a token may be a megabyte of inline data."""
    digit = _DIGIT.search(surface)
    if digit is None:
        return False
    return bool(
        _LETTER.search(surface)
        or _NEXT_GROUP.search(surface, digit.end())
        or _FIVE_DIGITS.search(surface, digit.start())
    )


class IdentifierMatch:
    """The share of the query's identifiers that the memory contains, whole; NaN where no memory has any of them.

    Word vectors take ZX-4417 for nearly ZX-4471, and the rest of a sentence can outweigh one term of BM25.
    """

    name = "identifier"
    query_dependent = True

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        lexical = context.view.lexical
        known = [term for term in context.query.identifiers if lexical.document_frequency(term)]
        return lexical.share(known, context.rows) if known else context.unknown()


class NamedEntity:
    """How telling the names are that query and memory share: 1 / (1 + 0.001 (linked - 1)²) of the rarest; NaN where none is known.

    Mem0's attenuation: a name that every memory mentions tells nothing.
    """

    name = "entity"
    query_dependent = True

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        from memhybrid.signals.entity import ENTITY_BOOST_WEIGHT, boost, matches_by_name

        out = np.zeros(len(context.rows))
        known = False
        for key, similarity in matches_by_name(context):
            linked = context.view.linked(key)
            if len(linked):
                known = True
                mentions = np.isin(context.rows, linked)
                out[mentions] = np.maximum(out[mentions], boost(similarity, len(linked)) / ENTITY_BOOST_WEIGHT)
        return out if known else context.unknown()
