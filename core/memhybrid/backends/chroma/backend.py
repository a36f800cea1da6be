"""One Chroma collection behind the Backend protocol: batches, pages, exact replacement, no surprises.

Facts about chromadb 1.5 that shape this file (tests/chroma_facts checks them): `upsert` merges metadata, so vanished keys are
sent as None; batches above `get_max_batch_size()` and unpaged reads above 32,766 rows fail; a stale index returns deleted ids
with document None; without explicit embeddings Chroma would fetch a model; after writes that failed on a full disk the engine in this
process hangs for ever at a later one.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from memhybrid.concurrency import ProcessLock
from memhybrid.errors import StoreDamagedError, StoreError
from memhybrid.protocols import Float32
from memhybrid.records import StoredRecord

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

    from memhybrid.backends.chroma.changes import ChromaChanges

PAGE = 5_000
_RACE = "Error finding id"
_PAUSES_S = (0.01, 0.05, 0.2)
_DAMAGE = (
    _RACE,
    "Error loading hnsw index",
    "Error creating hnsw segment reader",
    "hnsw segment",
    "pickle",
)
_DISK = (
    "disk is full",
    "disk I/O error",
    "Failed to apply logs",
    "Error purging logs",
    "No space left",
    "File too large",
)
_READ_ONLY = "attempt to write a readonly database"
OPENING = ProcessLock()
"""Held while a client is made or closed: Chroma's registry of engines takes no notice of other threads."""


@contextmanager
def chroma_errors(doing: str) -> Generator[None, None, None]:
    """Chroma's exceptions as ours, with what was being done; anything that is already ours passes."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        text = str(error) or type(error).__name__
        if any(sign in text for sign in _DAMAGE):
            raise StoreDamagedError(
                f"{doing}: Chroma cannot read its own index ({text}). The texts are usually intact: "
                "`memhybrid recover PATH` rebuilds the collection from them"
            ) from error
        if any(sign in text for sign in _DISK):
            text += ". The disk is probably full: make room there, and write again what was not acknowledged"
        if _READ_ONLY in text:
            text += (
                ". Make the folder writable, or copy it to where it may be: Chroma writes even to open one for reading"
            )
        raise StoreError(f"{doing}: {type(error).__name__}: {text}") from error


class ChromaBackend:
    """A Chroma collection. `changes` reads the local folder's counters; without it changes are found by comparison.

    `owned`: the client was made for this backend, and is closed with it.
    """

    def __init__(
        self, client: Any, collection: Collection, changes: ChromaChanges | None = None, *, owned: bool = False
    ) -> None:
        self.client = client
        self.collection = collection
        self._changes = changes
        self.owned = owned
        self._batch: int | None = None
        self._with_lists: set[str] = set()
        self._failed = False

    @contextmanager
    def _calling(self, doing: str) -> Generator[None, None, None]:
        """One call to Chroma; the error names where it is. A local engine that failed is started again before the next call."""
        if self._failed:
            self.start_again()
        try:
            with chroma_errors(f"{doing}{self._place()}"):
                yield
        except StoreDamagedError:
            raise
        except StoreError as error:
            self._failed = self._changes is not None and type(error.__cause__).__name__ == "InternalError"
            raise

    def start_again(self) -> None:
        """A new engine for every client of a local folder in this process; calls under way end on the old one."""
        server: Any = getattr(self.collection, "_client", None)
        if hasattr(server, "bindings") and callable(getattr(server, "start", None)):
            with chroma_errors(f"starting Chroma again{self._place()}"):
                server.start()
        self._failed = False

    def _place(self) -> str:
        if self._changes is not None:
            return f" in {self._changes.folder}"
        address = getattr(getattr(self.collection, "_client", None), "_api_url", None)
        return f" at {address}" if address else ""

    @property
    def identity(self) -> str:
        """The collection's id, new when it is dropped and made again."""
        return str(self.collection.id)

    @property
    def space(self) -> str:
        """The collection's distance: cosine, l2 or ip."""
        configuration: Any = self.collection.configuration
        for index in ("hnsw", "spann"):
            settings = configuration.get(index) if isinstance(configuration, Mapping) else None
            if settings and settings.get("space"):
                return str(settings["space"])
        legacy = (self.collection.metadata or {}).get("hnsw:space")
        return str(legacy or "l2")

    @property
    def batch_size(self) -> int:
        """How many rows one call may carry."""
        if self._batch is None:
            client: Any = self.client if self.client is not None else getattr(self.collection, "_client", None)
            with self._calling("asking Chroma for its batch size"):
                known = hasattr(client, "get_max_batch_size")
                self._batch = min(int(client.get_max_batch_size()), PAGE) if known else 1000
        return self._batch

    def upsert(self, records: Sequence[StoredRecord], *, previous: Mapping[str, Mapping[str, Any]]) -> None:
        """Store or replace. `previous` is the metadata that the ids have now; keys that vanish are removed."""
        for start in range(0, len(records), self.batch_size):
            part = records[start : start + self.batch_size]
            metadatas: list[Any] = []
            for record in part:
                metadata: dict[str, Any] = dict(record.metadata)
                for key in previous.get(record.id, {}):
                    metadata.setdefault(key, None)
                metadatas.append(metadata or None)
                if any(isinstance(value, list) for value in metadata.values()):
                    self._with_lists.add(record.id)
            with self._calling("writing to Chroma"):
                self.collection.upsert(
                    ids=[r.id for r in part],
                    documents=[r.text for r in part],
                    metadatas=metadatas,
                    embeddings=np.stack([r.vector for r in part if r.vector is not None]),
                )

    def delete(self, ids: Sequence[str]) -> None:
        """Remove; unknown ids are fine."""
        for start in range(0, len(ids), self.batch_size):
            with self._calling("deleting from Chroma"):
                self.collection.delete(ids=list(ids[start : start + self.batch_size]))

    def drop(self) -> None:
        """Delete the collection.

        Rows with lists in their metadata go first: Chroma 1.5 leaves these behind with the collection, and a row of another
        collection that gets the same number inherits them.
        """
        self.delete(list(self._with_lists))
        with self._calling("deleting the collection"):
            self.client.delete_collection(self.collection.name)

    def get(self, ids: Sequence[str], *, vectors: bool = True) -> list[StoredRecord]:
        """Those of the ids that exist, in any order."""
        out: list[StoredRecord] = []
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), PAGE):
            got = self._get(ids=wanted[start : start + PAGE], include=self._include(vectors))
            out.extend(_records(got))
        return out

    def _get(self, **what: Any) -> Any:
        """Chroma's get, tried again where a row was deleted while its vector was looked for, or another process wrote it.

        Only what stays so with a new engine is damage.
        """
        for pause in _PAUSES_S:
            try:
                with self._calling("reading from Chroma"):
                    return self.collection.get(**what)
            except StoreDamagedError as error:
                if _RACE not in str(error):
                    raise
                time.sleep(pause)
        self._failed = self._changes is not None
        with self._calling("reading from Chroma"):
            return self.collection.get(**what)

    def ids(self) -> Iterator[str]:
        """Every id. Ids that come or go meanwhile may be missed; the caller looks at the change token."""
        known = self._changes.ids() if self._changes else None
        if known is not None:
            yield from known
            return
        for page in self._raw_pages([]):
            yield from page["ids"]

    def pages(self, *, vectors: bool = True) -> Iterator[list[StoredRecord]]:
        """Everything, a page at a time. Rows that come or go meanwhile may be missed, as with `ids`."""
        for page in self._raw_pages(self._include(vectors)):
            yield _records(page)

    def _raw_pages(self, include: list[Any]) -> Iterator[Any]:
        offset = 0
        while True:
            got = self._get(limit=PAGE, offset=offset, include=include)
            if not got["ids"]:
                return
            yield got
            if len(got["ids"]) < PAGE:
                return
            offset += PAGE

    @staticmethod
    def _include(vectors: bool) -> list[Any]:
        return ["documents", "metadatas", "embeddings"] if vectors else ["documents", "metadatas"]

    def count(self) -> int:
        """Number of rows."""
        with self._calling("counting in Chroma"):
            return int(self.collection.count())

    def nearest(self, vector: Float32, n: int) -> list[str]:
        """Ids of about the n nearest rows by Chroma's own index and distance, best first. Deleted ones may be among them."""
        with self._calling("querying Chroma"):
            embeddings: Any = [vector]
            got = self.collection.query(query_embeddings=embeddings, n_results=n, include=["distances"])
        return list(got["ids"][0])

    def settle(self) -> None:
        """Let Chroma bring what a killed process left in its log into its tables, so that the change token means something."""
        if self._changes is not None and self._changes.pending():
            with self._calling("reading from Chroma"):
                self.collection.get(limit=1, include=[])

    def change_token(self) -> str | None:
        """The number of the last write, where Chroma's file tells it."""
        sequence = self._changes.sequence() if self._changes else None
        return None if sequence is None else str(sequence)

    def changed_since(self, token: str) -> list[str] | None:
        """Ids of existing rows written after the token. A folder that was put back to an earlier state cannot tell."""
        if self._changes is None or not token.isdigit() or int(self.change_token() or 0) < int(token):
            return None
        return self._changes.written_since(int(token))

    def close(self) -> None:
        """Let go of the folder's counters, and of the client where it is ours.

        Chroma's engine ends with its last client: its files may then be moved, or others put in their place.
        """
        if self._changes is not None:
            self._changes.close()
        if self.owned:
            self.release()

    def release(self) -> None:
        """Close the client."""
        if callable(getattr(self.client, "close", None)):
            with chroma_errors(f"closing Chroma{self._place()}"), OPENING:
                self.client.close()


def _records(got: Any) -> list[StoredRecord]:
    """Rows of a `get`. Rows without a document have an empty text: only vectors and metadata were stored."""
    ids = got["ids"]
    documents = got["documents"] or [None] * len(ids)
    metadatas = got["metadatas"] or [None] * len(ids)
    embeddings = got.get("embeddings")
    out: list[StoredRecord] = []
    for i, identifier in enumerate(ids):
        vector = None if embeddings is None or embeddings[i] is None else np.asarray(embeddings[i], dtype=np.float32)
        metadata = {k: v for k, v in (metadatas[i] or {}).items() if v is not None}
        out.append(StoredRecord(identifier, documents[i] or "", metadata, vector))
    return out
