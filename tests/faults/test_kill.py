"""Processes that are killed while they write."""

from __future__ import annotations

from pathlib import Path

from tests.faults.kills import run


def test_every_acknowledged_write_survives_a_kill(tmp_path: Path) -> None:
    """After each of six kills at random moments all acknowledged writes are there, in every index, and nothing is half written."""
    tally = run(tmp_path / "store", kills=6, seed=11, longest=0.8)
    assert tally.wrong == []
    assert tally.kills == 6
    assert tally.acknowledged > 0
