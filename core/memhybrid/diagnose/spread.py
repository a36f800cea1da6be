"""How much each signal tells the memories of a scope apart, and what to do about one that does not."""

from __future__ import annotations

import numpy as np

from memhybrid.diagnose.probe import Probe
from memhybrid.diagnose.report import Spread
from memhybrid.fusion import UNKNOWN
from memhybrid.profiles import Profile
from memhybrid.protocols import Float64

NARROW = 0.35
"""A signal that uses less than this share of its scale ranks little: importance squeezed into 60-90, recency in a week-old store."""
NARROW_MOVING = 0.1
NARROW_TYPE = 0.1
"""The table of types is narrow itself, from 0.5 to 1."""
KNOWN = 0.5


def spreads(probe: Probe, profile: Profile, queries: list[str]) -> dict[str, Spread]:
    """For each signal of the profile its spread over the scope."""
    open_to_all = profile.replace(positive_only=False, gate=None, context=False)
    found: dict[str, list[Float64]] = {}
    for query in queries or ["?"]:
        for name, values in probe.scored(query, open_to_all).values.items():
            found.setdefault(name, []).append(values)
    out: dict[str, Spread] = {}
    for key, weight in profile.signals.items():
        signal = profile.make_signal(key)
        if weight > 0 and signal.name in found:
            out[signal.name] = _spread(signal.name, weight, found[signal.name], signal.query_dependent, profile)
    return out


def _spread(name: str, weight: float, values: list[Float64], moves: bool, profile: Profile) -> Spread:
    known = float(np.mean([np.isfinite(v).mean() if len(v) else 0.0 for v in values]))
    if profile.fusion == "weighted":
        filled = [np.where(np.isnan(v), UNKNOWN.get(name, 0.0), v) for v in values]
    else:
        filled = [v[np.isfinite(v)] for v in values]
    filled = [v for v in filled if len(v)]
    if not filled:
        return Spread(weight, 0.0, 0.0, known, moves, _missing(name))
    if moves:
        low, high = float(np.mean([np.median(v) for v in filled])), float(np.mean([v.max() for v in filled]))
    else:
        low, high = float(np.percentile(filled[0], 5)), float(np.percentile(filled[0], 95))
    return Spread(weight, low, high, known, moves, _remedy(name, low, high, known, moves, profile))


def _missing(name: str) -> str:
    if name in ("semantic", "late"):
        return (
            "no memory has a value: the embedder is not meant for this script, or gives none; choose another embedder"
        )
    return f"no memory has a value, so it counts for nothing; give memories what it reads (FieldMap maps names), or leave {name} out"


def _remedy(name: str, low: float, high: float, known: float, moves: bool, profile: Profile) -> str | None:
    if known == 0.0:
        return _missing(name)
    if high - low >= (NARROW_MOVING if moves else NARROW_TYPE if name == "type" else NARROW):
        return None
    shown = (
        f"nearly the same for all ({low:.2f} to {high:.2f}), so it ranks {'nothing' if high - low < 0.05 else 'little'}"
    )
    if name == "range":
        return f"{shown}: it counts only for requests with min_msg_id or max_msg_id"
    if name == "usage":
        return f"{shown}: little has been returned yet, or everything alike"
    if name == "importance":
        advice = (
            'spread it with Profile.replace(stretch="quantile")'
            if profile.stretch == "none"
            else "judge it more finely"
        )
        if known < KNOWN:
            advice = "most memories have none; give it to them"
        return f"{shown}: {advice}, rather than raise its weight"
    if name == "recency":
        if low > 0.5:
            return f"{shown}: the store is young against recency_days={profile.recency_days:g}; lower that to about its age in days"
        if high < 0.5:
            return f"{shown}: memories are old against recency_days={profile.recency_days:g}; raise that to about the age of the oldest"
        return f"{shown}: most memories have no updated_at or created_at, or all are of one age"
    if name == "type":
        return f"{shown}: most memories are of one type or have none; give types, or lower its weight"
    return f"{shown}: lower its weight, or look at what it reads (FieldMap maps names)"
