"""What a search and a write cost as stores grow: many tenants, one large tenant, a budget, and a year of single writes.

python benchmarks/growth.py [--sizes 10000 100000 1000000] [--dimension 32] [--one-tenant 300000] [--adds 10000] [--json FILE]

Vectors are given and shorter than a model's, so that a million of them fit; the fast analyzer is used; imports are not timed.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memhybrid.bench.data import Corpus, GivenVectors, Question, make_corpus, make_questions
from memhybrid.bench.run import BenchReport
from memhybrid.memory import HybridMemory
from memhybrid.records import Memory

TENANT = 1_000
CHUNK = 20_000
QUESTIONS = 400
LARGE = (100, 1_000, 10_000, 30_000, 100_000, 300_000)


def options(corpus: Corpus, questions: list[Question]) -> dict[str, Any]:
    """How every store here is opened."""
    return {"embedder": GivenVectors(corpus, questions), "scope_key": "user_id", "analyzer": "fast"}


def times_ms(calls: Sequence[Callable[[], object]]) -> np.ndarray:
    """Each call's time."""
    out: list[float] = []
    for call in calls:
        started = time.perf_counter()
        call()
        out.append((time.perf_counter() - started) * 1000.0)
    return np.array(out)


def load(memory: HybridMemory, corpus: Corpus, start: int, stop: int, **same: Any) -> float:
    """Add some of the corpus; returns memories a second."""
    started = time.perf_counter()
    for s in range(start, stop, CHUNK):
        memory.add(
            [
                Memory(f"m{i}", corpus.texts[i], {**corpus.metadatas[i], **same}, corpus.vectors[i])
                for i in range(s, min(s + CHUNK, stop))
            ]
        )
    return (stop - start) / (time.perf_counter() - started)


def many_tenants(root: Path, size: int, dimension: int, out: dict[str, Any]) -> None:
    """Tenants of a thousand memories each: random tenants warm, then with a budget for a tenth of them."""
    corpus = make_corpus(size, size // TENANT, dimension=dimension)
    questions = make_questions(corpus, QUESTIONS)
    same = options(corpus, questions)
    folder = root / f"tenants{size}"
    with HybridMemory.open(folder, **same) as memory:
        rate = load(memory, corpus, 0, size)
    gc.collect()

    def search(memory: HybridMemory, question: Question) -> Callable[[], object]:
        return lambda: memory.scoped(user_id=question.tenant).search(question.text, 10)

    started = time.perf_counter()
    with HybridMemory.open(folder, **same) as memory:
        search(memory, questions[0])()
        opened = (time.perf_counter() - started) * 1000.0
        cold = times_ms([search(memory, q) for q in questions])
        warm = times_ms([search(memory, q) for q in questions])
        resident = sum(memory.stats()["resident_bytes"].values())
    tenants = len({q.tenant for q in questions})
    budget = max(int(resident / tenants * (size // TENANT) / 10), 1)
    with HybridMemory.open(folder, **same, memory_budget=budget) as memory:
        for question in questions:
            search(memory, question)()
        squeezed = times_ms([search(memory, q) for q in questions])
        kept = sum(memory.stats()["resident_bytes"].values())
    out[str(size)] = {
        "memories_a_second": rate,
        "open_and_first_search_ms": opened,
        "scoped_p50_ms": float(np.median(warm)),
        "scoped_p95_ms": float(np.percentile(warm, 95)),
        "first_search_of_a_tenant_p50_ms": float(np.median(cold)),
        "budget_of_a_tenth": {
            "budget_bytes": budget,
            "resident_bytes": kept,
            "p50_ms": float(np.median(squeezed)),
            "p95_ms": float(np.percentile(squeezed, 95)),
            "cold_share": float((squeezed > 3 * np.median(warm)).mean()),
        },
    }


def one_tenant(root: Path, size: int, dimension: int, out: dict[str, Any]) -> None:
    """One tenant from a hundred memories up."""
    corpus = make_corpus(size, 1, dimension=dimension)
    questions = make_questions(corpus, 100)
    with HybridMemory.open(root / "one", **options(corpus, questions)) as memory:
        have = 0
        view = memory.scoped(user_id="u0")
        for stop in [n for n in LARGE if n <= size]:
            load(memory, corpus, have, stop)
            have = stop
            calls = [lambda q=q: view.search(q.text, 10) for q in questions]
            times_ms(calls[:10])
            warm = times_ms(calls)
            out[str(stop)] = {"p50_ms": float(np.median(warm)), "p95_ms": float(np.percentile(warm, 95))}


def single_adds(root: Path, adds: int, dimension: int, out: dict[str, Any]) -> None:
    """One memory after the other, to one tenant; a search after every tenth, as an agent would."""
    corpus = make_corpus(adds, 1, dimension=dimension)
    questions = make_questions(corpus, 100)
    with HybridMemory.open(root / "adds", **options(corpus, questions)) as memory:
        view = memory.scoped(user_id="u0")
        took: list[float] = []
        for i in range(adds):
            made = Memory(f"m{i}", corpus.texts[i], corpus.metadatas[i], corpus.vectors[i])
            took.append(float(times_ms([lambda made=made: memory.add([made])])[0]))
            if i % 10 == 0:
                view.search(questions[i % 100].text, 10)
    part = max(adds // 10, 1)
    first, last = float(np.median(took[:part])), float(np.median(took[-part:]))
    out.update({"adds": adds, "first_tenth_p50_ms": first, "last_tenth_p50_ms": last, "last/first": last / first})


def main() -> None:
    """Each part that was asked for, and one JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--dimension", type=int, default=32)
    parser.add_argument("--one-tenant", type=int, default=300_000)
    parser.add_argument("--adds", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    about = BenchReport(0, 0).as_dict()
    result: dict[str, Any] = {
        "machine": about["machine"],
        "versions": about["versions"],
        "dimension": asked.dimension,
        "tenants_of_1000": {},
        "one_tenant": {},
        "single_adds": {},
        "ratios": {},
    }

    def keep() -> None:
        if asked.json:
            asked.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")

    with tempfile.TemporaryDirectory(prefix="memhybrid-growth-") as folder:
        root = Path(folder)
        if asked.adds:
            single_adds(root, asked.adds, asked.dimension, result["single_adds"])
            print("single adds", result["single_adds"], flush=True)
            keep()
        for size in asked.sizes:
            many_tenants(root, size, asked.dimension, result["tenants_of_1000"])
            print(size, result["tenants_of_1000"][str(size)], flush=True)
            keep()
        if asked.one_tenant:
            one_tenant(root, asked.one_tenant, asked.dimension, result["one_tenant"])
            print("one tenant", result["one_tenant"], flush=True)
    sizes = [str(s) for s in asked.sizes]
    if len(sizes) > 1:
        small, large = (result["tenants_of_1000"][s]["scoped_p50_ms"] for s in (sizes[0], sizes[-1]))
        name = "scoped_1m" if asked.sizes[-1] == 1_000_000 else f"scoped_{sizes[-1]}"
        result["ratios"][f"{name}/scoped_{asked.sizes[0] // 1000}k"] = large / small
    print(json.dumps(result["ratios"]))
    keep()


if __name__ == "__main__":
    main()
