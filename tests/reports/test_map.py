"""The table of public reports names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "reports.md"
REPORTS = 131


def test_every_report_has_a_test_that_exists() -> None:
    """No row without one, no name that was changed and forgotten here."""
    if not TABLE.exists():
        pytest.skip("the documentation is not beside the tests")
    rows = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if re.match(r"\| \d+ \|", line)]
    assert len(rows) == REPORTS
    for row in rows:
        references = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row)
        assert references, row
        for path, name in references:
            text = (ROOT / path).read_text(encoding="utf-8")
            assert not name or re.search(rf"^(?:async )?(?:def|class) {name}\b|^{name} = ", text, re.MULTILINE), (
                path,
                name,
            )
