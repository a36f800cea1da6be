"""What the packaged embedders share: checked input, verified model files, pooling over windows."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

import numpy as np

from memhybrid.errors import EmbedderError, InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from memhybrid.protocols import Float32

T = TypeVar("T")


def text_list(texts: Sequence[str]) -> list[str]:
    """The texts as a list of str that any tokenizer can take: lone surrogates become "?".

    Raises InputError naming the position of what is not a str.
    """
    checked: list[str] = []
    for position, text in enumerate(cast("Sequence[object]", texts)):
        if not isinstance(text, str):
            raise InputError(f"text {position} to embed is {type(text).__name__}, not str")
        # Half a surrogate pair (a cut emoji, a broken file name) has no UTF-8 form and makes tokenizers raise.
        checked.append(text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8"))
    return checked


def installed(package: str) -> Path | None:
    """The folder of an installed package, found without importing it; None if it is not there."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    locations = spec.submodule_search_locations
    return Path(next(iter(locations))) if locations else Path(spec.origin or "").parent


def require(extra: str, packages: dict[str, str]) -> None:
    """Raise MissingExtraError unless every import name in `packages` (to distribution name) can be imported."""
    for module, distribution in packages.items():
        if installed(module) is None:
            raise MissingExtraError(distribution, extra)


def verified(path: Path, sha256: str) -> bytes:
    """The bytes of a model file, if they are the ones this version was tested with.

    The packages with the weights are small and by single authors: a file that changed under the same version number
    is refused. Raises EmbedderError for a missing file or another checksum.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EmbedderError(f"the model file {path.name} cannot be read: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise EmbedderError(
            f"{path} is not the file that memhybrid was tested with (sha256 {found}, expected {sha256}); "
            "reinstall the package at the version that the extra pins"
        )
    return content


class ProcessShared:
    """Loaded models, one for each key and process, shared by all embedders.

    A forked child starts with none: the threads that its parent's model works with do not exist there. The
    parent's models are kept alive in the child all the same, since freeing them would wait for those threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[Hashable, object] = {}
        self._inherited: list[dict[Hashable, object]] = []
        if sys.platform != "win32":
            os.register_at_fork(after_in_child=self._start_anew)

    def get(self, key: Hashable, load: Callable[[], T]) -> T:
        """The model for `key`, made by `load` if this process has none yet. What `load` raises is not remembered."""
        model = self._models.get(key)
        if model is None:
            with self._lock:
                model = self._models.get(key)
                if model is None:
                    model = self._models[key] = load()
        return cast("T", model)

    def _start_anew(self) -> None:
        self._lock = threading.Lock()  # the parent's may have been held by a thread that is gone
        self._inherited.append(self._models)
        self._models = {}


SHARED: Final = ProcessShared()


def usable_cores() -> int:
    """How many cores this process may use: its affinity where the system tells, else all there are."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def normalised(vectors: Float32) -> Float32:
    """Rows scaled to length 1, shape kept; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Float32 = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32, copy=False)
    return unit


def pooled(vectors: Float32, weights: Sequence[int], owners: Sequence[int], texts: int) -> Float32:
    """One vector for each text from the normalised vectors of its windows, shapes (windows, d) → (texts, d).

    The mean of a text's windows weighted by `weights` (their number of tokens), normalised. `owners` says which text
    a window belongs to, ascending, each text having at least one. The vector of a text with one window is kept as
    it is, to the bit.
    """
    owner = np.asarray(owners, dtype=np.int64)
    if len(owner) == texts:
        return vectors
    starts = np.searchsorted(owner, np.arange(texts))
    weighted = vectors * np.asarray(weights, dtype=np.float32)[:, None]
    result = normalised(np.add.reduceat(weighted, starts, axis=0))
    single = np.bincount(owner, minlength=texts) == 1
    result[single] = vectors[starts[single]]
    return result
