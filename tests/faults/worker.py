"""A process that is killed: writes at random and says on its output what was begun and what was acknowledged.

python worker.py write FOLDER SEED     one JSON line for each step, until it is killed
python worker.py check FOLDER          what is there after reopening, as one JSON object; recovers where Chroma is damaged
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from typing import Any

from memhybrid import HybridMemory, Memory, StoreDamagedError
from memhybrid.embedders import HashEmbedder

WORDS = [f"word{i}" for i in range(400)]


def opened(folder: str) -> HybridMemory:
    """The store, with parts that need no model."""
    return HybridMemory.open(folder, embedder=HashEmbedder(32), analyzer="fast")


def say(**fields: Any) -> None:
    """One line, out at once."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def write(folder: str, seed: int) -> None:
    """Random adds, updates, deletes, counted searches and syncs, for ever."""
    chance = random.Random(seed)
    memory = opened(folder)
    texts: dict[str, str] = {m.id or "": m.text for m in memory.list()}
    say(ready=True)
    number = seed * 1_000_000
    while True:
        kind = chance.choices(["add", "update", "delete", "use", "sync"], [8, 4, 3, 3, 1])[0]
        known = list(texts)
        if kind == "add" or not known:
            batch = {}
            for _ in range(chance.choice([1, 1, 1, 5, 40, 400])):
                number += 1
                batch[f"m{number}"] = " ".join(chance.choices(WORDS, k=8)) + f" unique{number}"
            say(begin="put", put=batch)
            memory.add([Memory(i, t) for i, t in batch.items()])
            texts.update(batch)
            say(ack="put", put=batch)
        elif kind == "update":
            identifier, text = chance.choice(known), " ".join(chance.choices(WORDS, k=8)) + f" changed{number}"
            say(begin="put", put={identifier: text})
            memory.update(identifier, text=text)
            texts[identifier] = text
            say(ack="put", put={identifier: text})
        elif kind == "delete":
            gone = chance.sample(known, min(len(known), chance.choice([1, 1, 30])))
            say(begin="delete", ids=gone)
            memory.delete(gone)
            for identifier in gone:
                del texts[identifier]
            say(ack="delete", ids=gone)
        elif kind == "use":
            identifier = chance.choice(known)
            say(begin="use")
            hits = memory.search(texts[identifier], k=1, record_usage=True).ids
            say(ack="use", ids=hits)
        else:
            memory.sync()


def check(folder: str) -> None:
    """Everything that the reopened store holds, and what verify says."""
    recovered = 0
    try:
        memory = opened(folder)
        report = memory.verify()
    except StoreDamagedError:
        from memhybrid.recover import recover

        memory.close()
        memory.store.backend.close()
        recover(folder, embedder=HashEmbedder(32))
        recovered = 1
        memory = opened(folder)
        report = memory.verify()
    found = {m.id: m.text for m in memory.list()}
    lost = [
        identifier
        for identifier, text in list(found.items())[:: max(len(found) // 50, 1)]
        for profile in ("bm25", "semantic")
        if identifier not in memory.search(text, k=3, profile=profile).ids
    ]
    usage = {i: e.count for i, e in memory.usage().items()}
    say(recovered=recovered, problems=list(report.problems), texts=found, unsearchable=lost, usage=usage)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        check(sys.argv[2])
