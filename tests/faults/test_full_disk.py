"""No room left, by real means: files that may not grow, and a volume that is full."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("full_disk.py")
ROOT = SCRIPT.parents[2]


def may_mount(folder: Path) -> bool:
    """Whether a volume can be made here without being root on the machine."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def outcome(folder: Path, *arguments: str, before: tuple[str, ...] = ()) -> Any:
    """What the script found."""
    done = subprocess.run(
        [*before, sys.executable, str(SCRIPT), arguments[0], str(folder), *arguments[1:]],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'core'}{os.pathsep}{ROOT}"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(found: Any, folder: Path) -> None:
    """Errors that help, answers meanwhile, nothing lost, and everything works again."""
    assert found["errors"]
    for error in found["errors"]:
        assert str(folder) in error
        assert "make room" in error
    assert "m" in found["errors"][0].split("were not: ")[1]
    assert found["full_answers"] == [["m0-3"], ["m0-77"]]
    assert (found["problems"], found["lost"], found["extra"], found["unfound"]) == ([], [], [], [])


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of this kind")
def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """A write that hits the limit says where and what to do, searches go on, and with room again nothing that was acknowledged is lost."""
    check(outcome(tmp_path, "limit"), tmp_path)


@pytest.mark.parametrize("left", [4_000, 100_000, 600_000])
def test_a_volume_that_is_full(tmp_path: Path, left: int) -> None:
    """The same with nothing, little and some room left when the writes begin: Chroma, its log and our files fail in turn."""
    if not may_mount(tmp_path):
        pytest.skip("no volume can be mounted here")
    check(outcome(tmp_path, "volume", str(left), before=("unshare", "-rm")), tmp_path)
