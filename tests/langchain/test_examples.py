from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jupytext
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("langchain_*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_script_and_notebook_are_one(script: Path) -> None:
    """The same cells, and the notebook has outputs without errors for those who only read."""
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    assert [(c.cell_type, c.source) for c in jupytext.read(script).cells] == [
        (c.cell_type, c.source) for c in notebook.cells
    ]
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert outputs
    assert all(output.output_type != "error" and output.get("name") != "stderr" for output in outputs)
    assert notebook.metadata["kernelspec"]["display_name"] == "Python 3"


@pytest.mark.slow
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(script: Path, tmp_path: Path) -> None:
    """From any folder; its assertions hold."""
    paths = os.pathsep.join([str(ROOT / "core"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())
