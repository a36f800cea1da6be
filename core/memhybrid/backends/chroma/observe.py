"""A collection that tells us after every write that goes through it, whoever makes it.

Stock LangChain and LlamaIndex stores keep working: the observed collection is a chromadb `Collection` with the same client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memhybrid.backends.chroma.backend import PAGE

Touched = Callable[[list[str]], object]


def observe(collection: Any, touched: Touched) -> Any:
    """The same collection, calling `touched(ids)` after each write has been accepted by Chroma."""
    from chromadb.api.models.Collection import Collection

    class ObservedCollection(Collection):
        """A Collection whose writes are followed by memhybrid."""

        def add(self, ids: Any, *args: Any, **kwargs: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            super().add(ids, *args, **kwargs)
            touched(_listed(ids))

        def update(self, ids: Any, *args: Any, **kwargs: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            super().update(ids, *args, **kwargs)
            touched(_listed(ids))

        def upsert(self, ids: Any, *args: Any, **kwargs: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            super().upsert(ids, *args, **kwargs)
            touched(_listed(ids))

        def delete(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
            self, ids: Any = None, where: Any = None, where_document: Any = None, **kwargs: Any
        ) -> Any:
            gone = _listed(ids) if ids is not None else []
            if where is not None or where_document is not None:
                # Which rows a filter means is known only before they are gone.
                gone = self._matching(ids, where, where_document)
            result: Any = super().delete(ids=ids, where=where, where_document=where_document, **kwargs)
            touched(gone)
            return result

        def _matching(self, ids: Any, where: Any, where_document: Any) -> list[str]:
            found: list[str] = []
            while True:
                page = self.get(
                    ids=ids, where=where, where_document=where_document, include=[], limit=PAGE, offset=len(found)
                )["ids"]
                found.extend(page)
                if len(page) < PAGE:
                    return found

    observed = ObservedCollection.__new__(ObservedCollection)
    observed.__dict__.update(collection.__dict__)
    return observed


def _listed(ids: Any) -> list[str]:
    return [ids] if isinstance(ids, str) else [str(i) for i in ids]
