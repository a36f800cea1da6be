"""A Chroma server that stops and comes back under load, again and again: what is lost.

python benchmarks/outage.py [OUTAGES]
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faults.outage import run


def main(outages: int) -> None:
    """One store, three writers and two readers; the counts as JSON."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        tally = run(Path(folder), outages, calls=20)
    print(json.dumps({**dataclasses.asdict(tally), "wrong": len(tally.wrong)}))
    for line in tally.wrong[:20]:
        print(line)
    sys.exit(1 if tally.wrong else 0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
