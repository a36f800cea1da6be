"""The signals: one file each. A new one is a class with a name and a line in REGISTRY, or is handed to a profile directly."""

from __future__ import annotations

from collections.abc import Callable

from memhybrid.protocols import Signal
from memhybrid.signals.bm25 import CalibratedBm25, RawBm25, SigmoidBm25
from memhybrid.signals.context import QueryFeatures, Request, SignalContext
from memhybrid.signals.date import DateNearness
from memhybrid.signals.entity import EntityBoost
from memhybrid.signals.identifier import IdentifierMatch, NamedEntity
from memhybrid.signals.importance import Importance
from memhybrid.signals.late import LateInteraction
from memhybrid.signals.lexical import Coverage, LexicalShare
from memhybrid.signals.range import MessageRange
from memhybrid.signals.recency import Recency
from memhybrid.signals.semantic import CoveredSemantic, Semantic
from memhybrid.signals.type import MemoryType
from memhybrid.signals.usage import Usage

REGISTRY: dict[str, Callable[[], Signal]] = {
    "semantic": Semantic,
    "semantic_covered": CoveredSemantic,
    "bm25": RawBm25,
    "bm25_sigmoid": SigmoidBm25,
    "bm25_calibrated": CalibratedBm25,
    "entity": EntityBoost,
    "entity_named": NamedEntity,
    "identifier": IdentifierMatch,
    "date": DateNearness,
    "late": LateInteraction,
    "lexical": LexicalShare,
    "coverage": Coverage,
    "importance": Importance,
    "recency": Recency,
    "range": MessageRange,
    "type": MemoryType,
    "usage": Usage,
}
"""Name in a profile → signal."""

__all__ = ["REGISTRY", "QueryFeatures", "Request", "SignalContext"]
