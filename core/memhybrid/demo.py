"""`memhybrid demo`: questions that need different signals, the answers, and beside them what vectors alone would say."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from memhybrid.explain import shorten
from memhybrid.memory import HybridMemory
from memhybrid.records import Hit, Memory, SearchResult

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType
    from rich.table import Table

    from memhybrid.profiles import Profile

SCOPE = "user_id"
TOP = 3
SAMPLE = 12
SHORTER_SAMPLE = 4
TEXT_COLUMNS = {True: 400, False: 120}
"""A memory's text is shown up to here: one that answers the question whole, others about three lines."""
NEEDS = {
    "bm25": "exact words (BM25)",
    "entity": "names",
    "semantic": "meaning (vectors)",
    "context": "the turns around it",
    "date": "dates",
    "late_interaction": "meaning word by word (late interaction)",
}
LEGEND = "✓ answers the question · every signal lies in 0–1, – where it does not know · the strongest is bold"
SCRIPT_NOTE = " The model does not read this script: vectors are left out above (try --embedder local-multilingual)"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Question:
    """One question: who asks it, which memories answer it, which signal it needs and why, where that is known."""

    text: str
    user: Any
    relevant: frozenset[str]
    needs: str | None = None
    why: str | None = None


@dataclass(frozen=True)
class Material:
    """What a demo runs on."""

    title: str
    memories: Sequence[Memory]
    questions: Sequence[Question]
    scoped: bool


@dataclass(frozen=True)
class Answer:
    """A question's result by the profile, and by vectors alone."""

    question: Question
    ours: SearchResult
    vectors: SearchResult

    def found(self, result: SearchResult, first: int) -> bool:
        """Whether a right memory is among the first hits."""
        return not self.question.relevant.isdisjoint(result.ids[:first])


def _lines(name: str) -> list[dict[str, Any]]:
    text = resources.files("memhybrid.data").joinpath(name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def packaged(*, quick: bool = False) -> Material:
    """The example memories and questions that ship with the package; with `quick` one question for each signal."""
    memories = [Memory(row["id"], row["text"], row["metadata"]) for row in _lines("example_memories.jsonl")]
    questions = [
        Question(row["text"], row[SCOPE], frozenset(row["relevant"]), row["needs"], row["why"])
        for row in _lines("example_questions.jsonl")
    ]
    if quick:
        questions = list({q.needs: q for q in reversed(questions)}.values())[::-1]
    users = len({m.metadata[SCOPE] for m in memories})
    title = f"{len(memories)} example memories of {users} people, English and Chinese"
    return Material(title, memories, questions, True)


def from_folder(folder: Path, *, quick: bool = False) -> Material:
    """A labelled dataset with a sample of its queries."""
    from memhybrid.evaluate.datasets import load_dataset

    data = load_dataset(folder)
    count = min(SHORTER_SAMPLE if quick else SAMPLE, len(data.queries))
    chosen = [data.queries[(2 * i + 1) * len(data.queries) // (2 * count)] for i in range(count)]
    return Material(
        f"{data.name}: {len(data.memories)} memories, {count} of {len(data.queries)} queries",
        data.memories,
        [Question(q.text, q.user, frozenset(q.relevant)) for q in chosen],
        data.scoped,
    )


def build(material: Material, *, embedder: Any = None, progress: Progress | None = None) -> HybridMemory:
    """A store in memory that holds the material's memories, each user's apart."""
    with warnings.catch_warnings():
        # Scripts that the embedder is not for are said with the questions that they concern.
        warnings.filterwarnings("ignore", message=".*not meant for the script")
        memory = HybridMemory.open(None, embedder=embedder, scope_key=SCOPE if material.scoped else None)
        memory.add(material.memories, progress=progress)
    return memory


def ask(
    memory: HybridMemory, material: Material, profile: Profile, *, progress: Progress | None = None
) -> list[Answer]:
    """Ask every question twice: by the profile, and by vectors alone."""
    answers: list[Answer] = []
    for done, question in enumerate(material.questions, 1):
        view = memory.scoped(**{SCOPE: question.user}) if material.scoped else memory
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not meant for the script")
            # Labels of a dataset count memories that have expired as well; the examples show that these stay out.
            outdated = question.needs is None
            ours = view.search(question.text, TOP, profile=profile, include_outdated=outdated, record_usage=False)
            vectors = view.search(question.text, TOP, profile="semantic", include_outdated=outdated)
        answers.append(Answer(question, ours, vectors))
        if progress is not None:
            progress(done, len(material.questions))
    return answers


# --- on the screen ---------------------------------------------------------------------------------------------------


def show(
    console: Console, memory: HybridMemory, material: Material, profile: Profile, answers: Sequence[Answer]
) -> None:
    """Every question with both answers, then the tally."""
    from rich.padding import Padding
    from rich.rule import Rule
    from rich.text import Text

    model = memory.embedder.fingerprint.name
    console.print(Text.assemble((material.title, "bold"), f" · profile {profile.name} · embedder {model}"))
    console.print(Text(LEGEND, style="dim"))
    for number, answer in enumerate(answers, 1):
        question = answer.question
        console.print()
        console.print(Rule(Text(f"Question {number} of {len(answers)}", style="dim"), align="left", style="dim"))
        asker = f"{question.user} asks: " if question.user is not None else ""
        console.print(Text.assemble(asker, (question.text, "bold cyan")))
        if question.needs is not None:
            needs = NEEDS.get(question.needs, question.needs)
            console.print(Text.assemble("needs ", (needs, "bold"), f": {question.why}"))
        console.print()
        console.print(Padding(_with_signals(answer, profile), (0, 0, 1, 1)))
        console.print(Padding(_by_vectors(answer), (0, 0, 0, 1)))
        if not memory.embedder.covers(question.text):
            console.print(Text(SCRIPT_NOTE, style="dim"))
        for text in answer.ours.trace.degraded:
            console.print(Text(f"degraded: {text}", style="yellow"))
    console.print()
    console.print(_summary(profile, answers))


def _text(hit: Hit, right: bool) -> RenderableType:
    from rich.text import Text

    return Text(shorten(hit.memory.text, TEXT_COLUMNS[right]), style="green" if right else "")


def _place(rank: int, right: bool) -> RenderableType:
    from rich.text import Text

    return Text(f"✓ {rank}" if right else f"  {rank}", style="bold green" if right else "")


def _plain(title: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    return Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        expand=True,
    )


def _with_signals(answer: Answer, profile: Profile) -> Table:
    """The hits with each signal's value; the one that added most is bold."""
    from rich.text import Text

    made = _plain(f"{profile.name}: all signals")
    hits = answer.ours.hits
    names = list(dict.fromkeys(name for hit in hits for name in hit.signals))
    extra = list(dict.fromkeys(name for hit in hits for name in hit.adjustments))
    made.add_column("  #", width=4)
    for name in ["score", *names, *extra]:
        made.add_column(name.replace("_", " "), justify="right", min_width=5)
    made.add_column("found by", min_width=8)
    made.add_column("text", ratio=1, overflow="fold")
    for rank, hit in enumerate(hits, 1):
        right = hit.memory.id in answer.question.relevant
        added = {name: detail.contribution for name, detail in hit.details.items()} | dict(hit.adjustments)
        most = max(added, key=lambda name: added[name], default=None)
        cells = [Text(f"{hit.score:.3f}", style="bold")]
        for name in names:
            value = hit.signals.get(name)
            cells.append(Text("–" if value is None else f"{value:.2f}", style="bold magenta" if name == most else ""))
        for name in extra:
            gained = hit.adjustments.get(name)
            cells.append(Text("" if gained is None else f"{gained:+.2f}", style="bold magenta" if name == most else ""))
        made.add_row(_place(rank, right), *cells, Text("\n".join(hit.sources)), _text(hit, right))
    return made


def _by_vectors(answer: Answer) -> Table:
    """The same question by cosine alone."""
    from rich.text import Text

    made = _plain("vectors alone")
    made.add_column("  #", width=4)
    made.add_column("score", justify="right", min_width=5)
    made.add_column("text", ratio=1, overflow="fold")
    for rank, hit in enumerate(answer.vectors.hits, 1):
        right = hit.memory.id in answer.question.relevant
        made.add_row(_place(rank, right), Text(f"{hit.score:.3f}"), _text(hit, right))
    return made


def _summary(profile: Profile, answers: Sequence[Answer]) -> Table:
    """In how many questions a right memory came first, and among the first three, by what the questions need."""
    from rich.table import Table

    made = Table(title="Where a right memory was", title_justify="left")
    made.add_column("questions that need")
    made.add_column("asked", justify="right")
    for name in (profile.name, "vectors alone"):
        made.add_column(f"{name}\nfirst", justify="right")
        made.add_column(f"{name}\ntop {TOP}", justify="right")

    def row(label: str, some: Sequence[Answer], style: str = "") -> None:
        ours = [sum(a.found(a.ours, n) for a in some) for n in (1, TOP)]
        vectors = [sum(a.found(a.vectors, n) for a in some) for n in (1, TOP)]
        made.add_row(label, str(len(some)), *map(str, [*ours, *vectors]), style=style)

    for needs in dict.fromkeys(a.question.needs for a in answers if a.question.needs):
        row(NEEDS.get(needs, needs), [a for a in answers if a.question.needs == needs])
    made.add_section()
    row("all", answers, "bold")
    return made
