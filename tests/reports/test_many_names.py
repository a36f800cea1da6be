"""Names that all mention, and names without number."""

from __future__ import annotations

from memhybrid import Memory
from tests.conftest import make_memory
from tests.reports.helpers import word


def test_six_thousand_memories_may_mention_one_name() -> None:
    """Report 24: links are kept in no metadata value, and a name that all mention neither stalls nor floods."""
    with make_memory() as memory:
        memory.add([Memory(f"{i:04}", f"Dana saw {word(i)}") for i in range(6_000)])
        assert len(memory.store.partitions.get("[]").view().linked("dana")) == 6_000
        assert memory.search(word(4711), profile="bm25").ids == ["4711"]
        assert memory.search(f"Dana {word(4711)}", k=5).ids[0] == "4711"
        memory.update("4711", "Dana saw nothing at all")
        assert memory.delete(["0000"]) == 1
        assert len(memory.store.partitions.get("[]").view().linked("dana")) == 5_999
        got = memory.collection.get(limit=100)
        assert [(i, m) for i, m in zip(got["ids"], got["metadatas"], strict=True) if m] == []


def test_twelve_thousand_names_have_no_cap() -> None:
    """Report 25: deleting the memory of the last name removes that name's link."""
    with make_memory() as memory:
        names = [word(i).title() for i in range(12_000)]
        memory.add([Memory(f"{i:05}", f"we met {name} there") for i, name in enumerate(names)])
        view = memory.store.partitions.get("[]").view()
        assert len(memory.store.partitions.get("[]").entities.names()) == 12_000
        assert len(view.linked(word(11_999))) == 1
        assert "11999" in memory.search(f"what about {word(11_999)}", k=5).ids
        assert memory.delete(["11999"]) == 1
        assert not len(memory.store.partitions.get("[]").view().linked(word(11_999)))
