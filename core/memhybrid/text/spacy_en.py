"""The analyser with a spaCy pipeline: lemmas, named entities and noun compounds of English text."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from memhybrid.errors import MissingExtraError
from memhybrid.protocols import Analysis, QueryAnalysis
from memhybrid.text import pipeline
from memhybrid.text.entities import Entities, collect, is_common, is_headline, trimmed
from memhybrid.text.fast import as_memory, as_query, whole_terms
from memhybrid.text.lexer import Lexer
from memhybrid.text.normalise import fold, normalise
from memhybrid.text.scripts import dominant_script
from memhybrid.text.stopwords import ENGLISH, VAGUE
from memhybrid.text.tokens import NGRAM_RUN, is_plain, surfaces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spacy.language import Language
    from spacy.tokens import Doc, Token

READ: Final = 50_000
"""Characters of a text that the pipeline reads, some two seconds of work; the rest has terms by rules alone."""

_log: Final = logging.getLogger(__name__)
_PIECE: Final = 5_000  # the parser's memory grows by 10 kB a character
_UNBROKEN: Final = re.compile(r"\S{200,}")  # inline data: slow to tokenise, and no language
_PUNCTUATION: Final = re.compile("[:;,!?]")  # NER takes "Mel: Yep" for a name
_LABELS: Final = frozenset(
    "PERSON PER NORP FAC ORG GPE LOC PRODUCT EVENT WORK_OF_ART LAW LANGUAGE MISC".split()  # noqa: SIM905
)
_SURE: Final = frozenset(("PERSON", "GPE"))  # also believed in a headline
_EMPTY: Final = ENGLISH | VAGUE
_EDGES: Final = frozenset(("DET", "PRON", "PUNCT", "SPACE", "CCONJ", "ADP", "PART", "NUM", "SYM", "AUX", "ADV", "INTJ"))


@dataclass
class _Reading:
    """What a pipeline found in one text, in plain strings with offsets."""

    lemmas: dict[int, tuple[str, str]] = field(default_factory=dict)
    names: list[tuple[str, int, str]] = field(default_factory=list)
    compounds: list[tuple[str, int]] = field(default_factory=list)


class SpacyAnalyzer:
    """Terms by spaCy's lemmas and Snowball stems of these, entities by its names and noun chunks.

    `pipeline` is a name, a path or a loaded Language (then leave it to this analyser: a pipeline works for one thread
    at a time); None takes the best English one installed. Nothing is ever downloaded. Pipelines without tagger, parser
    or NER work: a missing lemma is the surface form.

    Recall@10 by BM25 on LoCoMo turns / facts: lemmas .626/.693, stems without lemmas .624/.695, stems of lemmas
    .632/.704, which is why `stem` is on. Off, terms are lemmas, and a surface form in -ing stays beside a lemma that
    differs, as in Mem0; on, it stays where its stem differs from the lemma's.
    """

    def __init__(self, pipeline_: str | Language | None = None, *, stem: bool = True) -> None:
        self._lexer = Lexer(stem=stem)
        self._name: str | None = None
        self._pipeline: pipeline.Pipeline | None = None
        if pipeline_ is None or isinstance(pipeline_, str):
            if not pipeline.installed("spacy"):
                raise MissingExtraError("spaCy", "spacy")
            self._name = pipeline_ or pipeline.find_pipeline()
            if self._name is None:
                raise MissingExtraError("an English spaCy pipeline", "local")
            # Of a path, or a package not named for its language, only the loaded pipeline knows what it is.
            label = pipeline.named_label(self._name) if self._name.startswith("en_") else None
        else:
            label = None
            self._pipeline = pipeline.wrap(pipeline_)
        self._label = label or self._loaded.label
        self._foreign = label is None and self._loaded.nlp.lang != "en"

    @property
    def fingerprint(self) -> str:
        """Changes whenever the output may."""
        return f"spacy-{pipeline.spacy_version()}/{self._label}/{self._lexer.fingerprint}"

    @property
    def missing(self) -> tuple[str, ...]:
        """Pieces that are not installed and would do better."""
        return () if self._lexer.segment else ("rjieba",)

    def analyze(self, texts: Sequence[str]) -> list[Analysis]:
        """Terms and entities of each text, in their order."""
        clean = [normalise(text) for text in texts]
        readings = self._read(clean)
        return [
            as_memory(text, self._combine(text, reading), self._lexer)
            for text, reading in zip(clean, readings, strict=True)
        ]

    def analyze_query(self, text: str) -> QueryAnalysis:
        """Terms and entities as `analyze` gives them, and the names that known entities may have."""
        text = normalise(text)
        reading = self._read([text])[0]
        analysis = self._combine(text, reading)
        tokens = list(surfaces(text))
        if reading is None:
            words = [(surface, self._lexer.cached_terms(surface)) for surface, _ in tokens]
        else:
            words = list(self._token_terms(text, tokens, reading))
        return as_query(text, analysis, [(fold(surface), terms) for surface, terms in words])

    @property
    def _loaded(self) -> pipeline.Pipeline:
        if self._pipeline is None:
            self._pipeline = pipeline.load(self._name or "")
        return self._pipeline

    def _read(self, texts: Sequence[str]) -> list[_Reading | None]:
        """A reading of each text, None for those that the pipeline has nothing to say about."""
        readings: list[_Reading | None] = [None] * len(texts)
        pieces: list[str] = []
        places: list[tuple[int, int]] = []
        for number, text in enumerate(texts):
            # A pipeline for English calls any other script a proper noun.
            if dominant_script(text) == "latin" or (self._foreign and text.strip()):
                if len(text) > READ:
                    _log.warning("a text of %d characters: the pipeline reads the first %d", len(text), READ)
                readings[number] = _Reading()
                for at, piece in _pieces(text):
                    pieces.append(piece)
                    places.append((number, at))
        if pieces:
            for (number, at), part in zip(places, self._loaded.read(pieces, _reading), strict=True):
                reading = readings[number]
                if reading is not None:
                    reading.lemmas.update((at + start, lemma) for start, lemma in part.lemmas.items())
                    reading.names += [(name, at + start, label) for name, start, label in part.names]
                    reading.compounds += [(name, at + start) for name, start in part.compounds]
        return readings

    def _combine(self, text: str, reading: _Reading | None) -> Analysis:
        tokens = list(surfaces(text))
        found = Entities()
        collect(text, [surface for surface, _ in tokens], found, initials=reading is None)
        if reading is None:
            terms = self._lexer.terms(text, [surface for surface, _ in tokens])
        else:
            terms = self._terms(text, tokens, reading)
            self._names(text, reading, found)
        entities = found.result()
        return Analysis(whole_terms(text, terms, entities, self._lexer), entities)

    def _terms(self, text: str, tokens: list[tuple[str, int]], reading: _Reading) -> list[str]:
        terms = [term for _, found in self._token_terms(text, tokens, reading) for term in found]
        return self._lexer.with_stop_words(terms, [surface for surface, _ in tokens])

    def _token_terms(
        self, text: str, tokens: list[tuple[str, int]], reading: _Reading
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each token with its terms, none for a stop word."""
        shouting = text.isupper()
        for surface, at in tokens:
            if shouting:
                surface = surface.lower()  # noqa: PLW2901
            word, lemma = reading.lemmas.get(at, ("", ""))
            if word != surface or not is_plain(surface) or fold(surface) in ENGLISH:
                yield surface, self._lexer.cached_terms(surface)
                continue
            terms = self._lexer.cached_terms(lemma)
            if surface[-3:].lower() == "ing" and lemma != fold(surface):
                terms += tuple(term for term in self._lexer.cached_terms(surface) if term not in terms)
            yield surface, terms

    def _names(self, text: str, reading: _Reading, found: Entities) -> None:
        headline = is_headline(text)
        names = sorted((at, name) for name, at, label in reading.names if not headline or label in _SURE)
        for name, at in found.outside_titles((name, at) for at, name in names):
            if self._foreign:
                found.add(name, "proper", at)
            elif not NGRAM_RUN.search(name):
                for trim, start in trimmed(name.split(), at, initial=False):
                    found.add(trim, "proper", start)
        for name, at in reading.compounds:
            found.add(name, "compound", at)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The part of a text that a pipeline reads, in pieces cut at white space, with their offsets."""
    if text.isupper():
        text = text.lower()  # lemmas and tags of shouted words are wrong
    text = _UNBROKEN.sub(lambda match: " " * len(match.group()), text[:READ])
    at = 0
    while at < len(text):
        end = min(at + _PIECE, len(text))
        if end < len(text):
            cut = max(text.rfind(space, at, end) for space in ("\n", ". ")) + 1 or text.rfind(" ", at, end) + 1
            end = cut if cut > at else end
        piece = text[at:end]
        if not piece.isspace():
            yield at, piece
        at = end


def _reading(doc: Doc) -> _Reading:
    lemmas = {
        token.idx: (token.text, fold(token.lemma_))
        for token in doc
        if token.lemma_ and token.lemma_ != token.text and token.lemma_.isalpha() and not token.text.isupper()
    }
    return _Reading(lemmas, list(_proper(doc)), list(_compounds(doc)))


def _proper(doc: Doc) -> Iterator[tuple[str, int, str]]:
    """Names by NER, and sequences of proper nouns outside these; neither dates nor numbers."""
    for span in doc.ents:
        if span.label_ in _LABELS and len(span) <= 8 and "\n" not in span.text:
            yield _PUNCTUATION.split(span.text)[0], span.start_char, span.label_
    start = -1
    for token in [*doc, None]:
        proper = token is not None and token.pos_ == "PROPN" and not token.ent_type_ and token.text.isalpha()
        if proper and token is not None:
            start = token.i if start < 0 else start
        elif start >= 0:
            span = doc[start : token.i if token is not None else len(doc)]
            if len(span) <= 8:
                yield span.text, span.start_char, ""
            start = -1


def _is_vague(token: Token) -> bool:
    return token.pos_ == "ADJ" and (token.lower_ in VAGUE or is_common(token.text))


def _compounds(doc: Doc) -> Iterator[tuple[str, int]]:
    """Noun chunks of two to five words without determiners and function words at the edges."""
    if not doc.has_annotation("DEP"):
        return
    try:
        chunks = list(doc.noun_chunks)
    except NotImplementedError:  # the language has no rule for noun chunks
        return
    for chunk in chunks:
        words = list(chunk)
        owners = [number for number, word in enumerate(words) if word.tag_ == "POS"]
        words = words[owners[-1] + 1 :] if owners else words  # "Mel's pottery class"
        while words and (words[0].pos_ in _EDGES or words[0].lower_ in ENGLISH or _is_vague(words[0])):
            words = words[1:]
        while words and (words[-1].pos_ in _EDGES or words[-1].lower_ in ENGLISH):
            words = words[:-1]
        if not 2 <= len(words) <= 5 or words[-1].lower_ in VAGUE or all(word.pos_ == "PROPN" for word in words):
            continue
        if sum(not word.is_alpha for word in words) > 1 or any(not c.isalnum() for word in words for c in word.text):
            continue  # a list of identifiers
        span = doc[words[0].i : words[-1].i + 1]
        if "\n" in span.text or all(word.lower_ in _EMPTY for word in words) or NGRAM_RUN.search(span.text):
            continue
        yield span.text, span.start_char
