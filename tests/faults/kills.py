"""Kill a writing process at a random moment, reopen, and compare with what it had acknowledged."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("worker.py")


@dataclass
class Tally:
    """Counts over all kills, and everything that was wrong."""

    kills: int = 0
    acknowledged: int = 0
    recovered: int = 0
    wrong: list[str] = field(default_factory=list)


def lines_until_killed(folder: Path, seed: int, seconds: float) -> list[dict[str, Any]]:
    """What the worker said before it was killed, this many seconds after it was ready."""
    process = subprocess.Popen(
        [sys.executable, str(WORKER), "write", str(folder), str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    if not first:
        raise RuntimeError(process.communicate()[1].decode()[-2000:])
    time.sleep(seconds)
    process.kill()
    rest = process.stdout.read().decode().splitlines()
    process.wait()
    out = []
    for line in rest:
        try:
            out.append(json.loads(line))
        except ValueError:
            break  # the last line may be cut
    return out


def check(folder: Path) -> dict[str, Any]:
    """What a new process finds."""
    done = subprocess.run(
        [sys.executable, str(WORKER), "check", str(folder)], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def run(folder: Path, kills: int, seed: int, *, longest: float = 1.5) -> Tally:
    """Kill again and again on one growing store; every acknowledged write must be there afterwards."""
    chance = random.Random(seed)
    tally = Tally()
    texts: dict[str, str] = {}
    used: dict[str, int] = {}
    for round_ in range(kills):
        pending: dict[str, Any] = {}
        for line in lines_until_killed(folder, seed + round_, chance.uniform(0.0, longest)):
            if "begin" in line:
                pending = line
                continue
            pending = {}
            tally.acknowledged += 1
            if line["ack"] == "put":
                texts.update(line["put"])
            elif line["ack"] == "delete":
                for identifier in line["ids"]:
                    texts.pop(identifier, None)
                    used.pop(identifier, None)
            else:
                for identifier in line["ids"]:
                    used[identifier] = used.get(identifier, 0) + 1
        found = check(folder)
        tally.kills += 1
        tally.recovered += found["recovered"]
        # What was under way may be there or not, but nothing else may differ.
        open_ids = set(pending.get("put", {})) | set(pending.get("ids", []))
        for identifier in {*texts, *found["texts"]}:
            if identifier not in open_ids and texts.get(identifier) != found["texts"].get(identifier):
                tally.wrong.append(
                    f"kill {round_}: {identifier}: acknowledged {texts.get(identifier)!r}, found {found['texts'].get(identifier)!r}"
                )
        for identifier in open_ids:
            allowed = {
                texts.get(identifier),
                pending.get("put", {}).get(identifier),
                None if pending["begin"] == "delete" else texts.get(identifier),
            }
            if found["texts"].get(identifier) not in allowed:
                tally.wrong.append(f"kill {round_}: {identifier}: half written: {found['texts'].get(identifier)!r}")
        for identifier, count in used.items():
            if identifier not in open_ids and found["usage"].get(identifier, 0) < count:
                tally.wrong.append(
                    f"kill {round_}: {identifier}: counted {count}, found {found['usage'].get(identifier, 0)}"
                )
        tally.wrong.extend(f"kill {round_}: {p}" for p in found["problems"])
        tally.wrong.extend(f"kill {round_}: {i} is not found by its own text" for i in found["unsearchable"])
        texts = dict(found["texts"])
        used = dict(found["usage"])
    return tally
