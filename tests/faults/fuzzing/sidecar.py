"""Damage to the files beside Chroma: afterwards the same answers, or an error of the documented kind; never another answer."""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from memhybrid import HybridMemory, Memory, StoreError
from memhybrid.embedders import HashEmbedder
from memhybrid.protocols import Float32, TokenVectors
from memhybrid.state.checks import SqliteErrors
from tests.faults.fuzzing.common import Report, Wrong

PAGE = 4096
CLOSE = 2e-5
NOW = 1_724_155_200.0
PROFILES = ("balanced", "semantic", "bm25", "mem0", "tipsy")
QUERIES = (
    "Where did Joanna move?",
    "order ZX-4471 in Oslo",
    "walnuts and chess with Mel",
    "what happened on 8 May 2023?",
)
WORDS = "Joanna Mel Caroline Oslo chess walnuts garden moved likes order the of a 2023 May 8 coffee 北京 咖啡".split()  # noqa: SIM905
PICKLE = b"cos\nsystem\n(S'exit 3'\ntR."


class TokenHashEmbedder(HashEmbedder):
    """The hash embedder with token vectors, so that these are in the cache, too."""

    def embed_documents(self, texts: Sequence[str]) -> Float32:
        """As the hash embedder, each text once."""
        return np.stack([_vector(text) for text in texts]) if len(texts) else super().embed_documents(texts)

    def encode(self, texts: Sequence[str]) -> tuple[Float32, list[TokenVectors]]:
        """Vectors, and one for each word."""
        return self.embed_documents(texts), [_tokens(text) for text in texts]


@lru_cache(maxsize=1000)
def _vector(text: str) -> Float32:
    return HashEmbedder(16).embed_documents([text])[0]


@lru_cache(maxsize=1000)
def _tokens(text: str) -> TokenVectors:
    words = tuple(text.lower().split())[:30] or ("",)
    seeds = [int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little") for word in words]
    return TokenVectors(
        words, np.array([np.random.default_rng(seed).normal(size=384) for seed in seeds], dtype=np.float32)
    )


@dataclass
class Case:
    """One store: its folder, its state as it is when closed, while open, and before its last writes, and its answers."""

    root: Path
    scope_key: str | None
    scopes: list[dict[str, str]]
    states: dict[str, dict[str, bytes]] = field(default_factory=dict)
    answers: dict[Any, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    times: int = 0
    """How often it was filled; each time in a new folder, since Chroma's engine keeps the old one open."""

    @property
    def folder(self) -> Path:
        """The store."""
        return self.root / str(self.times)

    @property
    def state(self) -> Path:
        """The folder that is damaged."""
        return next(p for p in (self.folder / "memhybrid").iterdir() if p.is_dir())

    def open(self, **options: Any) -> HybridMemory:
        """The store, with parts that need no model."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return HybridMemory.open(
                self.folder, embedder=TokenHashEmbedder(16), analyzer="fast", scope_key=self.scope_key, **options
            )


def memories(scoped: bool) -> list[Memory]:
    """Sixty memories with names, dates, identifiers, lists and, for some, a scope."""
    chance = random.Random(7)
    out = []
    for i in range(60):
        text = " ".join(chance.choices(WORDS, k=9))
        metadata: dict[str, Any] = {"n": i, "type": chance.choice(["fact", "note"]), "importance": i / 60}
        metadata |= {
            "created_at": f"2023-05-{i % 28 + 1:02}T10:00:00+00:00",
            "tags": ["x", f"t{i % 5}"],
            "session_id": f"s{i // 10}",
        }
        out.append(Memory(f"m{i}", f"{text} ZX-{4400 + i}", metadata | ({"u": f"u{i % 2}"} if scoped else {})))
    return out


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a state folder."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


# --- damage ----------------------------------------------------------------------------------------------------------


def spot(chance: random.Random, data: bytes) -> tuple[int, int]:
    """A range, often of one byte or one page."""
    size = chance.choice([1, 1, 4, 64, PAGE, PAGE])
    at = chance.randrange(max(len(data), 1))
    return (at // PAGE * PAGE, PAGE) if size == PAGE else (at, size)


def bytes_mutated(chance: random.Random, data: bytes) -> bytes:
    """One change of the bytes."""
    out = bytearray(data)
    at, size = spot(chance, data)
    kind = chance.choice(
        [
            "flip",
            "flip",
            "flip",
            "set",
            "zero",
            "cut",
            "cut page",
            "delete",
            "insert",
            "pickle",
            "swap",
            "copy",
            "noise",
        ]
    )
    if kind == "flip" and out:
        for _ in range(chance.choice([1, 1, 1, 5, 50])):
            out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    elif kind == "set" and out:
        out[at] = chance.choice([0, 1, 0x0D, 0x7F, 0xFF, chance.randrange(256)])
    elif kind == "zero":
        out[at : at + size] = bytes(len(out[at : at + size]))
    elif kind == "cut":
        del out[chance.randrange(len(out) + 1) :]
    elif kind == "cut page":
        del out[at // PAGE * PAGE :]
    elif kind == "delete":
        del out[at : at + size]
    elif kind == "insert":
        out[at:at] = chance.randbytes(size)
    elif kind == "pickle":
        out[at : at + len(PICKLE)] = PICKLE
    elif kind == "noise":
        out[at : at + size] = chance.randbytes(len(out[at : at + size]))
    else:
        other, _ = spot(chance, data)
        one, two = bytes(out[at : at + size]), bytes(out[other : other + size])
        if len(one) == len(two):
            out[at : at + size] = two
            if kind == "swap":
                out[other : other + size] = one
    return bytes(out)


VALUES: list[Callable[[random.Random], Any]] = [
    lambda c: None,
    lambda c: c.choice([0, 1, -1, 2**31, 2**62, -(2**63), c.randrange(100)]),
    lambda c: c.choice([0.5, float("inf"), 1e300]),
    lambda c: c.choice(
        ["", "x", "[]", "{}", '{"n": 1}', "[1]", "null", "\x00", "[", '["a"]', "u1", '["u1"]', "é" * 50]
    ),
    lambda c: c.choice([b"", b"x", bytes(16), c.randbytes(c.choice([1, 2, 8, 16, 64])), PICKLE]),
]


def rows_mutated(chance: random.Random, path: Path) -> str:
    """One change through SQLite itself: the file stays well formed."""
    with suppress(*SqliteErrors), closing(sqlite3.connect(path, isolation_level=None)) as db:
        if chance.random() < 0.15:
            said = chance.choice(
                [
                    "DROP INDEX memory_scope", "DROP TABLE entity_vector", "DROP TABLE meta", "ALTER TABLE memory RENAME COLUMN text TO t",
                    "PRAGMA user_version=9", "CREATE TABLE other (a)", "ALTER TABLE memory ADD COLUMN more", "PRAGMA journal_mode=DELETE",
                    "CREATE TRIGGER t AFTER INSERT ON memory BEGIN DELETE FROM meta; END", "DELETE FROM meta", "DELETE FROM memory",
                ]
            )  # fmt: skip
            db.execute(said)
            return said
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if not tables:
            return "nothing"
        table = chance.choice([*tables, *[t for t in tables if t in ("memory", "meta")] * 2])
        columns = db.execute(f"PRAGMA table_info({table})").fetchall()
        keys = [c[1] for c in columns if c[5]]
        rows = db.execute(f"SELECT {', '.join(keys)} FROM {table}").fetchall()
        if not rows:
            return "nothing"
        row = chance.choice(rows)
        where = " AND ".join(f"{key} = ?" for key in keys)
        if chance.random() < 0.15:
            db.execute(f"DELETE FROM {table} WHERE {where}", row)
            return f"delete {row} from {table}"
        column = chance.choice(columns)[1]
        (old,) = db.execute(f"SELECT {column} FROM {table} WHERE {where}", row).fetchone() or (None,)
        value = chance.choice(VALUES)(chance)
        if old is not None and chance.random() < 0.6:
            value = near(chance, old)
        elif chance.random() < 0.3:
            value = db.execute(f"SELECT {column} FROM {table} ORDER BY random()").fetchone()[0]
        db.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {where}", (value, *row))
        return f"{table}.{column} of {row}: {old!r:.80} became {value!r:.80}"
    return "nothing"


def near(chance: random.Random, old: Any) -> Any:
    """A value of the same type, a little different."""
    if isinstance(old, bytes):
        return bytes_mutated(chance, old)
    if isinstance(old, str):
        at = chance.randrange(len(old) + 1)
        return old[:at] + chance.choice(["", "a", "0", "1", '"', "2"]) + old[at + 1 :]
    return old + chance.choice([-1, 1, 2, 64])


# --- the target ------------------------------------------------------------------------------------------------------


class Sidecars:
    """A store without tenants and one with two, each put back before an execution."""

    def __init__(self) -> None:
        self._loaded: list[str] = []
        sys.addaudithook(self._hear)
        # In memory where that can be: a disk would wait for each write.
        self._temporary = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        root = Path(self._temporary.name)
        self.cases = [
            Case(root / "plain", None, [{}]),
            Case(root / "tenants", "u", [{"u": "u0"}, {"u": "u1"}]),
        ]
        for case in self.cases:
            self._fill(case)
        self._files = _open_files()

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Nothing that a file says may be run."""
        if (
            event in ("pickle.find_class", "os.system", "subprocess.Popen", "os.exec", "marshal.loads")
            and self._loaded is not None
        ):
            self._loaded.append(f"{event} {arguments!r}")

    def _fill(self, case: Case) -> None:
        case.times += 1
        case.states.clear()
        made = memories(case.scope_key is not None)
        with case.open() as memory:
            memory.add(made[:50])
            case.states["earlier"] = files_of(case.state)
            memory.add(made[50:])
            for view in _views(memory, case):
                for query in QUERIES:
                    view.search(query, profile="mem0", now=NOW)
                    view.search(query, k=2, record_usage=True, now=NOW)
                view.update(
                    "m4" if case.scope_key is None else f"m{4 + int(case.scopes.index(dict(view.scope)))}",
                    "Caroline left Oslo",
                )
                view.delete(["m7", "m8", "m9"])
            case.states["open"] = files_of(case.state)
        self._take(case)

    def _take(self, case: Case) -> None:
        """The state of a store that is whole, and its answers."""
        with case.open() as memory:
            if not memory.verify().ok:
                raise RuntimeError("the store to begin with is not whole")
            case.rows = _rows(memory)
            case.usage = memory.usage()
            for view in _views(memory, case):
                key = tuple(view.scope.items())
                for query in QUERIES:
                    for profile in PROFILES:
                        case.answers[key, query, profile] = _found(
                            view.search(query, k=100, profile=profile, now=NOW, record_usage=False)
                        )
        case.states["closed"] = files_of(case.state)

    def run(self, chance: random.Random, report: Report) -> None:
        """Put the state back, damage it, and ask."""
        case = chance.choice(self.cases)
        kind = chance.choices(["closed", "open", "earlier"], [8, 2, 1])[0]
        files = dict(case.states[kind])
        said = [kind]
        said.extend([self._damage(chance, case, files) for _ in range(chance.choice([1, 1, 1, 2, 4]))])
        self._put(case, files)
        if chance.random() < 0.35:
            said.append(rows_mutated(chance, case.state / "cache.sqlite3"))
        ledger = (
            files.get("ledger.sqlite3") != case.states["closed"].get("ledger.sqlite3") or "ledger.sqlite3-wal" in files
        )
        heard = len(self._loaded)
        try:
            self._ask(chance, case, report, ledger=ledger)
        except Exception as error:
            error.args = (f"{error}\ndamage: {said}",)
            raise
        finally:
            self._put(case, case.states["closed"])
        if len(self._loaded) > heard:
            raise Wrong(f"something was run\n{self._loaded[heard:]}: {said}")
        if report.executions % 100 == 99 and _open_files() > self._files + 10:
            raise Wrong(f"open files\n{self._files} at the start, {_open_files()} now")

    def _put(self, case: Case, files: dict[str, bytes]) -> None:
        state = case.state
        for path in state.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, data in files.items():
            (state / name).write_bytes(data)

    def _damage(self, chance: random.Random, case: Case, files: dict[str, bytes]) -> str:
        kind = chance.random()
        name = chance.choice([*sorted(files), "cache.sqlite3", "cache.sqlite3", "vectors.f32"])
        if kind < 0.04:
            files.pop(name, None)
            return f"no {name}"
        if kind < 0.08:
            made = chance.choice(
                ["cache.sqlite3-wal", "cache.sqlite3-shm", "cache.sqlite3-journal", "ledger.sqlite3-wal", "more.pkl"]
            )
            files[made] = chance.choice(
                [b"", PICKLE, chance.randbytes(100), chance.randbytes(40_000), files.get(name, b"")]
            )
            return f"{len(files[made])} bytes of {made}"
        if kind < 0.14:
            other = chance.choice(self.cases).states[chance.choice(["closed", "open", "earlier"])]
            files[name] = other.get(name, b"")
            return f"{name} of another store or time"
        before = files.get(name, b"")
        files[name] = bytes_mutated(chance, before)
        return f"{name}: {_difference(before, files[name])}"

    def _ask(self, chance: random.Random, case: Case, report: Report, *, ledger: bool) -> None:
        reads = chance.random() < 0.2
        try:
            memory = case.open(read_only=reads)
        except StoreError:
            report.counts["refused, read only" if reads else "refused"] += 1
            self._mended_by_hand(case, report)
            return
        told = False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                told = self._compare(chance, case, memory, ledger=ledger)
                if reads:
                    report.counts["read only"] += 1
                    return
                first = memory.verify()
                if not first.ok:
                    report.counts["shown by verify"] += 1
                    if not told and not ledger:
                        # Whatever verify shows must have been mended before an answer, or have touched none.
                        report.counts["shown by verify alone"] += 1
                    memory.sync()
                    again = memory.verify()
                    if not again.ok and not all("ledger" in p for p in again.problems):
                        raise Wrong(f"sync does not mend\n{first.problems[:3]}, then {again.problems[:3]}")
                    self._compare(chance, case, memory, ledger=ledger)
                if chance.random() < 0.02:
                    self._write(case, memory, ledger=ledger)
                    report.counts["written to"] += 1
            report.counts["answered"] += 1
        except StoreError as error:
            if not reads and "ledger" not in str(error):
                raise Wrong(f"not mended\n{error}") from error
            report.counts["error later, read only" if reads else "error later"] += 1
            memory.close()
            self._mended_by_hand(case, report)
        finally:
            memory.close()

    def _mended_by_hand(self, case: Case, report: Report) -> None:
        """What the messages say: without the file, all is made again."""
        for path in list(case.state.iterdir()):
            if path.name.startswith(("cache.sqlite3", "ledger.sqlite3")):
                path.unlink()
        with case.open() as memory:
            if not memory.verify().ok:
                raise Wrong(f"deleting the cache does not mend\n{memory.verify()}")
        report.counts["mended by hand"] += 1

    def _compare(self, chance: random.Random, case: Case, memory: HybridMemory, *, ledger: bool) -> bool:
        """Answers as they were. Whether something was said to be missing."""
        told = False
        for view in _views(memory, case):
            key = tuple(view.scope.items())
            rows = {i: r for i, r in case.rows.items() if all(r[1].get(k) == v for k, v in view.scope.items())}
            for query, profile in ((chance.choice(QUERIES), chance.choice(PROFILES)) for _ in range(2)):
                result = view.search(query, k=100, profile=profile, now=NOW, record_usage=False)
                expected = case.answers[key, query, profile]
                if result.trace.degraded:
                    told = True
                elif not _alike(_found(result), expected) and not (ledger and profile == "tipsy"):
                    raise Wrong(f"another answer: {profile}\n{query!r}: {_unlike(_found(result), expected)}")
            listed = {m.id: (m.text, m.metadata) for m in view.list()}
            if listed != rows and not told:
                raise Wrong(f"another list\n{_unlike(listed, rows)}")
            wanted = {i for i, r in rows.items() if r[1]["type"] == "fact"}
            if view.count({"type": "fact"}) != len(wanted) and not told:
                raise Wrong(f"another count\n{view.count({'type': 'fact'})}, expected {len(wanted)}")
            for found in view.get(chance.sample(sorted(rows), 3), embeddings=True):
                vector = memory.embedder.embed_documents([found.text])[0]
                if not told and (found.embedding is None or float(np.dot(vector, found.embedding)) < 1 - 1e-4):
                    raise Wrong(f"another vector\n{found.id}")
        if not ledger and memory.usage() != case.usage:
            raise Wrong(f"another usage\n{_unlike(memory.usage(), case.usage)}")
        return told

    def _write(self, case: Case, memory: HybridMemory, *, ledger: bool) -> None:
        """Writes on what was mended must reach Chroma as they were meant."""
        try:
            for view in _views(memory, case):
                mine = [i for i, r in case.rows.items() if all(r[1].get(k) == v for k, v in view.scope.items())]
                view.update(mine[0], metadata={"more": 1})
                view.add([Memory(f"extra-{mine[0]}", "an extra memory")])
            found = _rows(memory)
            report = memory.verify()
        finally:
            memory.close()
            memory.store.backend.close()
            self._fill(case)
        expected = {i: r for i, r in found.items() if not i.startswith("extra-")}
        for _, metadata in expected.values():
            metadata.pop("more", None)
        if expected != case.rows:
            raise Wrong(f"Chroma was written to wrongly\n{_unlike(expected, case.rows)}")
        if not report.ok and not ledger:
            raise Wrong(f"not whole after a write\n{report}")

    def close(self) -> None:
        """Remove the stores."""
        self._temporary.cleanup()


def _views(memory: HybridMemory, case: Case) -> Iterator[Any]:
    for scope in case.scopes:
        yield memory.scoped(**scope) if scope else memory


def _rows(memory: HybridMemory) -> dict[str, tuple[str, dict[str, Any]]]:
    """What Chroma holds."""
    got = memory.collection.get(include=["documents", "metadatas"])
    return {i: (d, dict(m or {})) for i, d, m in zip(got["ids"], got["documents"], got["metadatas"], strict=True)}


def _found(result: Any) -> dict[str, float]:
    return {hit.memory.id: hit.score for hit in result.hits}


def _alike(one: dict[str, float], other: dict[str, float]) -> bool:
    return one.keys() == other.keys() and all(abs(one[i] - other[i]) < CLOSE for i in one)


def _unlike(one: dict[str, Any], other: dict[str, Any]) -> str:
    parts = [f"{i}: {one.get(i)!r}, expected {other.get(i)!r}" for i in {**one, **other} if one.get(i) != other.get(i)]
    return "; ".join(parts[:3])


def _difference(before: bytes, after: bytes) -> str:
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    return f"{len(before)} bytes became {len(after)}, from {at} on {before[at : at + 12]!r} → {after[at : at + 12]!r}"


def _open_files() -> int:
    """Files of ours that are open; Chroma's engine keeps its own as long as the process lives."""
    folder = Path("/proc/self/fd")
    names = [str(entry.readlink()) for entry in folder.iterdir() if entry.exists()] if folder.is_dir() else []
    return sum("cache.sqlite3" in name or "ledger.sqlite3" in name or "vectors.f32" in name for name in names)
