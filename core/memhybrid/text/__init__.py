"""Text to terms and entities, the same way for memories and queries.

`default_analyzer` picks an analyser. English has lemmas and named entities where a spaCy pipeline is installed, stems
and rules otherwise. Chinese is cut by rjieba, or by characters without it. Japanese, Korean and Thai are cut into
n-grams, every other script into words; names in those are found by capitals and quotes alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from memhybrid.errors import ConfigError
from memhybrid.text.fast import FastAnalyzer
from memhybrid.text.lexer import MissingPieceWarning, warn_once
from memhybrid.text.normalise import entity_key, fold, normalise
from memhybrid.text.pipeline import find_pipeline
from memhybrid.text.scripts import SCRIPTS, dominant_script, script_of, scripts
from memhybrid.text.spacy_en import SpacyAnalyzer

if TYPE_CHECKING:
    from spacy.language import Language

    from memhybrid.protocols import Analyzer

__all__ = [
    "SCRIPTS",
    "FastAnalyzer",
    "MissingPieceWarning",
    "SpacyAnalyzer",
    "default_analyzer",
    "dominant_script",
    "entity_key",
    "fold",
    "normalise",
    "script_of",
    "scripts",
]


def default_analyzer(kind: str | Analyzer | Language = "auto") -> Analyzer:
    """The analyser for a setting: "auto", "spacy", "fast", a pipeline's name, a loaded Language or an Analyzer.

    "auto" is spaCy if an English pipeline is installed; else rules, a warning once in a process, and
    `missing == ("spacy-pipeline",)`. "spacy" raises MissingExtraError instead. Nothing is downloaded, and spaCy is
    imported when the first text comes.
    """
    if isinstance(kind, str):
        if kind == "fast":
            return FastAnalyzer()
        if kind != "auto":
            return SpacyAnalyzer(None if kind == "spacy" else kind)
        if find_pipeline() is not None:
            return SpacyAnalyzer()
        warn_once(
            "spacy-pipeline",
            "no English spaCy pipeline is installed: English is analysed by rules, with fewer entities. "
            "Run: pip install 'memhybrid[local]', or ask for the analyser \"fast\"",
        )
        return FastAnalyzer(missing=("spacy-pipeline",))
    given: Any = kind
    if callable(getattr(given, "analyze", None)) and callable(getattr(given, "analyze_query", None)):
        return cast("Analyzer", given)
    if callable(getattr(given, "pipe", None)) and hasattr(given, "vocab"):
        return SpacyAnalyzer(given)
    raise ConfigError(f"an analyser is 'auto', 'spacy', 'fast', a pipeline or an Analyzer, not {type(given).__name__}")
