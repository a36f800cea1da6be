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
# # An agent with a long-term memory for two users
#
# One agent, one store, two users. What a user told the agent is found again in a later conversation, and only in that
# user's. Who the user is comes from the run's config: the model neither sees nor chooses it.
#
# Needs `pip install 'memhybrid[langchain,local]' langchain`. Runs offline, with a scripted model.

# %%
import re

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import create_retriever_tool, tool

from langchain_memhybrid import MemHybridRetriever
from memhybrid import HybridMemory, ScopeError

# %% [markdown]
# ## The memory
#
# `scope_key` keeps tenants apart: each has indexes of its own, and a search without a scope is an error, not a search
# through everybody's memories. Give a path, `HybridMemory.open("./memory", …)`, to keep it.

# %%
memory = HybridMemory.open(scope_key="user_id", embedder="local")

# %% [markdown]
# ## Two tools
#
# `recall` is LangChain's own retriever tool; the retriever reads `scope` from the config of the run that it is called in.
# `remember` takes the same from the config that LangChain hands to tools.


# %%
@tool
def remember(fact: str, config: RunnableConfig) -> str:
    """Keep a fact about the user for later conversations."""
    memory.scoped(**config["configurable"]["scope"]).add(fact)
    return "noted"


recall = create_retriever_tool(
    MemHybridRetriever.from_memory(memory, k=1),
    "recall",
    "Look up what the user said in earlier conversations.",
    response_format="content_and_artifact",
)

# %% [markdown]
# ## The agent
#
# The scripted model does what a real one would: it keeps statements, looks up what it is asked, and answers with what the
# tool returned.


# %%
class Scripted(BaseChatModel):
    """Calls `remember` for statements and `recall` for questions."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_args, **_kwargs):
        return self

    def _generate(self, messages, *_args, **_kwargs) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            message = AIMessage("I will keep that in mind." if last.name == "remember" else f"You said: {last.content}")
        elif last.text.endswith("?"):
            message = AIMessage("", tool_calls=[{"name": "recall", "args": {"query": last.text}, "id": "1"}])
        else:
            message = AIMessage("", tool_calls=[{"name": "remember", "args": {"fact": last.text}, "id": "1"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


model = Scripted()
# With a real model: model = "openai:gpt-4.1-mini"  (pip install langchain-openai, and set OPENAI_API_KEY)
agent = create_agent(model, [remember, recall])


def say(user: str, text: str) -> list:
    """One turn of a conversation that begins anew each time: nothing but the memory connects the turns."""
    config = {"configurable": {"scope": {"user_id": user}}}
    messages = agent.invoke({"messages": [HumanMessage(text)]}, config)["messages"]
    print(f"{user:5} {text}\n      -> {messages[-1].text}")
    return messages


# %%
say("alice", "I am allergic to peanuts, so no satay for me.")
say("alice", "My sister Ingrid gets married in Bergen in June.")
say("alice", "I prefer window seats on long flights.")
say("bob", "I love satay with a lot of peanuts.")
say("bob", "My locker code at the gym is QF-3319.")
say("bob", "On flights I always take the aisle.")

# %% [markdown]
# ## Later
#
# The same question, asked by both, has each one's own answer.

# %%
answers = {user: say(user, "Which seat should I book on the flight?")[-1].text for user in ("alice", "bob")}

# %%
peanuts = {user: say(user, "Can I eat peanuts?")[-1].text for user in ("alice", "bob")}

# %% [markdown]
# Alice cannot get at Bob's code, even by asking for it word by word. The best that there is in her own memories comes back.

# %%
stolen = say("alice", "What is the locker code QF-3319?")
found = say("bob", "What is the code of my locker?")

# %% [markdown]
# The tool message carries the documents as its artifact, with ids and scores, for citations or a log.

# %%
for document in next(m for m in found if isinstance(m, ToolMessage)).artifact:
    print(document.page_content, "| score", round(document.metadata["memhybrid"]["score"], 2))

# %% [markdown]
# A run without a scope is refused. So is one that would widen the scope of a retriever that has one.

# %%
try:
    MemHybridRetriever.from_memory(memory).invoke("locker code")
except ScopeError as error:
    print(error)

try:
    MemHybridRetriever.from_memory(memory, scope={"user_id": "alice"}).invoke("code", scope={"user_id": "bob"})
except ScopeError as error:
    print(error)

# %%
assert "window" in answers["alice"]
assert "aisle" in answers["bob"]
assert "allergic" in peanuts["alice"]
assert "love satay" in peanuts["bob"]
assert not re.search(r"locker code at the gym", " ".join(m.text for m in stolen))
assert "QF-3319" in found[-1].text
assert memory.scoped(user_id="alice").count() == memory.scoped(user_id="bob").count() == 3
