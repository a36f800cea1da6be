from __future__ import annotations

from pathlib import Path

import pytest

from memhybrid.errors import InputError
from memhybrid.evaluate.datasets import load_dataset
from tests.evaluate.sets import write_set


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("corpus.jsonl", '{"_id": "a", "text": ', r"corpus\.jsonl: line 49 is not JSON"),
        ("corpus.jsonl", '["a", "b"]', r"corpus\.jsonl: line 49 is not a JSON object"),
        ("corpus.jsonl", '{"text": "b"}', r"corpus\.jsonl: line 49 has no _id"),
        ("corpus.jsonl", '{"_id": "b", "text": null}', r"corpus\.jsonl: line 49 has no text"),
        ("queries.jsonl", '{"_id": "b"}', r"queries\.jsonl: line 25 has no text"),
        ("queries.jsonl", '{"_id": "b", "text": "c", "metadata": [1]}', r"queries\.jsonl: line 25 has metadata"),
        ("qrels/test.tsv", "u0-q0\tu0-m1", r"test\.tsv: line 32 is not"),
        ("qrels/test.tsv", "u0-q0\tu0-m1\tyes", r"test\.tsv: line 32 is not"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, file: str, line: str, message: str) -> None:
    """Whoever prepared the data is told where to look."""
    folder = write_set(tmp_path)
    with (folder / file).open("a", encoding="utf-8") as out:
        out.write(line + "\n")
    with pytest.raises(InputError, match=message):
        load_dataset(folder)


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    """A folder that is no dataset is an InputError, not a traceback."""
    folder = write_set(tmp_path)
    (folder / file).unlink()
    with pytest.raises(InputError, match=Path(file).name):
        load_dataset(folder)


def test_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    """An encoding error says which file."""
    folder = write_set(tmp_path)
    (folder / "queries.jsonl").write_bytes(b'{"_id": "q", "text": "caf\xe9"}\n')
    with pytest.raises(InputError, match=r"queries\.jsonl.*UTF-8"):
        load_dataset(folder)


def test_users_make_it_scoped_and_queries_without_labels_are_left_out(tmp_path: Path) -> None:
    """Scope keys come from the data; a question without a right answer measures nothing."""
    folder = write_set(tmp_path / "with", queries=6)
    with (folder / "queries.jsonl").open("a", encoding="utf-8") as out:
        out.write('{"_id": "unlabelled", "text": "x"}\n')
    data = load_dataset(folder)
    assert data.scoped
    assert data.users() == ["u0", "u1"]
    assert len(data.queries) == 12
    assert not load_dataset(write_set(tmp_path / "without", users=0)).scoped
