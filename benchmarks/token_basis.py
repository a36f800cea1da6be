"""How `memhybrid/data/token_basis.npz` was fitted: sentences from templates, and English sentences of installed documentation.

    python benchmarks/token_basis.py OUTPUT.npz

No labelled set is read. Which documentation is installed decides the result in detail, not in kind.
"""

from __future__ import annotations

import ast
import random
import re
import sys
import sysconfig
from pathlib import Path

import numpy as np

from memhybrid.embedders import LocalEmbedder
from memhybrid.late import DIMENSIONS, is_word

NAMES = [
    "Alice",
    "Bob",
    "Chen",
    "Wei",
    "Priya",
    "Omar",
    "Sofia",
    "Lucas",
    "Hannah",
    "Diego",
    "Yuki",
    "Fatima",
    "Noah",
    "Ingrid",
    "Kofi",
    "Elena",
    "Peter",
    "Nadia",
    "Tom",
    "Grace",
    "Ravi",
    "Zoe",
    "Ivan",
    "Leila",
    "Marcus",
    "Emily",
    "Hugo",
    "Mia",
    "Felix",
    "Rosa",
]

REL = [
    "my sister",
    "my brother",
    "my mom",
    "my dad",
    "my grandmother",
    "my best friend",
    "my boss",
    "my neighbour",
    "my daughter",
    "my son",
    "my husband",
    "my wife",
    "my roommate",
    "my colleague",
    "my cousin",
    "our teacher",
    "the doctor",
    "my dentist",
    "a friend from college",
    "my landlord",
]

THING = [
    "a new laptop",
    "an old guitar",
    "a red bicycle",
    "a bowl of noodles",
    "a chocolate cake",
    "a painting of the sea",
    "a used car",
    "a pair of running shoes",
    "a wooden table",
    "a mystery novel",
    "a camera",
    "some tomatoes",
    "a silver necklace",
    "a tent",
    "a board game",
    "a concert ticket",
    "a cup of green tea",
    "a science fiction film",
    "a loaf of bread",
    "a garden shed",
    "a winter coat",
    "a telescope",
    "a piano",
    "a violin",
    "a puppy",
    "a black cat",
    "a parrot",
    "an aquarium",
    "a house plant",
    "a recipe book",
    "a comic",
    "a headset",
    "a phone charger",
    "a puzzle",
    "a sewing machine",
    "a birthday card",
    "a pottery bowl",
    "a surfboard",
    "a chess set",
    "a podcast",
]

ACT = [
    "went hiking in the mountains",
    "baked bread",
    "played football",
    "learned to swim",
    "painted the kitchen",
    "started a new job",
    "finished a marathon",
    "adopted a dog",
    "moved to a bigger apartment",
    "visited the museum",
    "took a photography course",
    "joined a book club",
    "volunteered at a shelter",
    "watched a documentary",
    "cooked dinner for everyone",
    "planted roses in the garden",
    "fixed the washing machine",
    "lost the keys",
    "missed the train",
    "passed the driving test",
    "wrote a short story",
    "recorded a song",
    "won a local tournament",
    "applied for a scholarship",
    "opened a small bakery",
    "raised money for charity",
    "broke an arm",
    "went to therapy",
    "quit smoking",
    "got engaged",
    "signed a contract",
    "debugged a nasty crash",
    "built a small website",
    "streamed a video game",
    "went camping by the lake",
    "met an old friend",
    "saw a beautiful sunset",
    "had a job interview",
    "attended a wedding",
    "graduated from university",
    "donated clothes",
    "practised yoga",
    "flew to a conference",
    "bought a house",
    "repaired a motorbike",
    "organised a party",
    "studied economics",
    "taught a class of children",
    "tried a new restaurant",
    "rode a horse",
]

PLACE = [
    "Paris",
    "Tokyo",
    "the beach",
    "the park",
    "the office",
    "a small village",
    "Canada",
    "Brazil",
    "the library",
    "the gym",
    "the hospital",
    "a coffee shop",
    "Seattle",
    "Berlin",
    "the supermarket",
    "the theatre",
    "the community centre",
    "school",
    "church",
    "the stadium",
    "Mexico",
    "Shanghai",
    "New Zealand",
    "the lake",
    "my hometown",
    "the airport",
    "downtown",
    "the animal shelter",
    "Ireland",
    "a music festival",
]

TIME = [
    "yesterday",
    "last week",
    "two days ago",
    "last Friday",
    "in May 2021",
    "on 3 August",
    "next month",
    "this weekend",
    "a few years ago",
    "when I was ten",
    "in the summer",
    "tonight",
    "every morning",
    "since January",
    "last night",
    "tomorrow",
    "three weeks from now",
    "on Tuesday",
    "during the holidays",
    "in 2019",
]

FEEL = [
    "happy",
    "proud",
    "nervous",
    "exhausted",
    "grateful",
    "excited",
    "a bit sad",
    "relieved",
    "angry",
    "inspired",
    "worried",
    "calm",
    "lonely",
    "curious",
    "overwhelmed",
    "motivated",
    "bored",
    "jealous",
    "hopeful",
    "shocked",
]

TOPIC = [
    "cooking",
    "politics",
    "jazz",
    "gardening",
    "mental health",
    "climate change",
    "basketball",
    "parenting",
    "robotics",
    "poetry",
    "fashion",
    "history",
    "travel",
    "astronomy",
    "dance",
    "nutrition",
    "chemistry",
    "adoption",
    "photography",
    "coding",
    "meditation",
    "wildlife",
    "fantasy novels",
    "board games",
    "education reform",
    "veterans",
    "painting",
    "home design",
    "surfing",
    "car restoration",
]

TEMPLATES = """\
{n}: Hey {n2}! Good to hear from you. How have you been?
{n}: I {a} {t} and I felt really {f} afterwards.
{n}: Wow, that's amazing! Where did you find {th}?
{n}: Thanks, {n2}! {r} gave me {th} {t}, it means a lot to me.
{n}: What kind of {to} are you into these days?
{n}: Honestly, {to} helps me relax after work. Have you ever tried it?
{n}: We are planning a trip to {p} {t}. Any tips?
{n}: {r} {a} at {p}. [shares a photo of {th} on a table]
{n}: That sounds like a lot of fun, I'm so {f} for you!
{n}: No way! I didn't know that {r} lives in {p}.
{n}: I've been thinking about {to} a lot, and it made me {f}.
{n} {a} {t} and felt {f}.
{n} is interested in {to} and wants to learn more about it.
{n} bought {th} in {p} {t}.
{n} plans to visit {p} with {r}.
{n}'s favourite hobby is {to}.
{n} believes that {to} brings people together.
{n} and {n2} met at {p} {t}.
What did {n} do {t}?
When did {n} go to {p}?
Who gave {n} {th}?
Where does {n} usually go for {to}?
How did {n} feel after the trip to {p}?
Why is {n} so {f} about {to}?
Which {to} event did {n} attend {t}?
How long has {n} been interested in {to}?
What advice did {n} give to {n2} about {to}?
Does {n} like {to}?
The user prefers {to} and owns {th}.
The user said that {r} {a} {t}.
Remember that I am allergic to peanuts and that {r} is {f} today.
Please remind me to buy {th} before we go to {p}.
I {a}, then I went to {p} to look for {th}.
It was {f} of them to say so, but {r} only cares about {to}.
Yeah, {to} can be hard, but keep going. You've got this!
Do you remember the time {r} {a}? It was {t}, I think.
Our meeting about {to} was moved to {t} because {n} {a}.
The article explains how {to} changed life in {p}.
{p} is known for {to}, and many visitors come there every year.
My phone number changed {t}; the old one no longer works.
""".splitlines()


def template_sentence(chance: random.Random) -> str:
    """One sentence of a conversation, a note or a question."""
    name, other = chance.sample(NAMES, 2)
    return chance.choice(TEMPLATES).format(
        n=name,
        n2=other,
        a=chance.choice(ACT),
        t=chance.choice(TIME),
        th=chance.choice(THING),
        r=chance.choice(REL),
        p=chance.choice(PLACE),
        f=chance.choice(FEEL),
        to=chance.choice(TOPIC),
    )


def documentation(chance: random.Random, most: int) -> list[str]:
    """English sentences from docstrings of the standard library and of scientific packages, as far as these are installed."""
    found: set[str] = set()
    paths = sysconfig.get_paths()
    files = sorted(Path(paths["stdlib"]).glob("*.py"))
    for package in ("numpy", "scipy", "matplotlib", "networkx"):
        files.extend(sorted((Path(paths["purelib"]) / package).rglob("*.py")))
    chance.shuffle(files)
    for file in files[:900]:
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                for part in re.split(r"(?<=[.!?])\s+|\n\s*\n", ast.get_docstring(node) or ""):
                    sentence = " ".join(part.split())
                    plain = sum(c.isalpha() or c in " ,.'?!" for c in sentence)
                    if 6 <= len(sentence.split()) <= 40 and sentence[0].isupper() and plain > 0.96 * len(sentence):
                        found.add(sentence)
    chosen = sorted(found)
    chance.shuffle(chosen)
    return chosen[:most]


def main(target: str) -> None:
    """Mean and 128 principal axes of unit token vectors, each axis scaled by its relative variance to the power -1/4."""
    chance = random.Random(7)
    templates = sorted({template_sentence(chance) for _ in range(5_000)})
    chance.shuffle(templates)
    rows = []
    for sentences in (templates[:3_500], documentation(chance, 3_000)):
        _, tokens = LocalEmbedder().encode(sentences)
        vectors = np.concatenate([t.vectors for t in tokens if any(map(is_word, t.tokens))])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        rows.append(vectors[np.random.default_rng(0).permutation(len(vectors))[:45_000]])
    everything = np.concatenate(rows)
    mean = everything.mean(axis=0)
    variance, axes = np.linalg.eigh(np.cov((everything - mean).T))
    variance, axes = variance[::-1][:DIMENSIONS], axes[:, ::-1][:, :DIMENSIONS]
    # Soft whitening: halves the dominance of the first axes.
    np.savez_compressed(
        target, mean=mean.astype(np.float16), proj=(axes * (variance / variance[0]) ** -0.25).astype(np.float16)
    )


if __name__ == "__main__":
    main(sys.argv[1])
