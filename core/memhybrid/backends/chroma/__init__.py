"""Chroma as the store: on disk, in memory, over HTTP, or a collection that the user already has."""

from memhybrid.backends.chroma.backend import ChromaBackend
from memhybrid.backends.chroma.clients import attach_collection, connect_server, open_folder, open_memory
from memhybrid.backends.chroma.observe import observe

__all__ = ["ChromaBackend", "attach_collection", "connect_server", "observe", "open_folder", "open_memory"]
