"""Speed beside the peers, in one run: `memhybrid bench`. Ratios of medians come first; absolute times are this machine's."""

from memhybrid.bench.run import BenchReport, run_bench

__all__ = ["BenchReport", "run_bench"]
