"""All systems side by side: the same memories, the same vectors, the same questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from memhybrid.embedders import as_embedder
from memhybrid.errors import MissingExtraError
from memhybrid.evaluate.datasets import Dataset
from memhybrid.evaluate.run import Evaluation, MemorySystem, System, build, evaluate
from memhybrid.evaluate.significance import holm, randomisation
from memhybrid.evaluate.vectors import cached, warm
from memhybrid.profiles import Profile, as_profile
from memhybrid.text import default_analyzer

BASE = "balanced"
TESTED = ("ndcg@10", "recall@10")
OURS = ("semantic", "mem0", "tipsy", BASE)
Progress = Callable[[int, int], None]
Stage = Callable[[str], AbstractContextManager[Progress]]
"""Opens a progress display with a label; what it gives is called with (done, total)."""


@dataclass(frozen=True)
class Compared:
    """One system's evaluation, and for each tested metric the corrected p of its difference to the base (None: it is the base)."""

    evaluation: Evaluation
    p_values: dict[str, float] | None

    def as_dict(self) -> dict[str, Any]:
        """As `eval --compare --json` writes it: eval's object with the system and p on nDCG@10."""
        return {
            "system": self.evaluation.system,
            **self.evaluation.as_dict(),
            "p_value": None if self.p_values is None else self.p_values[TESTED[0]],
            "p_values": self.p_values,
        }


def compare(
    dataset: Dataset, *, stage: Stage, embedder: Any = None, analyzer: Any = "auto", extra: Profile | None = None
) -> list[Compared]:
    """Peers and profiles, `extra` among them where it is not one of the shipped; the base comes last.

    Latency leaves out embedding the question, which costs all of them the same.
    """
    try:
        from memhybrid.evaluate.peers import peers
    except ImportError as error:
        raise MissingExtraError(f"{error.name}, which the comparison needs,", "eval") from error
    vectors = cached(as_embedder(embedder))
    tokens = default_analyzer(analyzer)
    with stage(f"Indexing {len(dataset.memories)} memories") as moved:
        memory = build(dataset, embedder=vectors, analyzer=tokens, progress=moved)
    with memory:
        with stage("Embedding the questions") as moved:
            warm(vectors, [q.text for q in dataset.queries], moved)
        with stage("Building the peers") as moved:
            others = peers(dataset, vectors, tokens, moved)
        profiles = [as_profile(name) for name in OURS]
        if extra is not None and extra.name not in OURS:
            profiles.insert(-1, extra)
        ours = [MemorySystem(memory, p, scoped=dataset.scoped, name=_title(p)) for p in profiles]
        systems: list[System] = [ours[0], *others, *ours[1:]]
        found: list[Evaluation] = []
        try:
            for number, system in enumerate(systems, 1):
                with stage(f"{number}/{len(systems)} {system.name}") as moved:
                    found.append(evaluate(system, dataset, embedder=str(vectors.fingerprint), progress=moved))
        finally:
            others[-1].close()
    return judged(found)


def _title(profile: Profile) -> str:
    return "vectors alone" if profile.name == "semantic" else profile.name


def judged(found: Sequence[Evaluation]) -> list[Compared]:
    """Each system tested against the base, the last one, question by question."""
    base = found[-1]
    corrected: dict[str, dict[str, float]] = {}
    for metric in TESTED:
        mine = [row[metric] for row in base.rows.values()]
        raw = {e.system: randomisation([e.rows[q][metric] for q in base.rows], mine) for e in found[:-1]}
        corrected[metric] = holm(raw)
    return [
        *(Compared(e, {metric: corrected[metric][e.system] for metric in TESTED}) for e in found[:-1]),
        Compared(base, None),
    ]
