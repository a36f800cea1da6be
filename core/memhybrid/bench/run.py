"""The measurements. Every peer gets the same texts, vectors and questions, in the same process, one after the other."""

from __future__ import annotations

import gc
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from memhybrid.bench.data import Corpus, GivenVectors, Question, make_corpus, make_questions
from memhybrid.errors import MissingExtraError
from memhybrid.indexes.bm25 import Bm25Params
from memhybrid.memory import HybridMemory
from memhybrid.profiles import Profile
from memhybrid.records import Memory

QUESTIONS = 60
SLOW_QUESTIONS = 6
SINGLE_WRITES = 40
LATE_SIZE = 3_000
BATCH = 5_000
POOL = 60
Say = Callable[[str], None]
PACKAGES = ("memhybrid", "chromadb", "numpy", "rank-bm25", "bm25s", "tantivy", "langchain-classic", "llama-index-core")


@dataclass
class BenchReport:
    """Medians in milliseconds, and the ratios that matter, each key naming what is divided by what."""

    size: int
    tenants: int
    medians_ms: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    bytes_a_memory: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def ratio(self, mine: str, theirs: str) -> None:
        """Note mine/theirs, where both were measured."""
        if mine in self.medians_ms and self.medians_ms.get(theirs):
            self.ratios[f"{mine}/{theirs}"] = self.medians_ms[mine] / self.medians_ms[theirs]

    def as_dict(self) -> dict[str, Any]:
        """As `--json` writes it."""
        return {
            "machine": f"{platform.machine()} {platform.system()}, {_cores()} cores, Python {platform.python_version()}",
            "versions": _versions(),
            "size": self.size,
            "tenants": self.tenants,
            "ratios": self.ratios,
            "medians_ms": self.medians_ms,
            "bytes_a_memory": self.bytes_a_memory,
            "notes": self.notes,
        }


def _cores() -> int:
    import os

    return os.cpu_count() or 1


def _versions() -> dict[str, str]:
    out: dict[str, str] = {}
    for package in PACKAGES:
        try:
            out[package] = version(package)
        except PackageNotFoundError:
            out[package] = "not installed"
    return out


def median_ms(calls: Sequence[Callable[[], object]], *, warm: int = 3) -> float:
    """The median of one run of each call, after a few that do not count."""
    for call in calls[:warm]:
        call()
    times: list[float] = []
    for call in calls:
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return float(np.median(times)) * 1000.0


def run_bench(
    size: int = 20_000, tenants: int = 20, *, say: Say = print, peers: bool = True, folder: Path | None = None
) -> BenchReport:
    """All measurements for a corpus of `size` memories of `tenants` tenants, in a temporary folder."""
    report = BenchReport(size, tenants)
    corpus = make_corpus(size, tenants)
    questions = make_questions(corpus, QUESTIONS)
    embedder = GivenVectors(corpus, questions)
    root = Path(tempfile.mkdtemp(prefix="memhybrid-bench-")) if folder is None else folder
    try:
        client, collection = _chroma(root / "peer", corpus, report, say)
        _scoped(root / "scoped", corpus, questions, embedder, collection, report, say)
        _unscoped(root / "unscoped", corpus, questions, embedder, collection, report, say)
        _keywords(corpus, questions, report, say, peers=peers)
        if peers:
            _frameworks(corpus, questions, embedder, client, collection, report, say)
        _scoring_step(report, say)
        _late_interaction(report, say)
    finally:
        if folder is None:
            shutil.rmtree(root, ignore_errors=True)
    for mine, theirs in (
        ("hybrid_scoped", "chroma_filtered"),
        ("hybrid_unscoped", "chroma_unfiltered"),
        ("bm25", "rank_bm25"),
        ("bm25", "bm25s"),
        ("bm25", "tantivy"),
        ("hybrid_unscoped", "ensemble"),
        ("hybrid_unscoped", "query_fusion"),
        ("write_one", "chroma_upsert_one"),
        ("open_and_search", "rebuild"),
        ("additive_fusion", "score_and_rank"),
    ):
        report.ratio(mine, theirs)
    medians = report.medians_ms
    # Throughput: rows a second of ours over Chroma's own.
    report.ratios["bulk/chroma_bulk"] = medians["chroma_bulk"] / medians["bulk"]
    report.ratios["first_unscoped_s"] = medians["first_unscoped"] / 1000.0
    return report


def _chroma(folder: Path, corpus: Corpus, report: BenchReport, say: Say) -> tuple[Any, Any]:
    import chromadb

    say("Chroma alone: bulk load")
    client = chromadb.PersistentClient(str(folder))
    collection = client.create_collection("peer", embedding_function=None, configuration={"hnsw": {"space": "cosine"}})
    started = time.perf_counter()
    for s in range(0, len(corpus.texts), BATCH):
        stop = min(s + BATCH, len(corpus.texts))
        collection.upsert(
            ids=[f"m{i}" for i in range(s, stop)],
            documents=corpus.texts[s:stop],
            metadatas=corpus.metadatas[s:stop],  # type: ignore[arg-type]
            embeddings=corpus.vectors[s:stop],
        )
    report.medians_ms["chroma_bulk"] = (time.perf_counter() - started) * 1000.0
    return client, collection


def _scoped(
    folder: Path,
    corpus: Corpus,
    questions: list[Question],
    embedder: Any,
    collection: Any,
    report: BenchReport,
    say: Say,
) -> None:
    say("memhybrid, one scope a tenant: bulk load")
    options: dict[str, Any] = {"embedder": embedder, "scope_key": "user_id", "analyzer": "fast"}
    memory = HybridMemory.open(folder, **options)
    memories = corpus.memories()
    started = time.perf_counter()
    memory.add(memories)
    report.medians_ms["bulk"] = (time.perf_counter() - started) * 1000.0
    del memories
    say("scoped search beside Chroma's filtered query")

    def search(question: Question) -> Callable[[], object]:
        view = memory.scoped(user_id=question.tenant)
        return lambda: view.search(question.text, 10)

    def filtered(question: Question) -> Callable[[], object]:
        return lambda: collection.query(
            query_embeddings=[question.vector], n_results=POOL, where={"user_id": question.tenant}
        )

    for question in questions:
        search(question)()
    report.medians_ms["hybrid_scoped"] = median_ms([search(q) for q in questions])
    report.medians_ms["chroma_filtered"] = median_ms([filtered(q) for q in questions])
    say("single writes")
    _single_writes(memory, corpus, collection, report)
    memory.close()
    say("opening an unchanged store, and rebuilding it")
    gc.collect()
    first = questions[0]

    def open_and_search() -> None:
        with HybridMemory.open(folder, **options) as opened:
            opened.scoped(user_id=first.tenant).search(first.text, 10)

    report.medians_ms["open_and_search"] = median_ms([open_and_search] * 5, warm=1)
    shutil.rmtree(folder / "memhybrid")
    started = time.perf_counter()
    open_and_search()
    report.medians_ms["rebuild"] = (time.perf_counter() - started) * 1000.0


def _single_writes(memory: HybridMemory, corpus: Corpus, collection: Any, report: BenchReport) -> None:
    def ours(i: int) -> Callable[[], object]:
        made = Memory(f"one{i}", corpus.texts[i], corpus.metadatas[i], corpus.vectors[i])
        return lambda: memory.add([made])

    def theirs(i: int) -> Callable[[], object]:
        return lambda: collection.upsert(
            ids=[f"one{i}"],
            documents=[corpus.texts[i]],
            metadatas=[corpus.metadatas[i]],
            embeddings=corpus.vectors[i : i + 1],
        )

    # In turn, so that both meet the same state of the machine.
    mine: list[float] = []
    chroma: list[float] = []
    for i in range(SINGLE_WRITES):
        mine.append(median_ms([ours(i)], warm=0))
        chroma.append(median_ms([theirs(i)], warm=0))
    report.medians_ms["write_one"] = float(np.median(mine))
    report.medians_ms["chroma_upsert_one"] = float(np.median(chroma))
    collection.delete(ids=[f"one{i}" for i in range(SINGLE_WRITES)])


def _unscoped(
    folder: Path,
    corpus: Corpus,
    questions: list[Question],
    embedder: Any,
    collection: Any,
    report: BenchReport,
    say: Say,
) -> None:
    say("memhybrid without scopes, on Chroma's own collection")
    options: dict[str, Any] = {"embedder": embedder, "analyzer": "fast", "state_path": folder}
    HybridMemory.attach(collection, **options).count()
    gc.collect()
    started = time.perf_counter()
    memory = HybridMemory.attach(collection, **options)
    memory.search(questions[0].text, 10)
    report.medians_ms["first_unscoped"] = (time.perf_counter() - started) * 1000.0
    for question in questions:
        memory.search(question.text, 10)

    def unfiltered(question: Question) -> Callable[[], object]:
        return lambda: collection.query(query_embeddings=[question.vector], n_results=POOL)

    report.medians_ms["hybrid_unscoped"] = median_ms([lambda q=q: memory.search(q.text, 10) for q in questions])
    report.medians_ms["chroma_unfiltered"] = median_ms([unfiltered(q) for q in questions])
    sizes = memory.stats()["resident_bytes"]
    report.bytes_a_memory = {part: size / len(corpus.texts) for part, size in sizes.items()}
    view = memory.store.partitions.get("[]").view()
    terms = [memory.store.analyzer.analyze_query(q.text).terms for q in questions]
    parameters = Bm25Params()

    def keywords(query: tuple[str, ...]) -> Callable[[], object]:
        def call() -> list[str]:
            rows = view.lexical.top(query, POOL, parameters)
            order = view.order(rows, view.lexical.scores(query, rows, parameters))[:POOL]
            return [view.id(int(row)) for row in rows[order]]

        return call

    report.medians_ms["bm25"] = median_ms([keywords(t) for t in terms])
    memory.close()


def _keywords(corpus: Corpus, questions: list[Question], report: BenchReport, say: Say, *, peers: bool) -> None:
    from rank_bm25 import BM25Okapi

    say("rank_bm25, bm25s, tantivy")
    tokens = [text.split() for text in corpus.texts]
    okapi = BM25Okapi(tokens)
    report.medians_ms["rank_bm25"] = median_ms(
        [lambda q=q: np.argsort(-okapi.get_scores(q.text.split()))[:POOL] for q in questions[:SLOW_QUESTIONS]], warm=1
    )
    if not peers:
        return
    try:
        import bm25s

        index: Any = bm25s.BM25()
        index.index(tokens, show_progress=False)
        report.medians_ms["bm25s"] = median_ms(
            [lambda q=q: index.retrieve([q.text.split()], k=POOL, show_progress=False) for q in questions]
        )
    except ImportError:
        report.notes.append("bm25s is not installed")
    try:
        report.medians_ms["tantivy"] = _tantivy(corpus, questions)
    except ImportError:
        report.notes.append("tantivy is not installed")


def _tantivy(corpus: Corpus, questions: list[Question]) -> float:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=False)
    builder.add_integer_field("number", stored=True)
    index: Any = tantivy.Index(builder.build())
    writer = index.writer(heap_size=100_000_000, num_threads=1)
    for i, text in enumerate(corpus.texts):
        writer.add_document(tantivy.Document(body=text, number=i))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(text: str) -> list[int]:
        found = searcher.search(index.parse_query(text, ["body"]), POOL)
        return [searcher.doc(address)["number"][0] for _, address in found.hits]

    return median_ms([lambda q=q: search(q.text) for q in questions])


def _scoring_step(report: BenchReport, say: Say) -> None:
    """Scoring 60 candidates as Mem0 does, beside the loop over dictionaries that its document describes."""
    from memhybrid import fusion
    from memhybrid.bench.score_and_rank import score_and_rank

    say("the scoring step beside Mem0's score_and_rank")
    rng = np.random.default_rng(3)
    semantic, bm25, entity = rng.random(POOL), rng.random(POOL), rng.random(POOL) / 2
    ids = [f"m{i}" for i in range(POOL)]
    found = [{"id": i, "score": s} for i, s in zip(ids, semantic.tolist(), strict=True)]
    keyword = dict(zip(ids, bm25.tolist(), strict=True))
    boosts = dict(zip(ids, entity.tolist(), strict=True))

    def ours() -> object:
        fused = fusion.additive(semantic, bm25, entity, keyword_hit=True, boosted=True)
        return np.argsort(-fused.scores, kind="stable")[:10]

    report.medians_ms["additive_fusion"] = median_ms([ours] * 1000)
    report.medians_ms["score_and_rank"] = median_ms([lambda: score_and_rank(found, keyword, boosts, 0.1, 10)] * 1000)


def _late_interaction(report: BenchReport, say: Say) -> None:
    """The default with the packaged English model on one user's 3,000 memories, embedding the query included."""
    say("late interaction with the packaged model")
    corpus = make_corpus(LATE_SIZE, 1)
    questions = make_questions(corpus, QUESTIONS)
    try:
        memory = HybridMemory.open(None, scope_key="user_id")
    except MissingExtraError as error:
        report.notes.append(f"late interaction is not measured: {error}")
        return
    with memory:
        memory.add([Memory(f"m{i}", t, corpus.metadatas[i]) for i, t in enumerate(corpus.texts)])
        view = memory.scoped(user_id="u0")
        report.medians_ms["late_3000"] = median_ms([lambda q=q: view.search(q.text, 10) for q in questions])
        plain = Profile.balanced().replace(signals={**Profile.balanced().signals, "late": 0.0})
        report.medians_ms["without_late_3000"] = median_ms(
            [lambda q=q: view.search(q.text, 10, profile=plain) for q in questions]
        )
        kept = [
            t for t in memory.store.partitions.get(next(iter(memory.store.sidecar.scopes()))).tokens if t is not None
        ]
        report.bytes_a_memory["token_vectors"] = sum(map(len, kept)) / max(len(kept), 1)


def _frameworks(
    corpus: Corpus,
    questions: list[Question],
    embedder: Any,
    client: Any,
    collection: Any,
    report: BenchReport,
    say: Say,
) -> None:
    try:
        from memhybrid.evaluate.bench_peers import ensemble, query_fusion
    except ImportError as error:
        report.notes.append(f"the frameworks are not measured: {error}")
        return
    say("LangChain EnsembleRetriever")
    ask = ensemble(corpus.texts, client, "peer", embedder)
    report.medians_ms["ensemble"] = median_ms([lambda q=q: ask(q.text) for q in questions[:SLOW_QUESTIONS]], warm=1)
    say("LlamaIndex QueryFusionRetriever")
    fuse = query_fusion(corpus.texts, collection, embedder)
    report.medians_ms["query_fusion"] = median_ms([lambda q=q: fuse(q.text) for q in questions])
