"""Fitting hits into a number of tokens."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from typing import Any, cast

from memhybrid.errors import ConfigError, MissingExtraError

TokenCounter = Callable[[str], int]


def ceil4(text: str) -> int:
    """ceil(characters / 4): tipsy-memory's rule, right for English alone."""
    return math.ceil(len(text) / 4)


def script_aware(text: str) -> int:
    """About one token a wide (Chinese, Japanese, Korean) character or emoji, and one for four others; never below `ceil4`."""
    wide = sum(1 for c in text if c > "\u2e7f" and unicodedata.east_asian_width(c) in "WF")
    other = sum(1 for c in text if "\u007f" < c <= "\u2e7f")
    plain = len(text) - wide - other
    return wide + math.ceil(other / 2) + math.ceil(plain / 4)


def as_counter(counter: Any) -> TokenCounter:
    """A counter from "ceil4", "script", a tiktoken encoding or model name ("tiktoken:cl100k_base"), or a function of a text."""
    if callable(counter):
        return cast("TokenCounter", counter)
    if counter == "ceil4":
        return ceil4
    if counter == "script":
        return script_aware
    if isinstance(counter, str) and counter.startswith("tiktoken:"):
        return _tiktoken(counter.removeprefix("tiktoken:"))
    raise ConfigError(f"token_counter: expected 'script', 'ceil4', 'tiktoken:NAME' or a function, got {counter!r}")


def _tiktoken(name: str) -> TokenCounter:
    try:
        import tiktoken  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError("tiktoken", "tiktoken") from error
    try:
        encoding: Any = tiktoken.get_encoding(name)
    except ValueError:
        encoding = tiktoken.encoding_for_model(name)
    return lambda text: len(encoding.encode(text, disallowed_special=()))
