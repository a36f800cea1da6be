"""What is left of a deleted memory, byte by byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memhybrid import HybridMemory, Memory
from tests.conftest import make_memory

SECRETS = (b"quetzalcoatl", b"hushhush", b"zerlina", b"oldversion", b"id-of-it")
CHROMA = Path(sys.executable).with_name("chroma")
LOGGED = 1_000
"""Chroma writes its index, and cuts its log, after so many writes to a collection."""


def with_secrets_deleted(folder: Path) -> HybridMemory:
    """A store in which they were written, used, replaced and deleted."""
    memory = make_memory(folder)
    memory.add(Memory("id-of-it", "Zerlina knows quetzalcoatl", {"secret": "hushhush"}))
    memory.add([Memory("b", "an oldversion"), Memory("c", "Dana plays chess")])
    memory.search("Zerlina", profile="mem0", record_usage=True)
    memory.update("b", "a new one")
    memory.delete("id-of-it")
    return memory


def left_in(folder: Path) -> set[str]:
    """Which files hold which of the secrets, in any case."""
    files = [p for p in folder.rglob("*") if p.is_file()]
    assert files
    return {f"{p.name}: {s.decode()}" for p in files for s in SECRETS if s in p.read_bytes().lower()}


def test_after_compaction_nothing_is_in_our_files_while_they_are_open(tmp_path: Path) -> None:
    """Neither in the cache, the vectors, the ledger, nor in the logs of these: text, metadata, names, ids, replaced versions."""
    with with_secrets_deleted(tmp_path) as memory:
        memory.compact()
        assert left_in(tmp_path / "memhybrid") == set()
        memory.search("Zerlina", profile="mem0", record_usage=True)
        assert left_in(tmp_path / "memhybrid") == set()
        assert memory.verify().ok


def test_a_backup_put_into_a_fresh_folder_holds_nothing_of_what_was_deleted(tmp_path: Path) -> None:
    """The way that needs no tool of Chroma's: export, import elsewhere, throw the old folder away."""
    with with_secrets_deleted(tmp_path / "old") as memory:
        memory.export(tmp_path / "backup.jsonl")
    with make_memory(tmp_path / "new" / "store") as fresh:
        fresh.import_(tmp_path / "backup.jsonl")
        assert fresh.count() == 2
    assert left_in(tmp_path / "new") == set()
    assert left_in(tmp_path / "old") != set()


@pytest.mark.skipif(not CHROMA.exists(), reason="Chroma's command line is not installed")
def test_chromas_own_files_are_clean_when_its_log_was_cut_and_vacuumed(tmp_path: Path) -> None:
    """After a thousand further writes Chroma's log is cut; `chroma vacuum` then overwrites the free pages of its file."""
    with with_secrets_deleted(tmp_path) as memory:
        memory.add([Memory(f"n{i}", f"another {i}") for i in range(LOGGED + 100)])
        memory.add(Memory("last", "one more"))
        memory.compact()
        backend = memory.store.backend
    backend.close()
    done = subprocess.run(
        [str(CHROMA), "vacuum", "--path", str(tmp_path), "--force"], capture_output=True, check=False, timeout=60
    )
    if done.returncode and b"unrecognized subcommand" in done.stderr:
        pytest.skip("this version of Chroma has no vacuum")
    assert done.returncode == 0, done.stderr
    assert left_in(tmp_path) == set()
    with make_memory(tmp_path) as memory:
        assert memory.count() == LOGGED + 103
        assert memory.verify().ok
