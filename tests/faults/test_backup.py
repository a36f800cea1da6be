"""A store written to a file and read into another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memhybrid import HybridMemory, InputError, Memory, MemoryView
from memhybrid.embedders import HashEmbedder, LocalEmbedder
from tests.conftest import make_memory
from tests.reports.helpers import found, word

PROFILES = ("balanced", "best", "bm25", "semantic", "mem0", "tipsy")
NAMES = ("Joanna", "Melanie", "陈伟", "Nate")
NOW = 1_760_000_000.0


def lived_in(memory: HybridMemory) -> None:
    """Two tenants with all kinds of values, replaced, updated, deleted, used, expired and superseded."""
    for tenant in ("ada", "bob"):
        view = memory.scoped(user=tenant)
        view.add(
            [
                Memory(
                    f"{tenant}{i}",
                    f"{NAMES[i % 4]} likes {word(i)} and {word(i % 7)}, 喜欢咖啡\u2028😀" + "?" * (i % 2),
                    {
                        "type": ("fact", "event")[i % 2],
                        "importance": i / 40,
                        "created_at": f"2025-0{1 + i % 9}-11T08:00:00+00:00",
                        "session_id": f"s{i // 5}",
                        "msg_id": i,
                        "tags": ["x", f"t{i % 3}"],
                        "big": 2**62 + i,
                        "flag": i % 3 == 0,
                    },
                )
                for i in range(40)
            ]
        )
        view.add(Memory(f"{tenant}3", f"Joanna changed her mind about {word(3)}", {"type": "fact"}))
        view.update(f"{tenant}4", f"now {word(99)}", {"importance": 0.1 + 0.2})
        view.update(f"{tenant}5", metadata={"flag": None, "note": ""})
        view.delete([f"{tenant}6", f"{tenant}7"])
        view.expire(f"{tenant}8", NOW - 1)
        view.supersede(f"{tenant}9", f"{tenant}10")
        for i in range(6):
            view.search(word(i), k=4, record_usage=True, now=NOW - 1000 + i)


def answers(view: MemoryView) -> list[Any]:
    """Ids and scores in each profile, with and without what is outdated and a filter."""
    return [
        found(view.search(f"{NAMES[i]} likes {word(i)}", k=12, profile=profile, now=NOW, record_usage=False, **options))
        for i in range(2)
        for profile in PROFILES
        for options in ({}, {"include_outdated": True}, {"where": {"type": "fact"}})
    ]


@pytest.mark.parametrize("embedder", [lambda: HashEmbedder(48), LocalEmbedder], ids=["hash", "packaged"])
def test_a_backup_put_into_a_fresh_folder_is_the_same_store(tmp_path: Path, embedder: Callable[[], Any]) -> None:
    """Equal memories, vectors and usage, answers equal to the last bit, clean, also when it was opened again; and the same file again."""
    options: dict[str, Any] = {"scope_key": "user", "embedder": embedder()}
    with make_memory(tmp_path / "one", **options) as memory:
        lived_in(memory)
        before = {t: answers(memory.scoped(user=t)) for t in ("ada", "bob")}
        listed = {t: memory.scoped(user=t).list() for t in before}
        vectors = {
            t: [m.embedding for m in memory.scoped(user=t).get([m.id for m in listed[t]], embeddings=True)]
            for t in before
        }
        usage = memory.usage()
        assert memory.export(tmp_path / "a.jsonl") == 76
    with make_memory(tmp_path / "two", **options) as other:
        assert other.import_(tmp_path / "a.jsonl") == 76
    with make_memory(tmp_path / "two", **options) as other:
        assert {t: answers(other.scoped(user=t)) for t in before} == before
        assert {t: sorted(other.scoped(user=t).list(), key=lambda m: m.id or "") for t in before} == {
            t: sorted(listed[t], key=lambda m: m.id or "") for t in before
        }
        for tenant, rows in vectors.items():
            again = other.scoped(user=tenant).get([m.id for m in listed[tenant]], embeddings=True)
            assert [m.embedding for m in again] == rows
        assert usage
        assert other.usage() == usage
        assert other.verify().ok
        other.export(tmp_path / "b.jsonl")
    one, two = ((tmp_path / name).read_text(encoding="utf-8").split("\n") for name in ("a.jsonl", "b.jsonl"))
    assert sorted(one) == sorted(two)


def test_a_backup_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    """Cut in the middle of a line, of another kind, or empty: the error names the line, and nothing was written."""
    with make_memory() as memory:
        memory.add([Memory(str(i), f"apple {i}") for i in range(5)])
        memory.export(tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    lines = whole.splitlines(keepends=True)
    broken = {
        "line 6": whole[:-20],
        "line 3": b"".join([*lines[:2], b"{}\n", *lines[3:]]),
        "not an export": b"".join(lines[1:]),
        "empty": b"",
    }
    with make_memory(tmp_path / "store") as other:
        other.add(Memory("mine", "pear"))
        for said, content in broken.items():
            (tmp_path / "broken").write_bytes(content)
            with pytest.raises(InputError, match=said):
                other.import_(tmp_path / "broken")
        assert [m.id for m in other.list()] == ["mine"]
        assert other.import_(tmp_path / "whole") == 5
        assert other.count() == 6
