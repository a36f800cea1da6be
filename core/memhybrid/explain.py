"""A result as a table for people and as JSON for programs."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memhybrid.records import Hit, SearchResult

TEXT_WIDTH = 64


def width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def shorten(text: str, columns: int) -> str:
    """One line of at most so many columns."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if width(line) <= columns:
        return line
    out = ""
    for character in line:
        if width(out + character) > columns - 1:
            break
        out += character
    return out + "…"


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Filled up with spaces to so many columns."""
    gap = " " * max(columns - width(text), 0)
    return gap + text if right else text + gap


def table(header: list[str], rows: list[list[str]], *, numeric: set[int]) -> str:
    """Aligned columns; those in `numeric` to the right."""
    widths = [max(width(line[i]) for line in [header, *rows]) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        return "  ".join(pad(c, widths[i], right=i in numeric) for i, c in enumerate(cells)).rstrip()

    return "\n".join([line(header), "  ".join("─" * w for w in widths), *(line(row) for row in rows)])


def signal_names(result: SearchResult) -> list[str]:
    """The signals of the hits, in the profile's order."""
    return list(dict.fromkeys(name for hit in result.hits for name in hit.signals))


def _cell(hit: Hit, name: str) -> str:
    value = hit.signals.get(name)
    if value is None:
        return "–"
    detail = hit.details.get(name)
    return f"{value:.3f}" if detail is None else f"{value:.3f}×{detail.weight:.2f}"


def as_table(result: SearchResult) -> str:
    """Rank, score, each signal as value×weight (– where it is not known), the sources that found it, and the text."""
    trace = result.trace
    names = signal_names(result)
    header = ["#", "score", *names, "found by", "id", "text"]
    extra = any(hit.adjustments for hit in result.hits)
    if extra:
        header.insert(2 + len(names), "adjusted")
    rows: list[list[str]] = []
    for rank, hit in enumerate(result.hits, 1):
        row = [str(rank), f"{hit.score:.4f}", *(_cell(hit, n) for n in names), "+".join(hit.sources)]
        if extra:
            row.insert(2 + len(names), " ".join(f"{k} {v:+.3f}" for k, v in hit.adjustments.items()) or "")
        rows.append([*row, shorten(hit.memory.id or "", 28), shorten(hit.memory.text, TEXT_WIDTH)])
    lines = [f"{shorten(result.query, 100)!r}  profile {trace.profile}  pool {trace.pool} {dict(trace.candidates)}"]
    lines.append(table(header, rows, numeric=set(range(2 + len(names)))) if rows else "(nothing found)")
    if trace.max_possible is not None:
        lines.append(f"divided by max_possible {trace.max_possible}")
    lines.extend(f"degraded: {text}" for text in trace.degraded)
    lines.extend(f"note: {text}" for text in trace.notes)
    if trace.dropped:
        counts: dict[str, int] = {}
        for dropped in trace.dropped:
            counts[dropped.reason] = counts.get(dropped.reason, 0) + 1
        lines.append("dropped: " + ", ".join(f"{n} by {reason}" for reason, n in counts.items()))
    lines.append("ms: " + "  ".join(f"{name} {ms:.1f}" for name, ms in trace.timings_ms.items()))
    return "\n".join(lines)


def as_dict(result: SearchResult) -> dict[str, Any]:
    """Everything in plain Python values."""
    trace = result.trace
    return {
        "query": result.query,
        "hits": [
            {
                "id": hit.memory.id,
                "text": hit.memory.text,
                "metadata": dict(hit.memory.metadata),
                "score": hit.score,
                "signals": dict(hit.signals),
                "details": {
                    name: {"raw": d.raw, "value": d.value, "weight": d.weight, "contribution": d.contribution}
                    for name, d in hit.details.items()
                },
                "adjustments": dict(hit.adjustments),
                "sources": list(hit.sources),
            }
            for hit in result.hits
        ],
        "trace": {
            "profile": trace.profile,
            "scope": dict(trace.scope),
            "terms": list(trace.terms),
            "entities": list(trace.entities),
            "candidates": dict(trace.candidates),
            "pool": trace.pool,
            "weights": dict(trace.weights),
            "max_possible": trace.max_possible,
            "min_score": trace.min_score,
            "degraded": list(trace.degraded),
            "notes": list(trace.notes),
            "dropped": [{"id": d.id, "score": d.score, "reason": d.reason} for d in trace.dropped],
            "timings_ms": dict(trace.timings_ms),
        },
    }


def as_json(result: SearchResult) -> str:
    """`as_dict` as JSON text."""
    return json.dumps(as_dict(result), ensure_ascii=False, indent=2)
