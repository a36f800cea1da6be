"""Every operation in any order against a dict: what was written is found by every leg, what was deleted by none."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from memhybrid import HybridMemory, Memory
from memhybrid.embedders import HashEmbedder
from memhybrid.text import FastAnalyzer
from tests.conftest import make_memory
from tests.reports.helpers import raw_collection

WORDS = ["apple", "pear", "Joanna", "ZX-4471", "tea", "running", "ran", "咖啡", "it's", "the"]
texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join),
    st.sampled_from(["", "   ", "🎉", "a\x00b", "line\nbreak", "Ünïcode é", "x" * 300]),
)
values = st.one_of(
    st.sampled_from(["x", "y", ""]),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(10**9), 10**9).map(lambda n: n / 1000),  # Chroma rounds longer floats, see test_values
    st.booleans(),
    st.lists(st.sampled_from(["p", "q"]), min_size=1, max_size=2),
)
metadatas = st.dictionaries(st.sampled_from(["a", "b", "type"]), values, max_size=3)
ids = st.sampled_from([f"id{i}" for i in range(12)])
EMBEDDER = HashEmbedder(64)
ANALYZER = FastAnalyzer()

Row = tuple[str, dict[str, Any]]


def plain(metadata: dict[str, Any]) -> dict[str, Any]:
    """As it is stored: -0.0 is 0.0."""
    return {k: v + 0.0 if isinstance(v, float) else v for k, v in metadata.items()}


def exactly(row: Row) -> tuple[str, str]:
    """A row so that 1, 1.0 and True differ."""
    return row[0], repr(sorted(row[1].items()))


def bm25(model: dict[str, Row], query: str) -> dict[str, float]:
    """Lucene's BM25 of every memory with a query term, from the definition."""
    terms = {i: Counter(ANALYZER.analyze([text])[0].terms) for i, (text, _) in model.items()}
    average = sum(sum(c.values()) for c in terms.values()) / max(len(terms), 1)
    asked = ANALYZER.analyze_query(query).terms
    out: dict[str, float] = {}
    for i, counts in terms.items():
        score = 0.0
        for term in asked:
            tf = counts[term]
            if tf:
                df = sum(1 for c in terms.values() if c[term])
                idf = math.log(1 + (len(terms) - df + 0.5) / (df + 0.5))
                length = 1 - 0.75 + 0.75 * sum(counts.values()) / average
                score += idf * tf * 2.5 / (tf + 1.5 * length)
        if any(counts[t] for t in asked):
            out[i] = score
    return out


class Store(RuleBasedStateMachine):
    """A store in a folder, and what it must hold."""

    written = Bundle("written")

    @initialize()
    def start(self) -> None:
        """An empty store."""
        self.folder = Path(tempfile.mkdtemp())
        self.memory: HybridMemory = make_memory(self.folder)
        self.model: dict[str, Row] = {}

    def teardown(self) -> None:
        """The folder goes."""
        if hasattr(self, "folder"):
            self.memory.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    # --- writes ------------------------------------------------------------------------------------------------------

    @rule(target=written, rows=st.dictionaries(ids, st.tuples(texts, metadatas), min_size=1, max_size=4))
    def add(self, rows: dict[str, Row]) -> Any:
        """New and old ids in one call."""
        given = [Memory(i, text, metadata) for i, (text, metadata) in rows.items()]
        assert self.memory.add(given) == list(rows)
        self.model.update({i: (text, plain(metadata)) for i, (text, metadata) in rows.items()})
        return multiple(*rows)

    @rule(identifier=written, text=st.none() | texts, metadata=metadatas, drop=st.sets(st.sampled_from(["a", "b"])))
    def update(self, identifier: str, text: str | None, metadata: dict[str, Any], drop: set[str]) -> None:
        """Merge metadata, remove keys, change the text."""
        if identifier not in self.model:
            return
        changes = {**metadata, **dict.fromkeys(drop)}
        self.memory.update(identifier, text, changes)
        old_text, old = self.model[identifier]
        merged = {k: v for k, v in {**old, **plain(metadata)}.items() if k not in drop}
        self.model[identifier] = (old_text if text is None else text, merged)

    @rule(some=st.lists(consumes(written), max_size=3), extra=ids)
    def delete(self, some: list[str], extra: str) -> None:
        """Ids that exist, repeat or never did."""
        gone = {i for i in [*some, extra] if i in self.model}
        assert self.memory.delete([*some, extra]) == len(gone)
        for i in gone:
            del self.model[i]

    @rule(value=st.sampled_from(["x", True, 1]))
    def delete_by_filter(self, value: Any) -> None:
        """Everything with a value."""
        gone = [i for i, (_, m) in self.model.items() if type(m.get("a")) is type(value) and m["a"] == value]
        assert self.memory.delete(where={"a": value}) == len(gone)
        for i in gone:
            del self.model[i]

    # --- others ------------------------------------------------------------------------------------------------------

    @rule(target=written, identifier=ids, text=texts, metadata=metadatas, how=st.sampled_from(["raw", "observed"]))
    def write_on_the_collection(self, identifier: str, text: str, metadata: dict[str, Any], how: str) -> str:
        """Upsert as Chroma does it: metadata is merged."""
        collection = self.memory.collection if how == "observed" else raw_collection(self.folder, "memories")
        vectors = EMBEDDER.embed_documents([text])
        collection.upsert(ids=[identifier], documents=[text], metadatas=[metadata or None], embeddings=vectors)
        old = self.model.get(identifier, ("", {}))[1]
        self.model[identifier] = (text, {**old, **plain(metadata)})
        return identifier

    @rule(identifier=written, how=st.sampled_from(["raw", "observed"]))
    def delete_on_the_collection(self, identifier: str, how: str) -> None:
        """Without us."""
        collection = self.memory.collection if how == "observed" else raw_collection(self.folder, "memories")
        collection.delete(ids=[identifier])
        self.model.pop(identifier, None)

    @rule()
    def sync(self) -> None:
        """Sync finds nothing that the look before it did not follow."""
        self.memory.count()
        report = self.memory.sync()
        assert (report.changed, report.unchanged) == (0, len(self.model))

    @rule()
    def reopen(self) -> None:
        """From the folder."""
        self.memory.close()
        self.memory = make_memory(self.folder)

    @rule()
    def reopen_without_cache(self) -> None:
        """From Chroma alone."""
        self.memory.close()
        shutil.rmtree(self.folder / "memhybrid")
        self.memory = make_memory(self.folder)

    @rule()
    def compact(self) -> None:
        """Gives space back and changes nothing."""
        self.memory.compact()

    # --- reads -------------------------------------------------------------------------------------------------------

    @rule(some=st.lists(ids, max_size=5))
    def get(self, some: list[str]) -> None:
        """In the order asked for, once each."""
        expected = [i for i in dict.fromkeys(some) if i in self.model]
        got = self.memory.get(some)
        assert [m.id for m in got] == expected
        assert [exactly((m.text, dict(m.metadata))) for m in got] == [exactly(self.model[i]) for i in expected]

    @rule()
    def list_and_count(self) -> None:
        """All of them, exactly as they were written."""
        listed = {m.id: exactly((m.text, dict(m.metadata))) for m in self.memory.list()}
        assert listed == {i: exactly(row) for i, row in self.model.items()}
        assert self.memory.count() == len(self.model)
        expected = sum(1 for _, m in self.model.values() if m.get("type") == "x")
        assert self.memory.count({"type": "x"}) == expected

    @rule(query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join))
    def search(self, query: str) -> None:
        """Keywords by the definition of BM25, vectors by a scan."""
        expected = bm25(self.model, query)
        hits = self.memory.search(query, k=20, profile="bm25").hits
        assert {h.memory.id for h in hits} == set(expected)
        for hit in hits:
            assert math.isclose(hit.details["bm25"].raw, expected[hit.memory.id or ""], rel_tol=1e-9)
            assert exactly((hit.memory.text, dict(hit.memory.metadata))) == exactly(self.model[hit.memory.id or ""])
        near = self.memory.search(query, k=20, profile="semantic").hits
        assert len(near) == len(self.model)
        asked = EMBEDDER.embed_query([query])[0]
        for hit in near:
            cosine = float(EMBEDDER.embed_documents([hit.memory.text])[0] @ asked)
            assert math.isclose(hit.details["semantic"].raw, cosine, abs_tol=1e-5)
        order = [(-h.score, h.memory.id) for h in near]
        assert order == sorted(order)

    @rule(query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join))
    def answers_are_those_of_a_new_store(self, query: str) -> None:
        """Whatever the history: the same memories give the same hits and scores."""
        with make_memory() as fresh:
            fresh.add([Memory(i, text, metadata) for i, (text, metadata) in self.model.items()])
            for profile in ("balanced", "mem0", "tipsy"):
                one, two = (
                    m.search(query, k=6, profile=profile, now=1_700_000_000, record_usage=False)
                    for m in (self.memory, fresh)
                )
                assert one.ids == two.ids
                assert np.allclose([h.score for h in one.hits], [h.score for h in two.hits], atol=1e-6)
                assert one.trace.entities == two.trace.entities
                assert one.trace.pool == two.trace.pool

    @invariant()
    def verify_is_clean(self) -> None:
        """After every step."""
        if hasattr(self, "memory"):
            report = self.memory.verify()
            assert report.ok, str(report)
            assert report.memories == len(self.model)


Store.TestCase.settings = settings(
    max_examples=8, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStore = Store.TestCase
