"""A store as a file and back: JSON Lines with texts, metadata, vectors and usage, readable by anything.

The first line says what the file is; each further line is one memory:
`{"id", "text", "metadata", "embedding": [numbers], "usage": {"count", "last"}}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memhybrid.errors import InputError
from memhybrid.protocols import Float32
from memhybrid.records import Memory, StoredRecord
from memhybrid.state.ledger import UsageEntry

if TYPE_CHECKING:
    from memhybrid.memory import HybridMemory

FORMAT = "memhybrid-export"
VERSION = 1
BATCH = 1_000
Progress = Callable[[int, int], None]


def export_store(memory: HybridMemory, path: str | Path) -> int:
    """Write everything that the collection holds at one moment, writes wait; how many memories that were.

    The file appears only when it is complete.
    """
    store = memory.store
    memory.refresh()
    target = Path(path)
    unfinished = target.with_name(target.name + ".part")
    written = 0
    fingerprint = store.sidecar.get_meta("embedder")
    head = {
        "format": FORMAT,
        "version": VERSION,
        "embedder": json.loads(fingerprint) if fingerprint else None,
        "scope_keys": list(store.scopes.keys),
    }
    try:
        with store.writing(), unfinished.open("w", encoding="utf-8") as file:
            usage = store.ledger.export()
            file.write(json.dumps(head, ensure_ascii=False) + "\n")
            for page in store.backend.pages():
                # Ours as they were given, where they are whole: Chroma's have been normalised, which changes last bits.
                kept = store.sidecar.kept_of([record.id for record in page])
                for record in page:
                    vector = kept[record.id][1] if record.id in kept else record.vector
                    line = _line(record, vector, usage.get(record.id))
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
                written += len(page)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InputError(f"path: cannot write {target}: {error.strerror}") from error
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    unfinished.replace(target)
    return written


def _line(record: StoredRecord, vector: Float32 | None, entry: UsageEntry | None) -> dict[str, Any]:
    line: dict[str, Any] = {
        "id": record.id,
        "text": record.text,
        "metadata": dict(sorted(record.metadata.items())),
        "embedding": None if vector is None or np.isnan(vector).any() else vector.tolist(),
    }
    if entry is not None:
        line["usage"] = {"count": entry.count, "last": entry.last}
    return line


def import_store(
    memory: HybridMemory, path: str | Path, progress: Progress | None = None, *, reembed: bool = False
) -> int:
    """Add everything from an exported file; ids that exist are replaced. InputError names the line that cannot be read.

    The whole file is checked before anything is written. `reembed`: with vectors by the embedder of this store, not those of the file.
    """
    memories, usage = _read(Path(path))
    if reembed:
        memories = [Memory(m.id, m.text, m.metadata) for m in memories]
    for start in range(0, len(memories), BATCH):
        memory.add(memories[start : start + BATCH])
        if progress is not None:
            progress(min(start + BATCH, len(memories)), len(memories))
    memory.store.ledger.set(usage)
    return len(memories)


def _read(path: Path) -> tuple[list[Memory], dict[str, UsageEntry]]:
    memories: list[Memory] = []
    usage: dict[str, UsageEntry] = {}
    try:
        # Not `splitlines`: a text may hold what that takes for the end of a line.
        with path.open(encoding="utf-8") as file:
            lines = list(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"path: cannot read {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            data = json.loads(line)
            if number == 1:
                if data.get("format") != FORMAT or data.get("version") != VERSION:
                    raise InputError(
                        f"{path}: not an export that this version can read (its first line says {line[:80]!r})"
                    )
                continue
            memories.append(Memory(data["id"], data["text"], data["metadata"], data["embedding"]))
            if "usage" in data:
                usage[data["id"]] = UsageEntry(int(data["usage"]["count"]), data["usage"]["last"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: line {number} cannot be read: {error}") from error
    if not lines:
        raise InputError(f"{path}: the file is empty")
    return memories, usage
