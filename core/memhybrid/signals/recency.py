"""How lately a memory was written or changed."""

from __future__ import annotations

import numpy as np

from memhybrid.protocols import Float64
from memhybrid.signals.context import SignalContext

DAY = 86_400.0


class Recency:
    """clamp(1 - age in days / 30, 0, 1) on `updated_at`, else `created_at`; the future counts as now; NaN where neither is a time."""

    name = "recency"
    query_dependent = False

    def values(self, context: SignalContext) -> Float64:
        """One number a candidate."""
        keys = [context.field_name("updated_at"), context.field_name("created_at")]
        times = context.view.partition.metadata.times(keys, context.rows)
        age = (context.request.now - times) / DAY
        context.record_raw(self.name, age)
        return np.clip(1.0 - age / context.profile.recency_days, 0.0, 1.0)
