"""300 kills at random moments of writing, updating, deleting, syncing and counting: what survives.

python benchmarks/kills.py [KILLS] [SEED]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faults.kills import Tally, run

PER_STORE = 15


def main(kills: int, seed: int) -> None:
    """Stores of 15 kills each, so that they grow and are still quick to check."""
    total = Tally()
    for start in range(0, kills, PER_STORE):
        with tempfile.TemporaryDirectory() as folder:
            tally = run(Path(folder) / "store", min(PER_STORE, kills - start), seed + start)
        total.kills += tally.kills
        total.acknowledged += tally.acknowledged
        total.recovered += tally.recovered
        total.wrong.extend(tally.wrong)
        print(
            f"kills {total.kills}  acknowledged {total.acknowledged}  recovered {total.recovered}  wrong {len(total.wrong)}",
            flush=True,
        )
    for line in total.wrong[:50]:
        print(line)
    sys.exit(1 if total.wrong else 0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
