"""What SQLite says when there is no room, and what to do then."""

from __future__ import annotations

_SIGNS = ("disk is full", "disk I/O error")


def way_out(error: Exception) -> str:
    """A sentence for the end of a message; empty where the disk is not the reason."""
    if not any(sign in str(error) for sign in _SIGNS):
        return ""
    return ". The disk is probably full: make room there; nothing that was acknowledged is lost"
