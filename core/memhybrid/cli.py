"""The command line: `memhybrid --help`. It needs the extra "cli". An error is one line and exit code 2."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from memhybrid.errors import MemHybridError, MissingExtraError

FAILED = 2


def main() -> None:
    """Run the command line and exit."""
    warnings.showwarning = _note  # type: ignore[assignment]
    try:
        try:
            from memhybrid.commands.app import app
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("typer", "rich", "click"):
                raise
            raise MissingExtraError(f"{error.name}, which the command line needs,", "cli") from None
        app()
    except MemHybridError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)  # noqa: T201 - rich may be what is missing
        sys.exit(FAILED)


def _note(message: Warning | str, category: type[Warning], *_: Any) -> None:
    """Our own warnings as one line; what other packages grumble about is not for people at a terminal."""
    if category.__module__.startswith("memhybrid") or category is UserWarning:
        print(f"note: {' '.join(str(message).split())}", file=sys.stderr)  # noqa: T201 - rich may be what is missing
