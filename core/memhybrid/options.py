"""The arguments that the three doors to a store share, checked before anything is opened."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memhybrid.embedders import as_embedder
from memhybrid.errors import ConfigError, InputError
from memhybrid.profiles import Profile, as_profile
from memhybrid.scope import Scopes, is_tenant
from memhybrid.store import Store
from memhybrid.text import default_analyzer
from memhybrid.values import optional_number, positive

if TYPE_CHECKING:
    pass


class Options:
    """The arguments that all three doors share, checked."""

    def __init__(
        self, embedder: Any, profile: Profile, scopes: Scopes, analyzer: Any, bm25: str, budget: int | None
    ) -> None:
        self.embedder = embedder
        self.profile = profile
        self.scopes = scopes
        self.analyzer = analyzer
        self.bm25 = bm25
        self.budget = budget

    @classmethod
    def of(
        cls,
        embedder: Any,
        profile: Any,
        scope_key: Any,
        analyzer: Any,
        bm25: str,
        consistency: str,
        strict: bool,
        budget: int | None,
    ) -> Options:
        """Checked, or an error that names the argument."""
        if not isinstance(consistency, str) or consistency not in ("bounded", "strong"):
            raise ConfigError(f"consistency: expected 'bounded' or 'strong', got {consistency!r}")
        if not isinstance(strict, bool):
            raise ConfigError(f"strict: expected True or False, got {strict!r}")
        if isinstance(analyzer, str) and not analyzer.strip():
            raise ConfigError(f"analyzer: expected 'auto', 'spacy', 'fast' or a pipeline, got {analyzer!r}")
        if not isinstance(bm25, str) or bm25 not in ("memhybrid", "rank-bm25"):
            raise ConfigError(f"bm25: expected 'memhybrid' or 'rank-bm25', got {bm25!r}")
        if budget is not None:
            budget = positive(budget, "memory_budget", most=2**62)
        return cls(
            as_embedder(embedder), as_profile(profile), Scopes.of(scope_key), default_analyzer(analyzer), bm25, budget
        )

    def settings(self, late_interaction: bool) -> dict[str, str]:
        """What two objects on one store must have in common, beside the embedder."""
        return {
            "scope_key": str(self.scopes.keys or None),
            "analyzer": self.analyzer.fingerprint,
            "bm25": self.bm25,
            "late_interaction": str(late_interaction),
        }

    def store(self, backend: Any, **options: Any) -> Store:
        """A store with these parts over a backend."""
        defaults: dict[str, Any] = {
            "state": None,
            "lock_folder": None,
            "read_only": False,
            "private": False,
            "staleness": 5.0,
            "late_interaction": True,
        }
        return Store(
            backend,
            embedder=self.embedder,
            analyzer=self.analyzer,
            scopes=self.scopes,
            memory_budget=self.budget,
            bm25=self.bm25,
            **{**defaults, **options},
        )


def state_key(state: Path, *, read_only: bool = False) -> tuple[str, ...]:
    """Whichever door it came through: who shares state must share the store."""
    return ("state", str(state), "read" if read_only else "write")


def state_folder(state_path: str | Path | None, folder: Path | None, identity: str) -> Path | None:
    """Where the state lies: where the user wants it, else beside a local folder, else in memory."""
    if state_path is not None:
        path = checked_folder(state_path, "state_path") / identity
        make_folder(path)
        return path
    return None if folder is None else folder / "memhybrid" / identity


def checked_folder(path: Any, name: str) -> Path:
    """The absolute path that an argument means."""
    if not isinstance(path, str | Path) or not str(path).strip() or "\x00" in str(path) or not is_tenant(str(path)):
        raise InputError(f"{name}: expected the path of a folder, got {path!r}")
    try:
        folder = Path(path).expanduser().resolve()
        is_file = folder.exists() and not folder.is_dir()
    except (OSError, RuntimeError) as error:  # a name that is too long, a loop of links, a home that is not known
        raise InputError(f"{name}: {str(path)[:200]!r} is no path of a folder: {error}"[:500]) from error
    if is_file:
        raise InputError(f"{name}: {folder} is a file, expected a folder")
    return folder


_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]")


def check_name(collection: Any) -> None:
    """Chroma's rule, before a folder is made."""
    if not isinstance(collection, str) or not _NAME.fullmatch(collection):
        raise InputError(
            f"collection: expected a name of 3 to 512 characters from a-z, A-Z, 0-9, '.', '_' and '-' that begins and ends "
            f"with a letter or a digit, got {collection!r}"
        )


def check_switches(**switches: Any) -> None:
    """InputError for the first that is neither True nor False."""
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise ConfigError(f"{name}: expected True or False, got {value!r}")


def make_folder(folder: Path) -> None:
    """The folder with all above it; InputError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"path: cannot make the folder {folder}: {error.strerror}") from error


def seconds(value: Any) -> float:
    """A staleness in seconds."""
    number = optional_number(value, "staleness")
    if number is None or number < 0:
        raise ConfigError(f"staleness: expected seconds of at least 0, got {value!r}")
    return number


def drop_collection(backend: Any) -> None:
    """An in-memory collection goes with its object, and with the last of them the engine's memory."""
    with suppress(Exception):  # at interpreter exit Chroma may be gone already
        backend.drop()
    with suppress(Exception):
        backend.release()
