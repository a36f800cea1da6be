"""Random and mutated input for filters, analysers and the files beside Chroma, until the time is over.

python benchmarks/fuzz.py filters|analyzers|sidecar SECONDS [--seed N] [--only EXECUTION]

Prints one JSON line: executions, executions a second, findings with what reproduces them. Every execution is made from the seed and
its number alone, so that `--only` runs it again. A process that dies or hangs is a finding, and the run goes on behind it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faults.fuzzing.common import Target, fuzz

TARGETS = ("filters", "analyzers", "sidecar")


def target_of(name: str) -> Target:
    """A target, with what it needs loaded."""
    if name == "filters":
        from tests.faults.fuzzing.filters import Filters

        return Filters()
    if name == "analyzers":
        from tests.faults.fuzzing.analyzers import Analyzers

        return Analyzers()
    from tests.faults.fuzzing.sidecar import Sidecars

    return Sidecars()


def work(name: str, seconds: float, seed: int, first: int, last: int | None, progress: Path | None) -> None:
    """In the child: run, and write down each number before it starts."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    target = target_of(name)
    began = None
    if progress is not None:
        file = os.open(progress, os.O_RDWR | os.O_CREAT)

        def began(number: int) -> None:
            os.pwrite(file, number.to_bytes(8, "little"), 0)

    report = fuzz(target, seconds, seed, first=first, last=last, began=began)
    target.close()
    print(json.dumps(report.as_dict()), flush=True)


def main(name: str, seconds: float, seed: int) -> int:
    """Children one after the other: a new one behind each that died."""
    until, first = time.monotonic() + seconds, 0
    total: dict[str, Any] = {"target": name, "seed": seed, "executions": 0, "seconds": 0.0, "findings": 0, "counts": {}}
    total |= {"slowest_s": 0.0, "slowest": "", "found": []}
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "number"
        while (left := until - time.monotonic()) > 1:
            progress.write_bytes(first.to_bytes(8, "little"))
            command = [sys.executable, __file__, name, str(left), "--seed", str(seed), "--first", str(first)]
            start = time.monotonic()
            child = subprocess.run([*command, "--progress", str(progress)], capture_output=True, text=True, check=False)
            if child.returncode == 0:
                part = json.loads(child.stdout.splitlines()[-1])
                for key in ("executions", "seconds", "findings"):
                    total[key] += part[key]
                for key, count in part["counts"].items():
                    total["counts"][key] = total["counts"].get(key, 0) + count
                if part["slowest_s"] > total["slowest_s"]:
                    total |= {key: part[key] for key in ("slowest_s", "slowest")}
                total["found"] += part["found"]
                break
            at = int.from_bytes(progress.read_bytes(), "little")
            total["executions"] += at - first + 1
            total["seconds"] += time.monotonic() - start
            total["findings"] += 1
            total["found"].append(f"seed {seed}, execution {at}: exit {child.returncode}: {child.stderr[-1500:]}")
            first = at + 1
    total["seconds"] = round(total["seconds"], 1)
    total["per_second"] = round(total["executions"] / max(total["seconds"], 0.1), 1)
    print(json.dumps(total, ensure_ascii=False))
    return 1 if total["findings"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one execution alone, in this process")
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--progress", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only is not None:
        work(given.target, given.seconds, given.seed, given.only, given.only, None)
    elif given.progress is not None:
        work(given.target, given.seconds, given.seed, given.first, None, given.progress)
    else:
        sys.exit(main(given.target, given.seconds, given.seed))
