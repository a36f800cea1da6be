"""Does retrieval still follow the query? Measured on a store, with usage written back on a copy of its ledger.

    report = memory.diagnose(where={"user_id": "u1"})        # or diagnose(memory, …)
    print(report)                                            # a table for people
    report.as_dict()                                         # the same for programs

Nothing is written: neither memories nor usage counts.
"""

from __future__ import annotations

from memhybrid.diagnose.measure import diagnose
from memhybrid.diagnose.report import DiagnoseReport, Round, Spread

__all__ = ["DiagnoseReport", "Round", "Spread", "diagnose"]
