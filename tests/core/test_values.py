"""Values that Chroma does not keep as they were given."""

from __future__ import annotations

import random
from pathlib import Path

from memhybrid import Memory
from memhybrid.values import is_long_float
from tests.conftest import make_memory


def test_floats_are_what_chroma_keeps(tmp_path: Path) -> None:
    """Chroma rounds the last bit of long floats: what we return is what it holds, so that nothing differs afterwards."""
    chance = random.Random(3)
    given = [chance.uniform(-1, 1) * 10 ** chance.randint(-30, 30) for _ in range(300)] + [0.8, 2.5, 1e300, 5e-324, 0.0]
    with make_memory(tmp_path / "store") as memory:
        memory.add([Memory(f"m{i}", "text", {"value": v, "list": [v, 1.5]}) for i, v in enumerate(given)])
        assert memory.verify().ok
        assert memory.sync().changed == 0
        for i, value in enumerate(given):
            kept = memory.get([f"m{i}"])[0].metadata["value"]
            assert abs(kept - value) <= abs(value) * 1e-15
            assert is_long_float(value) or kept == value
