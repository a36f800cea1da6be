# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A LangChain chain over a Chroma store that you already have
#
# One line changes. The store, its documents and their vectors stay as they are, nothing is embedded again, and what is
# written through the stock store later is found at once.
#
# Needs `pip install 'memhybrid[langchain,local]' langchain-chroma`. Runs offline.

# %%
import tempfile

from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from langchain_memhybrid import MemHybridRetriever
from memhybrid.embedders import LocalEmbedder

# %% [markdown]
# ## What was there before
#
# Any LangChain embeddings will do. Here it is the English model that comes with memhybrid, so that no key and no network
# is needed.


# %%
class LocalEmbeddings(Embeddings):
    """The packaged English model as LangChain embeddings."""

    model = "local"

    def __init__(self) -> None:
        self._embedder = LocalEmbedder()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._embedder.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self._embedder.embed_query([text])[0].tolist()


folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
chroma = Chroma("helpdesk", LocalEmbeddings(), persist_directory=folder.name)

things = ["the lamp arrived broken", "the kettle does not heat", "the blender leaks", "the heater smells of smoke"]
customers = ["Mara Okafor", "Tom Lindqvist", "Ines Carvalho", "Yuki Tanaka", "Omar Haddad"]
tickets = [
    Document(
        id=f"ticket-{n}",
        page_content=f"Ticket BX-{4400 + 7 * n}: {customers[n % 5]} reports that {things[n % 4]}.",
        metadata={"customer": customers[n % 5], "year": 2023 + n % 2},
    )
    for n in range(40)
]
policies = [
    Document(id="policy-1", page_content="Broken goods are replaced within thirty days.", metadata={"year": 2024}),
    Document(id="policy-2", page_content="Refunds reach the account after five working days.", metadata={"year": 2024}),
]
chroma.add_documents([*tickets, *policies])

# %% [markdown]
# The chain asks a retriever, fills a prompt and calls a model. The model here only repeats the first line of its context;
# put your own in its place.

# %%
prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
# from langchain.chat_models import init_chat_model; model = init_chat_model("openai:gpt-4.1-mini")
model = RunnableLambda(lambda value: value.to_string().splitlines()[0].removeprefix("Human: "))


def as_text(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def chain_over(retriever):
    return {"context": retriever | as_text, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


question = "What is the matter with ticket BX-4561?"
before = chroma.as_retriever(search_kwargs={"k": 3})
print(chain_over(before).invoke(question))
for document in before.invoke(question):
    print("   ", document.id, "|", document.page_content)

# %% [markdown]
# To a vector one ticket number looks like another: the ticket asked for, `ticket-23`, is not among the three.

# %% [markdown]
# ## The one line

# %%
retriever = MemHybridRetriever.from_vectorstore(chroma, k=3)

print(chain_over(retriever).invoke(question))

# %% [markdown]
# Documents have their id, the metadata that they were stored with, and one more key that says why they are here.

# %%
best = retriever.invoke(question)[0]
print(best.id, {key: value for key, value in best.metadata.items() if key != "memhybrid"})
why = best.metadata["memhybrid"]
print(f"score {why['score']:.2f}, brought by {', '.join(why['sources'])}")
for name, value in why["signals"].items():
    print(f"    {name:10}", "not known" if value is None else f"{value:.2f}")

# %% [markdown]
# `k` and `filter` are given with a call where they differ, also through the run's config, for the whole chain.

# %%
for document in retriever.invoke("the kettle is cold", k=2, filter={"customer": "Mara Okafor", "year": 2024}):
    print(document.id, "|", document.page_content)

print(chain_over(retriever).invoke("a broken lamp", config={"configurable": {"filter": {"customer": "Yuki Tanaka"}}}))

# %% [markdown]
# ## Writing goes on as before
#
# New documents go through the stock store and can be found by their words at once; deleted ones are gone at once.

# %%
chroma.add_documents([Document(id="ticket-99", page_content="Ticket QR-9001: Pia Brandt asks for a second invoice.")])
print(retriever.invoke("QR-9001", k=1)[0].page_content)

chroma.delete(["ticket-99"])
print("ticket-99" in [document.id for document in retriever.invoke("QR-9001")])

# %%
assert "ticket-23" not in [document.id for document in before.invoke(question)]
assert chain_over(retriever).invoke(question).startswith("Ticket BX-4561")
assert best.id == "ticket-23"
assert best.metadata["customer"] == tickets[23].metadata["customer"]
assert [d.id for d in retriever.invoke("QR-9001", k=1)] != ["ticket-99"]
assert {d.metadata["year"] for d in retriever.invoke("a broken lamp", filter={"year": 2024})} == {2024}
