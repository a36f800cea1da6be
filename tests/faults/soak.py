"""Every public call from several threads on one store on disk; afterwards everything is compared with a plain model.

A memory of its own belongs to one worker, which knows what it must be; the shared ones are written by all, and must end as one of
the workers left them; the counted ones are never written, and their usage must be exact.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from memhybrid import HybridMemory, Memory
from memhybrid.concurrency import MAX_THREADS
from memhybrid.embedders import HashEmbedder
from memhybrid.view import MemoryView
from tests.conftest import make_memory

TENANTS = ("ada", "bob", "chen", "dora")
WORDS = [f"{a}{b}" for a in ("tea", "oak", "sun", "ice", "fig") for b in ("house", "road", "song", "light", "bird")]
NAMES = ("Joanna", "Melanie", "Caroline", "Nate")
PROFILES = ("balanced", "bm25", "semantic", "mem0", "tipsy", "best")
COUNTED = 10
SHARED = 6
MANY = 1_000
"""A search takes no more candidates by vectors than this."""
NOW = 1_700_000_000.0
SPARE_THREADS = 4
"""Beside the workers and our own pool: the watcher, and one for the analysis of a long write."""

Row = tuple[str, dict[str, Any]]
EMBEDDER = HashEmbedder(32)


@dataclass
class Outcome:
    """What was called, and everything that was wrong."""

    calls: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    hits: int = 0
    memories: int = 0
    compared: int = 0
    most_threads: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return json.dumps(
            {
                "calls": sum(self.calls.values()),
                "by_call": dict(sorted(self.calls.items())),
                "acknowledged_writes": self.acknowledged,
                "hits_looked_at": self.hits,
                "memories_at_the_end": self.memories,
                "answers_compared": self.compared,
                "most_threads": self.most_threads,
                "wrong": len(self.wrong),
            }
        )


class World:
    """What the workers share: the store, what each may find, and the tally."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.memory: HybridMemory = make_memory(folder / "store", embedder=EMBEDDER, scope_key="user")
        self.views: dict[str, MemoryView] = {tenant: self.memory.scoped(user=tenant) for tenant in TENANTS}
        self.outcome = Outcome()
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.begun: dict[str, set[str]] = defaultdict(set)
        """id → every text that it may have had."""
        self.left: dict[str, dict[int, Row | None]] = defaultdict(dict)
        """Shared id → worker → what that worker did to it last."""
        self.used: Counter[str] = Counter()
        self.raw_writes = 0
        self.raw_open = 0
        self.counted: dict[str, Row] = {}
        for tenant in TENANTS:
            for i in range(COUNTED):
                text = f"{tenant}mark counted {WORDS[i]} {NAMES[i % 4]}"
                self.counted[f"{tenant}-counted-{i}"] = (text, {"user": tenant, "kind": "counted", "n": i})
        self.memory.add([Memory(i, text, metadata) for i, (text, metadata) in self.counted.items()])
        for i, (text, _) in self.counted.items():
            self.begun[i].add(text)

    def complain(self, what: str) -> None:
        """Note something that must not be."""
        with self.lock:
            self.outcome.wrong.append(what)

    def may_have(self, identifier: str, text: str) -> None:
        """From now on a search may find this text."""
        with self.lock:
            self.begun[identifier].add(text)


class Worker:
    """One thread: random calls, each checked as far as it can be while others write."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        self.world = world
        self.number = number
        self.chance = random.Random(seed * 1_000 + number)
        self.own: dict[str, Row] = {}
        self.serial = 0
        self.doing = "nothing yet"
        self.steps: dict[str, tuple[int, Callable[[MemoryView, str], None]]] = {
            "add": (12, self.add),
            "aadd": (2, self.aadd),
            "add shared": (6, self.add_shared),
            "delete shared": (2, self.delete_shared),
            "update text": (5, self.update_text),
            "aupdate": (2, self.aupdate),
            "update metadata": (4, self.update_metadata),
            "delete": (4, self.delete),
            "adelete": (1, self.adelete),
            "delete where": (2, self.delete_where),
            "expire": (2, self.expire),
            "supersede": (2, self.supersede),
            "search": (14, self.search),
            "search own": (6, self.search_own),
            "search_many": (4, self.search_many),
            "asearch": (4, self.asearch),
            "asearch_many": (2, self.asearch_many),
            "record usage": (5, self.record_usage),
            "usage": (2, self.usage),
            "reset_usage": (1, self.reset_usage),
            "get": (5, self.get),
            "aget": (2, self.aget),
            "list": (3, self.list),
            "count": (4, self.count),
            "stats": (1, self.stats),
            "sync": (1, self.sync),
            "refresh": (1, self.refresh),
            "touched": (1, self.touched),
            "verify": (1, self.verify),
            "compact": (1, self.compact),
            "export": (1, self.export),
            "import_": (1, self.import_),
            "subscribe": (1, self.subscribe),
            "with_profile": (1, self.with_profile),
            "diagnose": (1, self.diagnose),
            "collection": (2, self.collection),
            "open again": (1, self.open_again),
        }

    def run(self) -> None:
        """Until told to stop; each kind once at first, so that a short run has them all."""
        kinds, weights = list(self.steps), [weight for weight, _ in self.steps.values()]
        todo = self.chance.sample(kinds, len(kinds))
        calls: Counter[str] = Counter()
        try:
            while not self.world.stop.is_set():
                kind = todo.pop() if todo else self.chance.choices(kinds, weights)[0]
                tenant = self.chance.choice(TENANTS)
                self.doing = kind
                self.steps[kind][1](self.world.views[tenant], tenant)
                calls[kind] += 1
        except BaseException:  # noqa: BLE001 - reported with all the others
            self.world.complain(f"worker {self.number}, {self.doing}: {traceback.format_exc()[-1500:]}")
            self.world.stop.set()
        self.doing = "done"
        with self.world.lock:
            self.world.outcome.calls.update(calls)

    # --- writes ------------------------------------------------------------------------------------------------------

    def _row(self, tenant: str) -> tuple[str, Row]:
        self.serial += 1
        identifier = f"{tenant}-w{self.number}-{self.serial}"
        return identifier, (self._text(tenant), {"user": tenant, "kind": "own", "batch": self.chance.randrange(8)})

    def _text(self, tenant: str) -> str:
        self.serial += 1
        words = " ".join(self.chance.choices(WORDS, k=5))
        return f"{tenant}mark {words} {self.chance.choice(NAMES)} only{self.number}x{self.serial}"

    def _some(self, tenant: str, most: int = 1) -> list[str]:
        known = [i for i, (_, metadata) in self.own.items() if metadata["user"] == tenant]
        return self.chance.sample(known, min(len(known), most))

    def _acknowledged(self, writes: int = 1) -> None:
        with self.world.lock:
            self.world.outcome.acknowledged += writes

    def _batch(self, tenant: str) -> dict[str, Row]:
        rows = dict(self._row(tenant) for _ in range(self.chance.choice([1, 1, 1, 4, 20])))
        for identifier, (text, _) in rows.items():
            self.world.may_have(identifier, text)
        return rows

    def add(self, view: MemoryView, tenant: str) -> None:
        rows = self._batch(tenant)
        given: list[Any] = [Memory(i, text, metadata) for i, (text, metadata) in rows.items()]
        target = self.world.memory if self.chance.random() < 0.5 else view
        self._same(target.add(given), list(rows))
        self.own.update(rows)
        self._acknowledged(len(rows))

    def aadd(self, view: MemoryView, tenant: str) -> None:
        rows = self._batch(tenant)
        asyncio.run(view.aadd([Memory(i, text, metadata) for i, (text, metadata) in rows.items()]))
        self.own.update(rows)
        self._acknowledged(len(rows))

    def add_shared(self, view: MemoryView, tenant: str) -> None:
        identifier = f"{tenant}-shared-{self.chance.randrange(SHARED)}"
        row = (self._text(tenant), {"user": tenant, "kind": "shared", "by": self.number})
        self.world.may_have(identifier, row[0])
        view.add(Memory(identifier, *row))
        self.world.left[identifier][self.number] = row
        self._acknowledged()

    def delete_shared(self, view: MemoryView, tenant: str) -> None:
        identifier = f"{tenant}-shared-{self.chance.randrange(SHARED)}"
        view.delete(identifier)
        self.world.left[identifier][self.number] = None
        self._acknowledged()

    def update_text(self, view: MemoryView, tenant: str) -> None:
        for identifier in self._some(tenant):
            text = self._text(tenant)
            self.world.may_have(identifier, text)
            view.update(identifier, text)
            self.own[identifier] = (text, self.own[identifier][1])
            self._acknowledged()

    def aupdate(self, view: MemoryView, tenant: str) -> None:
        for identifier in self._some(tenant):
            text = self._text(tenant)
            self.world.may_have(identifier, text)
            asyncio.run(view.aupdate(identifier, text, {"seen": True}))
            self.own[identifier] = (text, {**self.own[identifier][1], "seen": True})
            self._acknowledged()

    def update_metadata(self, view: MemoryView, tenant: str) -> None:
        for identifier in self._some(tenant):
            text, metadata = self.own[identifier]
            change: dict[str, Any] = {"importance": self.chance.randrange(10) / 8, "seen": None}
            view.update(identifier, metadata=change)
            kept = {k: v for k, v in metadata.items() if k != "seen"}
            self.own[identifier] = (text, {**kept, "importance": change["importance"]})
            self._acknowledged()

    def delete(self, view: MemoryView, tenant: str) -> None:
        gone = self._some(tenant, 3)
        if gone:
            self._same(view.delete(gone), len(gone))
            self._forget(gone)
            self._same(view.get(gone), [])

    def adelete(self, view: MemoryView, tenant: str) -> None:
        gone = self._some(tenant, 3)
        if gone:
            self._same(asyncio.run(view.adelete([*gone, "nowhere"])), len(gone))
            self._forget(gone)

    def delete_where(self, view: MemoryView, tenant: str) -> None:
        batch = self.chance.randrange(8)
        gone = [i for i, (_, m) in self.own.items() if m["user"] == tenant and m["batch"] == batch]
        mark = f"w{self.number}b{batch}"
        for identifier in gone[:5]:
            view.update(identifier, metadata={"mark": mark})
        self._same(view.delete(where={"$and": [{"batch": batch}, {"mark": mark}]}), len(gone[:5]))
        self._forget(gone[:5])

    def _forget(self, gone: list[str]) -> None:
        for identifier in gone:
            del self.own[identifier]
        self._acknowledged(len(gone))

    def expire(self, view: MemoryView, tenant: str) -> None:
        for identifier in self._some(tenant):
            view.expire(identifier, NOW)
            found = view.get(identifier)[0]
            text, metadata = self.own[identifier]
            self.own[identifier] = (text, {**metadata, "expires_at": found.metadata["expires_at"]})
            self._acknowledged()
            self._absent(view, identifier)

    def supersede(self, view: MemoryView, tenant: str) -> None:
        pair = self._some(tenant, 2)
        if len(pair) == 2:
            view.supersede(pair[0], pair[1])
            text, metadata = self.own[pair[0]]
            self.own[pair[0]] = (text, {**metadata, "superseded_by": pair[1]})
            self._acknowledged()
            self._absent(view, pair[0])

    def _absent(self, view: MemoryView, identifier: str) -> None:
        """An outdated memory comes only where it is asked for."""
        unique = self.own[identifier][0].rsplit(" ", 1)[1]
        self._same(view.search(unique, profile="bm25").ids, [])
        self._same(view.search(unique, profile="bm25", include_outdated=True).ids, [identifier])

    def collection(self, view: MemoryView, tenant: str) -> None:
        """As a stock store writes: through the observed collection."""
        identifier, (text, metadata) = self._row(tenant)
        self.world.may_have(identifier, text)
        with self.world.lock:
            self.world.raw_open += 1
            self.world.raw_writes += 1
        try:
            self.world.memory.collection.upsert(
                ids=[identifier],
                documents=[text],
                metadatas=[metadata],  # pyright: ignore[reportArgumentType]
                embeddings=EMBEDDER.embed_documents([text]),
            )
        finally:
            with self.world.lock:
                self.world.raw_open -= 1
        self.own[identifier] = (text, metadata)
        self._acknowledged()
        self._same([m.id for m in view.get(identifier)], [identifier])

    def import_(self, view: MemoryView, tenant: str) -> None:
        """A file of memories that are this worker's alone."""
        rows = self._batch(tenant)
        path = self.world.folder / f"import-{self.number}.jsonl"
        lines: list[dict[str, Any]] = [{"format": "memhybrid-export", "version": 1}]
        lines += [{"id": i, "text": t, "metadata": m, "embedding": None} for i, (t, m) in rows.items()]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        self._same(self.world.memory.import_(path), len(rows))
        self.own.update(rows)
        self._acknowledged(len(rows))

    # --- searches ----------------------------------------------------------------------------------------------------

    def _query(self) -> str:
        return " ".join([*self.chance.choices(WORDS, k=2), self.chance.choice(NAMES)])

    def _look_at(self, result: Any, tenant: str) -> None:
        """Only this tenant's memories, each once, each with a text that it had at some time."""
        ids = result.ids
        if len(set(ids)) != len(ids):
            self.world.complain(f"{self.doing}: a memory twice: {ids}")
        for hit in result.hits:
            self._look_at_memory(hit.memory, tenant)
        if result.trace.degraded:
            self.world.complain(f"{self.doing}: degraded: {result.trace.degraded}")
        with self.world.lock:
            self.world.outcome.hits += len(ids)

    def _look_at_memory(self, memory: Memory, tenant: str) -> None:
        identifier = memory.id or ""
        if memory.metadata.get("user") != tenant or not memory.text.startswith(f"{tenant}mark "):
            self.world.complain(f"{self.doing}: {identifier} of another tenant was given to {tenant}")
        with self.world.lock:
            known = memory.text in self.world.begun[identifier]
        if not known:
            self.world.complain(f"{self.doing}: {identifier} never had the text {memory.text!r}")

    def search(self, view: MemoryView, tenant: str) -> None:
        profile = self.chance.choice(PROFILES)
        if self.chance.random() < 0.3:
            where: Any = {"user": tenant}
            found = self.world.memory.search(self._query(), k=8, where=where, profile=profile, record_usage=False)
        else:
            where = self.chance.choice([None, {"kind": "own"}, {"batch": {"$gte": 4}}])
            found = view.search(
                self._query(), k=8, where=where, profile=profile, include_outdated=True, record_usage=False
            )
        self._look_at(found, tenant)

    def search_own(self, view: MemoryView, tenant: str) -> None:
        """What this worker wrote last is found by its own word, in that version."""
        for identifier in self._some(tenant):
            text = self.own[identifier][0]
            for profile in ("bm25", "semantic"):
                found = view.search(text, k=3, profile=profile, include_outdated=True)
                self._look_at(found, tenant)
                if identifier not in found.ids:
                    self.world.complain(f"{identifier} is not found by its own text in {profile}")

    def search_many(self, view: MemoryView, tenant: str) -> None:
        queries, profile = [self._query() for _ in range(4)], self.chance.choice(PROFILES)
        for found in view.search_many(queries, k=5, profile=profile, record_usage=False):
            self._look_at(found, tenant)

    def asearch(self, view: MemoryView, tenant: str) -> None:
        async def several() -> list[Any]:
            return await asyncio.gather(*(view.asearch(self._query(), k=5) for _ in range(6)))

        for found in asyncio.run(several()):
            self._look_at(found, tenant)

    def asearch_many(self, view: MemoryView, tenant: str) -> None:
        for found in asyncio.run(view.asearch_many([self._query(), self._query()], k=5)):
            self._look_at(found, tenant)

    def record_usage(self, view: MemoryView, tenant: str) -> None:
        found = view.search(self._query(), k=4, where={"kind": "counted"}, record_usage=True)
        self._look_at(found, tenant)
        with self.world.lock:
            self.world.used.update(found.ids)
        own = view.search(self._query(), k=4, where={"kind": "own"}, record_usage=True)
        self._look_at(own, tenant)

    def with_profile(self, view: MemoryView, tenant: str) -> None:
        other = self.world.memory.with_profile("mem0").scoped(user=tenant)
        self._look_at(other.search(self._query()), tenant)

    def diagnose(self, view: MemoryView, tenant: str) -> None:
        view.diagnose([self._query(), self._query()], rounds=1, k=3)

    # --- other reads and upkeep --------------------------------------------------------------------------------------

    def usage(self, view: MemoryView, tenant: str) -> None:
        self.world.memory.usage(list(self.world.counted)[:5])
        self.world.memory.usage()

    def reset_usage(self, view: MemoryView, tenant: str) -> None:
        self.world.memory.reset_usage(self._some(tenant, 3))

    def get(self, view: MemoryView, tenant: str) -> None:
        asked = self._some(tenant, 4)
        found = view.get([*asked, "nowhere"], embeddings=True)
        self._as_written(found, asked)
        for memory in found:
            vector = np.asarray(memory.embedding, dtype=np.float32)
            if not np.allclose(vector, EMBEDDER.embed_documents([memory.text])[0], atol=1e-6):
                self.world.complain(f"{memory.id} has the vector of another text")
        other = next(t for t in TENANTS if t != tenant)
        self._same(view.get([f"{other}-counted-0"]), [])

    def aget(self, view: MemoryView, tenant: str) -> None:
        asked = self._some(tenant, 4)
        self._as_written(asyncio.run(view.aget(asked)), asked)

    def _as_written(self, found: list[Memory], asked: list[str]) -> None:
        self._same([(m.id, m.text, dict(m.metadata)) for m in found], [(i, *self.own[i]) for i in asked])

    def list(self, view: MemoryView, tenant: str) -> None:
        order = self.chance.choice([None, "batch", "-importance"])
        for memory in view.list(order_by=order, limit=50, include_outdated=False):
            self._look_at_memory(memory, tenant)
        mine = view.list(where={"batch": 3})
        known = {i for i, (_, m) in self.own.items() if m["user"] == tenant and m["batch"] == 3}
        prefix = f"{tenant}-w{self.number}-"
        self._same({m.id for m in mine if (m.id or "").startswith(prefix)}, known)

    def count(self, view: MemoryView, tenant: str) -> None:
        self._same(view.count({"kind": "counted"}), COUNTED)
        self._same(self.world.memory.count({"$and": [{"user": tenant}, {"kind": "counted"}]}), COUNTED)

    def stats(self, view: MemoryView, tenant: str) -> None:
        stats = self.world.memory.stats()
        self._same((stats["partitions"], stats["without_scope"]), (len(TENANTS), 0))

    def sync(self, view: MemoryView, tenant: str) -> None:
        self.world.memory.sync()

    def refresh(self, view: MemoryView, tenant: str) -> None:
        self.world.memory.refresh()

    def touched(self, view: MemoryView, tenant: str) -> None:
        asked = self._some(tenant, 5)
        report = self.world.memory.touched(asked)
        self._same((report.changed, report.unchanged), (0, len(asked)))

    def verify(self, view: MemoryView, tenant: str) -> None:
        """Clean in the middle of it all, unless somebody wrote past us meanwhile, or counts what is just being deleted."""
        with self.world.lock:
            before, quiet = self.world.raw_writes, not self.world.raw_open
        report = self.world.memory.verify()
        with self.world.lock:
            quiet = quiet and before == self.world.raw_writes
        problems = [p for p in report.problems if "usage ledger" not in p]
        if quiet and problems:
            self.world.complain(f"verify under load: {problems[:3]}")

    def compact(self, view: MemoryView, tenant: str) -> None:
        self.world.memory.compact()

    def export(self, view: MemoryView, tenant: str) -> None:
        path = self.world.folder / f"export-{self.number}.jsonl"
        number = self.world.memory.export(path)
        self._same(sum(1 for _ in path.open(encoding="utf-8")), number + 1)

    def subscribe(self, view: MemoryView, tenant: str) -> None:
        heard: set[str] = set()
        end = self.world.memory.subscribe(lambda event: heard.update(m.id or "" for m in event.put))
        known = set(self.own)
        self.add(view, tenant)
        end()
        self._same(set(self.own) - known - heard, set())

    def open_again(self, view: MemoryView, tenant: str) -> None:
        with make_memory(self.world.folder / "store", embedder=EMBEDDER, scope_key="user") as other:
            self._look_at(other.scoped(user=tenant).search(self._query()), tenant)

    def _same(self, got: Any, expected: Any) -> None:
        if got != expected:
            self.world.complain(f"worker {self.number}, {self.doing}: got {got!r:.500}, expected {expected!r:.500}")


# --- afterwards ------------------------------------------------------------------------------------------------------


def model_of(world: World, workers: list[Worker]) -> dict[str, Row]:
    """What every acknowledged write together must have left; of a shared memory, the version that is there if one may be."""
    model = dict(world.counted)
    for worker in workers:
        model.update(worker.own)
    present = {i: m for tenant in TENANTS for m in world.views[tenant].list() if (i := m.id or "")}
    for identifier, last in world.left.items():
        found = present.get(identifier)
        row = None if found is None else (found.text, dict(found.metadata))
        if row not in last.values():
            world.complain(f"{identifier}: is {row!r}, which no worker left")
        if row is not None:
            model[identifier] = row
    return model


def compare(world: World, model: dict[str, Row], queries: int = 12) -> None:
    """Contents, counts, and the answers of six profiles against a store filled one after the other, and against plain loops."""
    outcome = world.outcome
    for tenant in TENANTS:
        rows = {i: row for i, row in model.items() if row[1]["user"] == tenant}
        listed = {m.id or "": (m.text, dict(m.metadata)) for m in world.views[tenant].list()}
        for identifier in rows.keys() | listed.keys():
            if rows.get(identifier) != listed.get(identifier):
                world.complain(f"{identifier}: acknowledged {rows.get(identifier)!r}, found {listed.get(identifier)!r}")
    usage = world.memory.usage()
    for identifier in world.counted:
        count = usage[identifier].count if identifier in usage else 0
        if count != world.used[identifier]:
            world.complain(f"{identifier}: counted {world.used[identifier]} times, the ledger says {count}")
    outcome.memories = len(model)
    with make_memory(embedder=EMBEDDER, scope_key="user") as fresh:
        fresh.add([Memory(i, text, metadata) for i, (text, metadata) in model.items()])
        fresh.store.ledger.set(usage)
        chance = random.Random(1)
        for tenant in TENANTS:
            view, other = world.views[tenant], fresh.scoped(user=tenant)
            rows = {i: row for i, row in model.items() if row[1]["user"] == tenant}
            for _ in range(queries):
                query = " ".join([*chance.choices(WORDS, k=2), chance.choice(NAMES)])
                for profile in PROFILES:
                    options: dict[str, Any] = {"k": 10, "profile": profile, "now": NOW, "record_usage": False}
                    one, two = view.search(query, **options), other.search(query, **options)
                    outcome.compared += 1
                    scores = [[h.score for h in r.hits] for r in (one, two)]
                    if one.ids != two.ids or not np.allclose(*scores, atol=1e-6):
                        world.complain(
                            f"{tenant} {profile} {query!r}: {one.ids} {scores[0]}, fresh {two.ids} {scores[1]}"
                        )
                _plain(world, view, rows, query)


def _plain(world: World, view: MemoryView, rows: dict[str, Row], query: str) -> None:
    """Keywords by looking into every text, vectors by a product with each."""
    asked = set(query.casefold().split())
    with_word = {i for i, (text, _) in rows.items() if asked & set(text.casefold().split())}
    found = view.search(query, k=len(rows) or 1, profile="bm25", include_outdated=True)
    if set(found.ids) != with_word:
        world.complain(f"bm25 {query!r}: {set(found.ids) ^ with_word} differ from a look into every text")
    vector = EMBEDDER.embed_query([query])[0]
    cosines = dict(zip(rows, (EMBEDDER.embed_documents([t for t, _ in rows.values()]) @ vector).tolist(), strict=True))
    near = view.search(query, k=MANY, profile="semantic", include_outdated=True)
    for hit in near.hits:
        if abs(hit.details["semantic"].raw - cosines[hit.memory.id or ""]) > 1e-5:
            world.complain(f"semantic {query!r}: {hit.memory.id} has not the cosine of its text")
    farthest = min((hit.details["semantic"].raw for hit in near.hits), default=0.0)
    left_out = {i for i in cosines.keys() - set(near.ids) if cosines[i] > farthest + 1e-5}
    if len(near.ids) != min(len(rows), MANY) or left_out:
        world.complain(f"semantic {query!r}: {len(near.ids)} of {len(rows)}, nearer ones left out: {left_out}")


def run(folder: Path, seconds: float, *, threads: int = 8, seed: int = 1, patience: float = 60.0) -> Outcome:
    """Let the workers loose, wait for them, and compare. A worker that does not come back in time is a deadlock."""
    world = World(folder)
    outcome = world.outcome
    before = threading.active_count()
    workers = [Worker(world, number, seed) for number in range(threads)]
    running = [threading.Thread(target=worker.run, daemon=True, name=f"soak-{worker.number}") for worker in workers]
    for thread in running:
        thread.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until and not world.stop.is_set():
        outcome.most_threads = max(outcome.most_threads, threading.active_count())
        time.sleep(0.01)
    world.stop.set()
    until = time.monotonic() + patience
    for thread, worker in zip(running, workers, strict=True):
        thread.join(max(until - time.monotonic(), 0.0))
        if thread.is_alive():
            frame = sys._current_frames().get(thread.ident or 0)
            stack = "".join(traceback.format_stack(frame)[-8:]) if frame else ""
            world.complain(f"worker {worker.number} is stuck in {worker.doing}:\n{stack}")
    if any(thread.is_alive() for thread in running):
        return outcome
    if outcome.most_threads > before + threads + MAX_THREADS + SPARE_THREADS:
        world.complain(f"{outcome.most_threads} threads at once, {before} before the {threads} workers")
    compare(world, model_of(world, workers))
    outcome.wrong.extend(f"verify: {p}" for p in world.memory.verify().problems)
    world.memory.close()
    with suppress(OSError):
        for path in folder.glob("*port-*.jsonl"):
            path.unlink()
    again = make_memory(folder / "store", embedder=EMBEDDER, scope_key="user")
    outcome.wrong.extend(f"verify after reopening: {p}" for p in again.verify().problems)
    if again.stats()["memories"] != outcome.memories:
        outcome.wrong.append(f"{again.stats()['memories']} memories after reopening, {outcome.memories} before")
    again.close()
    return outcome
