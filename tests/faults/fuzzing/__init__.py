"""Seeded random targets for `benchmarks/fuzz.py` and for the short runs in `tests/faults/test_fuzz.py`."""
