from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memhybrid import HybridMemory, cli
from memhybrid.embedders import HashEmbedder
from memhybrid.errors import StoreError
from memhybrid.profiles import Profile
from tests.evaluate.sets import WORDS, write_set

FAST = ["--embedder", "hash", "--analyzer", "fast"]


class Ran:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def memhybrid(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command in this process."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["memhybrid", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Ran(int(ended.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("sets") / "small")


def test_help_lists_only_commands_that_are_there(memhybrid: Any) -> None:
    """A command whose module is missing is not offered."""
    ran = memhybrid("--help")
    assert ran.code == 0
    for name in ("demo", "eval", "tune", "sync", "verify"):
        assert f" {name} " in ran.out
    for name, module in (("diagnose", "diagnose"), ("recover", "recover"), ("bench", "bench"), ("serve", "service")):
        there = all(find_spec(f"memhybrid.{part}") is not None for part in (module, f"commands.{name}"))
        assert (f" {name} " in ran.out) == there


def test_help_imports_nothing_heavy() -> None:
    """The command line starts before Chroma or a model is loaded."""
    code = (
        "import sys\nfrom memhybrid import cli\nsys.argv = ['memhybrid', '--help']\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('chromadb', 'spacy', 'pydantic', 'onnxruntime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "nowhere"], "corpus.jsonl"),
        (["eval", "{small}", "--profile", "strange"], "profile: expected one of"),
        (["eval", "{small}", "--embedder", "strange"], "no packaged embedder 'strange'"),
        (["eval", "{small}", "--embedder", "no.such:thing"], "--embedder no.such:thing"),
        (["eval", "{small}", "--json", "nowhere/out.json"], "--json"),
        (["eval", "{small}", "--plot", "chart.docx"], "--plot"),
        (["tune", "{small}", "--out", "{small}"], "--out"),
        (["sync", "nowhere"], "no store"),
        (["verify", "nowhere"], "no store"),
        (["demo", "nowhere"], "corpus.jsonl"),
        (["recover", "nowhere"], "no Chroma store"),
        (["serve", "nowhere"], "API keys are needed"),
    ],
)
def test_an_error_is_one_line_on_stderr_and_exit_code_2(
    memhybrid: Any, small: Path, arguments: list[str], message: str
) -> None:
    """No traceback, nothing on stdout."""
    ran = memhybrid(*(a.replace("{small}", str(small)) for a in arguments))
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert message in ran.err


def test_errors_that_a_store_raises_are_one_line_too(
    memhybrid: Any, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the message has several lines."""

    def fail(*_: Any, **__: Any) -> Any:
        raise StoreError("the disk\nis full")

    monkeypatch.setattr("memhybrid.evaluate.run.build", fail)
    assert memhybrid("eval", small, *FAST).err == "error: the disk is full\n"


def test_without_the_extra_the_message_names_it() -> None:
    """Typer or rich missing is no traceback."""
    code = "import sys\nsys.modules['typer'] = None\nfrom memhybrid import cli\nsys.argv = ['memhybrid', 'demo']\ncli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'memhybrid[cli]'" in done.stderr


def test_eval_prints_a_table_and_writes_json(memhybrid: Any, small: Path, tmp_path: Path) -> None:
    """The object that the documentation promises, and nothing else in it."""
    file = tmp_path / "out.json"
    ran = memhybrid("eval", small, *FAST, "--json", file)
    assert ran.code == 0
    assert "total" in ran.out
    value = json.loads(file.read_text(encoding="utf-8"))
    assert list(value) == ["dataset", "profile", "embedder", "queries", "metrics", "by_category", "latency_ms"]
    names = {"recall@5", "recall@10", "ndcg@10", "mrr@10", "session_recall@10"}
    assert (value["dataset"], value["profile"], value["queries"]) == ("small", "balanced", 24)
    assert set(value["metrics"]) == names
    assert set(value["by_category"]) == {"0", "1", "2"}
    assert all(set(row) == names | {"queries"} for row in value["by_category"].values())
    assert set(value["latency_ms"]) == {"p50", "p95"}
    assert f"{value['metrics']['ndcg@10']:.4f}" in ran.out


def test_eval_asks_only_so_many_questions(memhybrid: Any, small: Path, tmp_path: Path) -> None:
    """`--limit` spreads them over the set."""
    assert memhybrid("eval", small, *FAST, "--limit", "5", "--profile", "bm25", "--json", tmp_path / "a.json").code == 0
    value = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (value["queries"], value["profile"]) == (5, "bm25")


def test_eval_compares(memhybrid: Any, small: Path, tmp_path: Path) -> None:
    """Table, list of objects and chart in one go."""
    json_file, chart = tmp_path / "out.json", tmp_path / "out.svg"
    ran = memhybrid("eval", small, *FAST, "--limit", "8", "--compare", "--json", json_file, "--plot", chart)
    assert ran.code == 0
    value = json.loads(json_file.read_text(encoding="utf-8"))
    assert [row["system"] for row in value][::7] == ["vectors alone", "balanced"]
    assert all(row["system"] in ran.out for row in value)
    assert "p_value" in value[0]
    assert chart.exists()


def test_tune_says_noise_or_writes_a_profile(memhybrid: Any, small: Path, tmp_path: Path) -> None:
    """Exit code 1 and no file, or 0 and a profile that loads."""
    out = tmp_path / "mine.json"
    ran = memhybrid("tune", small, *FAST, "--out", out)
    assert "95 % interval" in ran.out
    assert ran.code == (0 if out.exists() else 1)
    if out.exists():
        assert Profile.from_json(out).name == "tuned-small"
    else:
        assert "Noise" in ran.out


def test_verify_finds_what_sync_mends(memhybrid: Any, tmp_path: Path) -> None:
    """A row deleted behind our back is listed with exit code 1, then mended; the store's own settings are taken."""
    path = tmp_path / "store"
    with HybridMemory.open(path, embedder=HashEmbedder(64), analyzer="fast", scope_key="user_id") as memory:
        memory.add([(f"note {i}", {"user_id": "a"}) for i in range(5)])
    assert memhybrid("verify", path).out == "memories: 5 memories, 0 problems\n"
    with HybridMemory.open(path, embedder=HashEmbedder(64), analyzer="fast", scope_key="user_id") as memory:
        collection = memory._store.backend.collection
        collection.delete(collection.get(limit=1)["ids"])
    found = memhybrid("verify", path)
    assert found.code == 1
    assert "in the cache, not in Chroma" in found.out
    assert memhybrid("sync", path).out == "memories: 0 added, 0 updated, 1 removed, 4 unchanged\n"
    assert memhybrid("verify", path).code == 0


def test_a_store_of_someone_elses_embedder_is_verified_without_it(memhybrid: Any, tmp_path: Path) -> None:
    """Nothing is embedded, so nobody has to bring the model."""

    def lengths(texts: list[str]) -> list[list[float]]:
        return [[1.0, float(len(t))] for t in texts]

    with HybridMemory.open(tmp_path / "store", "mine", embedder=lengths) as memory:
        memory.add(["one", "three"])
    assert memhybrid("verify", tmp_path / "store").out == "mine: 2 memories, 0 problems\n"
    assert memhybrid("sync", tmp_path / "store", "--collection", "mine").code == 0
    assert memhybrid("sync", tmp_path / "store", "--collection", "other").code == 2


def test_diagnose_says_whether_results_follow_the_query(memhybrid: Any, tmp_path: Path) -> None:
    """A tenant is named with --where; without it the scope error is one line."""
    path = tmp_path / "store"
    with HybridMemory.open(path, embedder=HashEmbedder(64), analyzer="fast", scope_key="user_id") as memory:
        memory.add([(f"{word} {word}s and the {word} shop", {"user_id": "a"}) for word in WORDS])
    ran = memhybrid("diagnose", path, "--where", "user_id=a", "--rounds", "1", "--json", tmp_path / "out.json")
    assert ran.code == 0
    assert "Results follow the query" in ran.out
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["memories"]["follows_query"] is True
    assert memhybrid("diagnose", path).err.count("\n") == 1
    assert "KEY=VALUE" in memhybrid("diagnose", path, "--where", "a").err


def test_a_store_is_searched_exported_and_imported_at_the_terminal(memhybrid: Any, tmp_path: Path) -> None:
    """What is found, with its signals, in one tenant; the export read into another store gives the same."""
    folder, other, file = tmp_path / "store", tmp_path / "other", tmp_path / "out.jsonl"
    options: dict[str, Any] = {"embedder": HashEmbedder(), "analyzer": "fast", "scope_key": "user_id"}
    with HybridMemory.open(folder, **options) as memory:
        memory.scoped(user_id="maya").add(["Maya drinks tea"])
        memory.scoped(user_id="tom").add(["Tom drinks tea"])
    with HybridMemory.open(other, **options):
        pass
    ran = memhybrid("export", folder, file)
    assert (ran.code, ran.out) == (0, f"memories: 2 memories written to {file}\n")
    ran = memhybrid("import", other, file)
    assert (ran.code, ran.out) == (0, f"memories: 2 memories read from {file}\n")
    for store in (folder, other):
        ran = memhybrid("search", store, "tea", "--where", "user_id=maya", "--embedder", "hash")
        assert ran.code == 0, ran.err
        assert "Maya" in ran.out
        assert "bm25" in ran.out
        assert "Tom" not in ran.out
    ran = memhybrid("search", folder, "tea", "--embedder", "hash")
    assert (ran.code, "user_id" in ran.err) == (2, True)


def test_the_package_runs_as_a_module() -> None:
    """For whoever has several Pythons."""
    ran = subprocess.run([sys.executable, "-m", "memhybrid", "--help"], capture_output=True, text=True, check=False)
    assert (ran.returncode, "search" in ran.stdout) == (0, True)
