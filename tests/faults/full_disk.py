"""A store whose disk becomes full: what it says, what it keeps, and whether it goes on when there is room again.

python full_disk.py limit FOLDER        files may not grow beyond a size (RLIMIT_FSIZE)
python full_disk.py volume FOLDER FREE  a small volume of its own (tmpfs; run it by `unshare -rm`), FREE bytes of it left

One JSON object on the output.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memhybrid import Memory, StoreError
from tests.conftest import make_memory

PADDING = "pad " * 60
TRIES = 6
LONGEST_S = 90


def rows(number: int, many: int) -> dict[str, str]:
    """Memories of one call."""
    return {f"m{number}-{i}": f"text unique{number}x{i} {PADDING}" for i in range(many)}


def limited(folder: Path) -> Callable[[], None]:
    """The largest file may grow by a fifth; returns what lifts the limit."""
    import resource

    largest = max(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest * 1.2), resource.RLIM_INFINITY))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def filled(folder: Path, left: int) -> Callable[[], None]:
    """A file that takes all but so many bytes; returns what removes it."""
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_bsize
    (folder / "filler").write_bytes(b"x" * (free - left))
    return (folder / "filler").unlink


def main(how: str, folder: Path, left: int) -> dict[str, Any]:
    """Fill it, go on writing, make room, and look."""
    memory = make_memory(folder / "store")
    known = rows(0, 200)
    memory.add([Memory(i, text) for i, text in known.items()])
    make_room = limited(folder) if how == "limit" else filled(folder, left)
    errors: list[str] = []
    open_ids: set[str] = set()
    for number in range(1, 200):
        given = rows(number, 20)
        try:
            memory.add([Memory(i, text) for i, text in given.items()])
            known.update(given)
        except StoreError as error:
            errors.append(str(error))
            known.update({i: given[i] for i in error.written})
            open_ids.update(given.keys() - set(error.written))
        if len(errors) == TRIES:
            break
    full_answers = [memory.search(f"unique0x{i}", k=1, profile="bm25").ids for i in (3, 77)]
    refused = 0
    for call in (lambda: memory.update("m0-1", "another text " * 300), lambda: memory.delete("m0-2")):
        try:
            call()
        except StoreError:
            refused += 1
    open_ids.update(("m0-1", "m0-2"))
    make_room()

    problems = list(memory.verify().problems)
    # What failed is written again, as the errors say.
    again = {i: f"again {i}" for i in sorted(open_ids)} | rows(999, 20)
    memory.add([Memory(i, text) for i, text in again.items()])
    known.update(again)
    problems += memory.verify().problems
    memory.close()
    memory = make_memory(folder / "store")
    problems += memory.verify().problems
    present = {m.id: m.text for m in memory.list()}
    lost = [i for i, text in known.items() if present.get(i) != text]
    asked = [i for i in known if not known[i].startswith("again")][::40]
    unfound = [i for i in asked for p in ("bm25", "semantic") if i not in memory.search(known[i], k=3, profile=p).ids]
    memory.close()
    return {
        "errors": errors,
        "refused": refused,
        "full_answers": full_answers,
        "problems": problems,
        "lost": lost,
        "extra": sorted(i or "" for i in present.keys() - known.keys()),
        "unfound": unfound,
        "memories": len(present),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # A write that never comes back is what this is about, too.
    faulthandler.dump_traceback_later(LONGEST_S, exit=True)
    mode, place = sys.argv[1], Path(sys.argv[2])
    place.mkdir(exist_ok=True)
    if mode == "volume":
        import subprocess

        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(place)], check=True)
    result = main(mode, place, int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    sys.stdout.write(json.dumps(result) + "\n")
