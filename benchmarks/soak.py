"""Every public call from 8 threads on one store on disk, for as long as you like; then everything is compared with a model.

python benchmarks/soak.py [SECONDS] [--threads 8] [--seed 1]

Prints the counts as JSON and what was wrong; exits with 1 if anything was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faults.soak import run


def main() -> None:
    """One run in a folder that goes afterwards."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", nargs="?", type=float, default=30.0)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        outcome = run(Path(folder), options.seconds, threads=options.threads, seed=options.seed)
    print(outcome)
    for line in outcome.wrong[:20]:
        print(line)
    sys.exit(1 if outcome.wrong else 0)


if __name__ == "__main__":
    main()
