"""Every error that memhybrid raises on purpose.

    MemHybridError
    ├── ConfigError (ValueError)        a profile, a limit or an option that cannot work
    ├── InputError (ValueError)         an argument or a memory that cannot be taken; nothing was written
    │   ├── FilterError                 a filter that cannot be understood or translated
    │   ├── ScopeError                  a scope that is missing, wrong or another's
    │   └── MetadataError               a metadata value that cannot be stored
    ├── EmbedderError (ValueError)      the embedder does not fit the store
    ├── MissingExtraError (ImportError) an optional package is needed; names the extra
    ├── StoreError (RuntimeError)       Chroma or the state folder failed
    │   ├── StoreLockedError            another process writes to this folder
    │   └── StoreDamagedError           Chroma cannot read its own folder; see `memhybrid recover`
    └── DegradedError (RuntimeError)    `strict` is on and a signal, model or pipeline is missing

Messages name the argument or the memory's id and say what to do. They never carry another tenant's text or id.
"""

from __future__ import annotations


class MemHybridError(Exception):
    """Base of every error raised on purpose by memhybrid."""


class ConfigError(MemHybridError, ValueError):
    """A profile, a limit or an option that cannot work."""


class InputError(MemHybridError, ValueError):
    """An argument or a memory that cannot be taken; nothing was written."""


class FilterError(InputError):
    """A filter that cannot be understood or translated."""


class ScopeError(InputError):
    """A scope that is missing, wrong or another tenant's."""


class MetadataError(InputError):
    """A metadata value that cannot be stored without losing something."""


class EmbedderError(MemHybridError, ValueError):
    """The embedder does not fit the vectors that the store already has."""


class MissingExtraError(MemHybridError, ImportError):
    """An optional package is needed; the message names the extra to install."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed; run: pip install 'memhybrid[{extra}]'")
        self.extra = extra


class StoreError(MemHybridError, RuntimeError):
    """Chroma or the state folder failed. `written` are the ids that the failing call had written, or deleted, before."""

    written: tuple[str, ...] = ()


class StoreLockedError(StoreError):
    """Another process writes to this folder."""


class StoreDamagedError(StoreError):
    """Chroma cannot read its own folder; `memhybrid recover PATH` rebuilds it from what is left."""


class DegradedError(MemHybridError, RuntimeError):
    """`strict` is on and a signal, a model or a pipeline is missing."""
