"""Small labelled sets, generated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

TEXT = (
    "kiln glaze pottery violin concert bicycle mountain river ferry bakery sourdough oven garden tomato fence school bus "
    "teacher dentist passport visa airport hotel museum painting camera lens tripod podcast guitar drum choir novel library"
)
WORDS = TEXT.split()


def write_set(
    folder: Path, *, users: int = 2, memories: int = 24, queries: int = 12, sessions: bool = True, seed: int = 1
) -> Path:
    """A folder in BEIR layout: each question shares most of its words with the memory that answers it."""
    draw = np.random.default_rng(seed)
    corpus, asked, grades = [], [], ["query-id\tcorpus-id\tscore"]
    for user in range(max(users, 1)):
        owner = {"user_id": f"u{user}"} if users else {}
        texts = [draw.choice(WORDS, 7, replace=False).tolist() for _ in range(memories)]
        for i, words in enumerate(texts):
            metadata = {**owner, "created_at": f"2026-01-{i + 1:02d}T10:00:00+00:00"}
            if sessions:
                metadata |= {"session_id": f"u{user}/s{i // 6}", "msg_id": i}
            corpus.append({"_id": f"u{user}-m{i}", "title": "", "text": " ".join(words), "metadata": metadata})
        for i in range(queries):
            right = int(draw.integers(memories))
            words = [*draw.choice(texts[right], 3, replace=False).tolist(), *draw.choice(WORDS, 2).tolist()]
            metadata = {**owner, "category": i % 3}
            asked.append({"_id": f"u{user}-q{i}", "text": " ".join(words), "metadata": metadata})
            grades.append(f"u{user}-q{i}\tu{user}-m{right}\t1")
            if i % 4 == 0:
                grades.append(f"u{user}-q{i}\tu{user}-m{(right + 1) % memories}\t2")
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", corpus), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("\n".join(grades) + "\n", encoding="utf-8")
    return folder
