"""Fitting hits into a number of tokens."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from typing import Any, cast

from memhybrid.errors import ConfigError, MissingExtraError

TokenCounter = Callable[[str], int]
TIKTOKEN = "tiktoken:"


def ceil4(text: str) -> int:
    """ceil(characters / 4): tipsy-memory's rule, right for English alone."""
    return math.ceil(len(text) / 4)


def script_aware(text: str) -> int:
    """About one token a wide (Chinese, Japanese, Korean) character or emoji, and one for four others; never below `ceil4`."""
    wide = sum(1 for c in text if c > "\u2e7f" and unicodedata.east_asian_width(c) in "WF")
    other = sum(1 for c in text if "\u007f" < c <= "\u2e7f")
    plain = len(text) - wide - other
    return wide + math.ceil(other / 2) + math.ceil(plain / 4)


def check_counter(counter: Any) -> None:
    """ConfigError for what cannot count tokens. Whether tiktoken is installed shows when it is used."""
    known = isinstance(counter, str) and (
        counter in ("ceil4", "script") or (counter.startswith(TIKTOKEN) and counter != TIKTOKEN)
    )
    if not callable(counter) and not known:
        raise ConfigError(f"token_counter: expected 'script', 'ceil4', 'tiktoken:NAME' or a function, got {counter!r}")


def as_counter(counter: Any) -> TokenCounter:
    """A counter from "ceil4", "script", a tiktoken encoding or model name ("tiktoken:cl100k_base"), or a function of a text."""
    check_counter(counter)
    if callable(counter):
        return cast("TokenCounter", counter)
    if counter == "ceil4":
        return ceil4
    return script_aware if counter == "script" else _tiktoken(counter.removeprefix(TIKTOKEN))


def _tiktoken(name: str) -> TokenCounter:
    try:
        import tiktoken  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError("tiktoken", "tiktoken") from error
    try:
        encoding: Any = (
            tiktoken.get_encoding(name) if name in tiktoken.list_encoding_names() else tiktoken.encoding_for_model(name)
        )
    except KeyError as error:
        raise ConfigError(f"token_counter: tiktoken knows neither an encoding nor a model {name!r}") from error
    return lambda text: len(encoding.encode(text, disallowed_special=()))


class Counting:
    """A counter that goes on by `script_aware` where the chosen one fails, and keeps what it failed with."""

    def __init__(self, counter: Any) -> None:
        self.error: Exception | None = None
        try:
            self._count = as_counter(counter)
        except Exception as error:  # noqa: BLE001 - tiktoken may want its tables from the network; the trace says so
            self.error, self._count = error, script_aware

    def __call__(self, text: str) -> int:
        """Tokens of a text, at least 0."""
        try:
            return max(math.ceil(self._count(text)), 0)
        except Exception as error:  # noqa: BLE001 - somebody's function; the trace says so
            self.error, self._count = error, script_aware
            return script_aware(text)
