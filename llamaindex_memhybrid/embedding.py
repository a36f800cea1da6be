"""The core's embedders as LlamaIndex embeddings, and the other way round."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from llama_index.core.settings import Settings

from memhybrid.concurrency import in_thread
from memhybrid.embedders import as_embedder


class MemHybridEmbedding(BaseEmbedding):
    """A memhybrid embedder for an index or a pipeline. Without an argument it is the packaged English model.

    `MemHybridVectorStore.embed_model` is the one that fits a store.
    """

    embedder: Any = Field(default=None, exclude=True, repr=False)

    def __init__(self, embedder: Any = None, **kwargs: Any) -> None:
        made = as_embedder(embedder)
        given: dict[str, Any] = {
            "model_name": str(made.fingerprint),
            "embed_batch_size": 256,
            **kwargs,
            "embedder": made,
        }
        super().__init__(**given)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "MemHybridEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.embedder.embed_documents(texts).tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.embedder.embed_query([query])[0].tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await in_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await in_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await in_thread(self._get_text_embeddings, texts)


def core_embedder(embed_model: Any) -> Any:
    """What the core takes for `embed_model`. None is the model in LlamaIndex's Settings where one was set, else the packaged one."""
    if embed_model is None:
        # The public property would look for OpenAI where nothing was set.
        embed_model = getattr(Settings, "_embed_model", None)
    return embed_model.embedder if isinstance(embed_model, MemHybridEmbedding) else embed_model
