# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A LlamaIndex pipeline over memhybrid
#
# Documents go through an `IngestionPipeline` into a `MemHybridVectorStore`. A changed document replaces its old version, in
# the vectors and in the keyword index at once. Questions are answered through a hybrid retriever that says why each node came
# back. Everything here runs offline: the packaged English embedder, and a mock in the place of the LLM.

# %%
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llamaindex_memhybrid import MemHybridRetriever, MemHybridVectorStore

# %% [markdown]
# ## Ingest
#
# The store brings the embedding that fits it. The pipeline puts only nodes *with* embeddings into a vector store, so
# `store.embed_model` is its last step.

# %%
handbook = {
    "boiler": (
        {"room": "cellar", "year": 2021},
        (
            "The boiler in the cellar is a Vireo 300. When it shows the fault code E-217 the water pressure is too low. "
            "Open the blue valve until the gauge reads 1.5 bar, then press reset for five seconds. "
            "If the code comes back within a week, call Mr. Lind, who has looked after the heating since the house was built."
        ),
    ),
    "wifi": (
        {"room": "office", "year": 2023},
        (
            "The router stands on the shelf in the office. Guests use the network Heron. "
            "If the connection is slow, restart the router and wait two minutes."
        ),
    ),
    "garden": (
        {"room": "garden", "year": 2022},
        (
            "The roses are watered on Monday and Thursday evening. The lawn is mown every second Saturday. "
            "Seeds and gloves are in the green box behind the shed."
        ),
    ),
    "cat": (
        {"room": "kitchen", "year": 2024},
        (
            "Miso gets dry food at seven in the morning and wet food at six in the evening. "
            "She must not have milk. The vet is Dr. Okafor in Mill Lane."
        ),
    ),
}


def documents() -> list[Document]:
    return [
        # The metadata is for filters; the splitter repeats it in every chunk, and nobody needs it embedded.
        Document(id_=name, text=text, metadata=metadata, excluded_embed_metadata_keys=["room", "year"])
        for name, (metadata, text) in handbook.items()
    ]


store = MemHybridVectorStore.from_params()  # in memory; path="./memory" keeps it
pipeline = IngestionPipeline(
    transformations=[SentenceSplitter(chunk_size=60, chunk_overlap=0), store.embed_model],
    vector_store=store,
    docstore=SimpleDocumentStore(),
    docstore_strategy=DocstoreStrategy.UPSERTS,
)
nodes = pipeline.run(documents=documents())
print(len(documents()), "documents,", len(nodes), "nodes")

# %% [markdown]
# Running it again does nothing: the docstore knows every document.

# %%
again = pipeline.run(documents=documents())
print(len(again), "nodes changed")

# %% [markdown]
# ## Ask
#
# The retriever fuses vectors, keywords, names and late interaction. Each node carries its score, the value of every signal and
# the sources that found it under `metadata["memhybrid"]`, out of sight of embedding models and LLMs.

# %%
retriever = MemHybridRetriever.from_memory(store.memory, similarity_top_k=3)


def show(found) -> None:
    for item in found:
        details = item.metadata["memhybrid"]
        signals = "  ".join(f"{name} {value:.2f}" for name, value in details["signals"].items() if value is not None)
        print(f"{item.score:.3f}  {item.node.ref_doc_id:7} {'+'.join(details['sources']):24} {signals}")
        print(f"       {item.text[:100]}")


fault = retriever.retrieve("what does E-217 mean?")
show(fault)

# %%
animal = retriever.retrieve("when do I feed the pet?")
show(animal)

# %% [markdown]
# ## A document changes
#
# The pipeline deletes the old chunks of the changed document and adds the new ones. Both halves of the index follow.

# %%
handbook["boiler"] = (
    {"room": "cellar", "year": 2025},
    (
        "The boiler was replaced by a heat pump, a Tern 12. Its fault code F-04 means that the air filter is full. "
        "Wash the filter with lukewarm water and let it dry for a day."
    ),
)
changed = pipeline.run(documents=documents())
print(len(changed), "nodes changed")
filters_full = retriever.retrieve("F-04")
show(filters_full[:1])
old = store.get_nodes(filters=MetadataFilters(filters=[MetadataFilter(key="year", value=2021)]))
print(len(old), "nodes of the old version are left")

# %% [markdown]
# ## Filters and options for one request
#
# `retrieve` takes no options in LlamaIndex, so a request's own come from a cheap copy. All filter operators and conditions work.

# %%
indoors = MetadataFilters(
    filters=[
        MetadataFilter(key="room", operator=FilterOperator.IN, value=["kitchen", "office"]),
        MetadataFilter(key="year", operator=FilterOperator.GTE, value=2023),
    ],
    condition=FilterCondition.AND,
)
inside = retriever.with_options(filters=indoors, similarity_top_k=2).retrieve("what happens in the evening?")
show(inside)

# %% [markdown]
# ## Query engines
#
# The retriever goes into a query engine, and the store into a `VectorStoreIndex`, whose own retriever has the query modes
# `default`, `sparse`, `hybrid` and `mmr`. The mock LLM repeats its prompt, so we see just what a real one would read.

# %%
engine = RetrieverQueryEngine.from_args(retriever.with_options(similarity_top_k=1), llm=MockLLM())
response = engine.query("which vet does the cat go to?")
print(response)

# %%
index = VectorStoreIndex.from_vector_store(store, embed_model=store.embed_model)
by_mode = {
    mode: index.as_retriever(vector_store_query_mode=mode, similarity_top_k=1).retrieve("Heron network")
    for mode in ("default", "sparse", "hybrid", "mmr")
}
for mode, found in by_mode.items():
    print(f"{mode:8} {found[0].score:.3f}  {found[0].node.ref_doc_id}")

# %% [markdown]
# ## What this showed

# %%
assert again == []
assert fault[0].node.ref_doc_id == "boiler"
assert "bm25" in fault[0].metadata["memhybrid"]["sources"]
assert animal[0].node.ref_doc_id == "cat"
assert {node.ref_doc_id for node in changed} == {"boiler"}
assert old == []
assert filters_full[0].node.ref_doc_id == "boiler"
assert all(item.metadata["room"] in ("kitchen", "office") for item in inside)
assert "Okafor" in str(response)
assert "memhybrid" not in str(response)
assert all(found[0].node.ref_doc_id == "wifi" for found in by_mode.values())
hits = store.memory.search("what does E-217 mean?", 3).hits
assert [(item.node_id, item.score) for item in retriever.retrieve("what does E-217 mean?")] == [
    (hit.memory.id, hit.score) for hit in hits
]
print("all as expected")
