"""No room left and no leave to write, by real means: limits, and small volumes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("full_disk.py")
ROOT = SCRIPT.parents[2]


def may_mount(folder: Path) -> bool:
    """Whether a volume can be made here without being root on the machine."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def script(*arguments: str, before: tuple[str, ...] = ()) -> list[str]:
    """What a Python process prints."""
    done = subprocess.run(
        [*before, sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'core'}{os.pathsep}{ROOT}"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def check(said: list[str], folder: Path) -> None:
    """Errors that help, answers meanwhile, nothing lost, and everything works again."""
    found = json.loads(said[-1])
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
    check(script(str(SCRIPT), "limit", str(tmp_path)), tmp_path)


@pytest.mark.parametrize("left", [4_000, 100_000])
def test_a_volume_that_is_full(tmp_path: Path, left: int) -> None:
    """The same with nothing and with a little room left when the writes begin: Chroma's log fails, or its tables and our files."""
    if not may_mount(tmp_path):
        pytest.skip("no volume can be mounted here")
    check(script(str(SCRIPT), "volume", str(tmp_path), str(left), before=("unshare", "-rm")), tmp_path)


_READ_ONLY = """
import subprocess, sys
from memhybrid import StoreError
from tests.conftest import make_memory
folder = sys.argv[1]
mount = lambda *options: subprocess.run(["mount", *options, folder], check=True)
mount("-t", "tmpfs", "none")
write = "import sys; from tests.conftest import make_memory; make_memory(sys.argv[1]).add('apple')"
subprocess.run([sys.executable, "-c", write, folder], check=True)
mount("-o", "remount,ro")
for read_only in (False, True):
    try: make_memory(folder, read_only=read_only)
    except StoreError as error: print(error)
mount("-o", "remount,rw")
with make_memory(folder) as memory:
    memory.add("pear")
    print(memory.count(), memory.verify().ok)
"""


def test_a_volume_that_may_not_be_written(tmp_path: Path) -> None:
    """For writing and for reading the error names the folder and the way out, and the store works when it may be written again."""
    if not may_mount(tmp_path):
        pytest.skip("no volume can be mounted here")
    for_writing, for_reading, after = script("-c", _READ_ONLY, str(tmp_path), before=("unshare", "-rm"))
    for said in (for_writing, for_reading):
        assert str(tmp_path) in said
        assert "copy it to where it may be" in said
    assert after == "2 True"
