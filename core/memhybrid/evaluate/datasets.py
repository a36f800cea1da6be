"""Labelled sets in BEIR layout: corpus.jsonl, queries.jsonl, qrels/test.tsv."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memhybrid.errors import InputError
from memhybrid.records import Memory

USER_KEY = "user_id"
SESSION_KEY = "session_id"


@dataclass(frozen=True)
class Query:
    """One labelled question. `relevant` are the ids with a positive grade, `user` whose memories it is asked of (None: all)."""

    id: str
    text: str
    user: Any
    category: str | None
    relevant: dict[str, int]


@dataclass(frozen=True)
class Dataset:
    """A labelled set. `scoped` tells whether memories and queries have users."""

    name: str
    memories: list[Memory]
    queries: list[Query]
    scoped: bool

    @property
    def has_sessions(self) -> bool:
        """Whether memories belong to sessions."""
        return any(SESSION_KEY in m.metadata for m in self.memories)

    def users(self) -> list[Any]:
        """The users, in order of appearance; one None where there are none."""
        return list(dict.fromkeys(m.metadata.get(USER_KEY) if self.scoped else None for m in self.memories))

    def of(self, user: Any) -> list[Memory]:
        """One user's memories."""
        return [m for m in self.memories if not self.scoped or m.metadata.get(USER_KEY) == user]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of memories or queries, checked."""
    number = 0
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        row = json.loads(line)
                    except ValueError as error:
                        raise InputError(f"{path}: line {number} is not JSON: {error}") from error
                    problem = _problem(row)
                    if problem:
                        raise InputError(f"{path}: line {number} {problem}")
                    yield row
    except OSError as error:
        layout = "corpus.jsonl, queries.jsonl, qrels/test.tsv"
        raise InputError(f"cannot read {path}: {error.strerror}; expected BEIR layout ({layout})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: line {number + 1} or soon after is not UTF-8: {error.reason}") from error


def _problem(row: Any) -> str | None:
    if not isinstance(row, dict):
        return "is not a JSON object"
    if not isinstance(row.get("_id"), str | int) or isinstance(row["_id"], bool):
        return "has no _id"
    if not isinstance(row.get("text"), str):
        return "has no text"
    return None if isinstance(row.get("metadata") or {}, dict) else "has metadata that is not an object"


def _grades(path: Path) -> dict[str, dict[str, int]]:
    """Query → memory → grade, the positive ones. A first line of headings is allowed."""
    out: dict[str, dict[str, int]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 1):
                if not row or (number == 1 and not row[-1].lstrip("-").isdigit()):
                    continue
                try:
                    query, memory, grade = row[0], row[1], int(row[2])
                except (IndexError, ValueError) as error:
                    raise InputError(
                        f"{path}: line {number} is not query, memory and a whole grade between tabs"
                    ) from error
                if grade > 0:
                    out.setdefault(query, {})[memory] = grade
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    return out


def load_dataset(folder: str | Path) -> Dataset:
    """Read a folder. InputError names the file and line that cannot be read. Queries without a relevant memory are left out."""
    root = Path(folder)
    memories = [
        Memory(str(row["_id"]), " ".join(filter(None, [row.get("title", ""), row["text"]])), row.get("metadata") or {})
        for row in _lines(root / "corpus.jsonl")
    ]
    qrels = _grades(root / "qrels" / "test.tsv")
    rows = [row for row in _lines(root / "queries.jsonl") if str(row["_id"]) in qrels]
    scoped = (
        bool(memories and rows)
        and all(USER_KEY in m.metadata for m in memories)
        and all(USER_KEY in (row.get("metadata") or {}) for row in rows)
    )
    queries = []
    for row in rows:
        metadata = row.get("metadata") or {}
        category = metadata.get("category")
        queries.append(
            Query(
                str(row["_id"]),
                row["text"],
                metadata.get(USER_KEY) if scoped else None,
                None if category is None else str(category),
                qrels[str(row["_id"])],
            )
        )
    return Dataset(root.resolve().name, memories, queries, scoped)
