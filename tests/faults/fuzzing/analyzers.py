"""Texts that nobody would write, through every analyser and everything else that reads text: no error, one answer, bounded time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from memhybrid.protocols import Analysis, QueryAnalysis
from memhybrid.signals.identifier import identifiers
from memhybrid.text import FastAnalyzer, SpacyAnalyzer, dominant_script, entity_key, lexer, scripts
from memhybrid.text.dates import dates_in
from memhybrid.text.lexer import Lexer
from memhybrid.text.names import candidate_names
from memhybrid.text.normalise import normalise
from memhybrid.text.pipeline import find_pipeline
from memhybrid.text.tokens import MAX_TERM
from memhybrid.times import EARLIEST, LATEST, iso, parse_time
from tests.faults.fuzzing.common import Report, Wrong

SECONDS_A_CHARACTER = 20e-6
SPACY_SECONDS_A_CHARACTER = 1e-3
PATIENCE_S = 0.3
"""No input of the sizes used here may take longer than this and the seconds for its length together."""
NAMES = 4096
FIRST_DAY, LAST_DAY = 1, 3_652_059

REAL = [
    "Joanna told Dr. O'Neil on 8 May 2023 that she's allergic to walnuts; she moved from New York to Oslo in 2019.",
    "Order ZX-4471 ships on Tuesday, see https://shop.example/o?id=ZX-4471&ref=a%20b#top or mail bob.smith+x@example.co.uk.",
    "CVE-2024-1234 in getUserById() of libFoo 2.11.3-rc1: C:\\Temp\\log_2024.txt, /usr/lib/x86_64, HTTPServer2, .NET, C++ and C#.",
    "He said \"The Great Gatsby\" and “The Who” are better than 'It'; U.S.A. and NASA's IT dept. spent $1,234,567.89.",
    "THE MEETING IS MOVED TO 2023-05-08 AT 10:30 PM, last week, three days ago, the day before yesterday, by mid-May.",
    "我昨天在北京大学喝了一杯榛子拿铁，张伟说2023年5月8日《三体》很好看，上个月3天前二十五个苹果。",
    "東京スカイツリーで田中さんとラーメンを食べました。ひらがなとカタカナ、そして漢字。",
    "김철수는 서울에서 커피를 마셨다. 다음 주에 부산으로 간다.",
    "สวัสดีครับ ผมชื่อสมชาย อยู่ที่กรุงเทพมหานคร",
    "Вчера Анна Петрова купила ёлку в Москве за 1 500 рублей; кассовый разрыв.",
    "Ο Γιώργος πήγε στην Αθήνα. مرحبا بالعالم ١٢٣ שלום עולם नमस्ते दुनिया",
    "café naïve Straße İstanbul ﬁne ½ ² Ⅷ ℡ 🙂👨‍👩‍👧‍👦🇳🇴 e\u0301 a\u0300\u0301\u0302 x\u200by soft\u00adhyphen",
    "def f(x): return {'a': [1, 2.5e-3, 0xFF]}  # TODO: snake_case, kebab-case, CamelCase, SCREAMING_CASE\n\n\tpass",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
]
PIECES = [
    *"a A The the of It is Who New Lake May in 5 12 2023 1st ago two days aB ABc a1 1a U. U.S x.y a@b.c 1,234 ,000".split(),  # noqa: SIM905
    *"C++ .NET O' ZX-4471 www. http://a . .. ... , ; : ! ? ' '' \" “ ” ‘ ’ ’s 's « » 「 」 《 》 ( ) [ - -- – _ / //".split(),  # noqa: SIM905
    *"\\ \\\\ :// @ # + ++ & % = ~ $ 月 日 年 年5月 两 十 个 前 天 星期 的 我 张伟 北京 あ ア ー 한 ก ็ é İ ß ǅ ™ ½ ﷺ".split(),  # noqa: SIM905
    *(
        " ",
        "  ",
        "May ",
        "\n",
        "\t",
        "\r\n",
        "\u0301",
        "\u200d",
        "\ufe0f",
        "\u00ad",
        "\x00",
        "\x85",
        "\u2028",
        "\ud800",
        "\udfff",
        "\uff0d",
    ),
    *("\U0001f600", "\U00020000"),
]
BLOCKS = [
    *((0, 0x250), (0x300, 0x370), (0x370, 0x530), (0x590, 0x780), (0x900, 0xE80), (0x1100, 0x1200), (0x2000, 0x2C00)),
    *((0x2E80, 0x3200), (0x4E00, 0xA000), (0xA000, 0xAC00), (0xD800, 0xE000), (0xF900, 0x10000), (0x1D400, 0x1D800)),
    *((0x1F000, 0x1FB00), (0xE0000, 0xE0200)),
]


def real(chance: random.Random) -> str:
    """Text that looks real, with some places changed."""
    chars = list(" ".join(chance.choices(REAL, k=chance.randint(1, 3))))
    for _ in range(chance.choice([0, 1, 3, 10, 40])):
        at = chance.randrange(len(chars)) if chars else 0
        kind = chance.randrange(5)
        if kind == 0:
            chars[at : at + chance.randint(1, 10)] = []
        elif kind == 1:
            chars.insert(at, chance.choice(PIECES))
        elif kind == 2:
            chars.insert(at, any_char(chance))
        elif kind == 3:
            part = chars[at : at + chance.randint(1, 20)]
            chars[at:at] = part * chance.randint(1, 5)
        else:
            end = at + chance.randint(1, 20)
            chars[at:end] = list("".join(chars[at:end]).swapcase())
    return "".join(chars)


def any_char(chance: random.Random) -> str:
    """Any code point, those that are likely to matter more often."""
    kind = chance.random()
    if kind < 0.3:
        return chr(chance.randrange(0x110000))
    if kind < 0.5:
        return chr(chance.randrange(0x20))
    low, high = chance.choice(BLOCKS)
    return chr(chance.randrange(low, high))


def pieces(chance: random.Random, length: int) -> str:
    """A few pieces in any order; few kinds of them make long runs that a pattern may stumble over."""
    kinds = chance.sample(PIECES, chance.randint(1, 6))
    out = "".join(chance.choices(kinds, k=length))
    return out[:length]


def repeated(chance: random.Random, length: int) -> str:
    """A short unit again and again, the same or numbered, perhaps with another end."""
    unit = chance.choice([pieces, lambda c, n: real(c)[:n], lambda c, n: "".join(any_char(c) for _ in range(n))])(
        chance, chance.choice([1, 2, 3, 7, 20])
    )
    unit = unit or "a"
    times = length // len(unit) + 1
    units = (f"{unit}{i}" for i in range(times)) if chance.random() < 0.25 else [unit] * times
    out = "".join(units)[:length]
    return out + chance.choice(["", "", "!", "x", "\n", '"', " May"])


def a_text(chance: random.Random) -> str:
    """A short text of any kind."""
    kind = chance.random()
    if kind < 0.45:
        return real(chance)
    if kind < 0.6:
        return "".join(any_char(chance) for _ in range(chance.randint(0, 60)))
    if kind < 0.85:
        return pieces(chance, chance.randint(0, 120))
    return repeated(chance, chance.randint(1, 2_000))


def check_analysis(analysis: Analysis | QueryAnalysis) -> None:
    """What is said of terms and entities."""
    for term in analysis.terms:
        if not term or len(term) > 2 * MAX_TERM:
            raise Wrong(f"term\n{term!r}")
        term.encode()
    keys = [entity.key for entity in analysis.entities]
    if len(set(keys)) != len(keys):
        raise Wrong(f"entities twice\n{keys!r}")
    for entity in analysis.entities:
        if entity.key != entity_key(entity.name) or not entity.key:
            raise Wrong(f"entity key\n{entity!r}, of its name {entity_key(entity.name)!r}")
        entity.name.encode()


def moments(text: str, now: float) -> tuple[Any, ...]:
    """The dates in a text, and how far they are from the first and the last day that there is."""
    dates = dates_in(text, now)
    for mention in dates:
        for day in (FIRST_DAY, 719_163, LAST_DAY):
            if mention.days_from(day) < 0:
                raise Wrong(f"days\n{mention!r} from {day}")
    return dates


class Analyzers:
    """Short texts for their answers, long ones for their time."""

    def __init__(self) -> None:
        self._warned = set(lexer._warned)
        self.fast = FastAnalyzer()
        self.unsegmented = FastAnalyzer()
        self.unsegmented._lexer.segment = False
        self.spacy = SpacyAnalyzer() if find_pipeline() else None
        self._unstemmed = Lexer(stem=False)
        for analyzer in (self.fast, self.unsegmented, self.spacy):
            if analyzer is not None:
                analyzer.analyze([*REAL, "我喜欢"])
        self._long: dict[str, tuple[Callable[[str], Any], float]] = {
            "fast": (lambda text: self.fast.analyze([text]), SECONDS_A_CHARACTER),
            "fast query": (lambda text: identifiers(self.fast.analyze_query(text)), SECONDS_A_CHARACTER),
            "unsegmented": (lambda text: self.unsegmented.analyze([text]), SECONDS_A_CHARACTER),
            "dates": (lambda text: dates_in(text, 1.7e9), SECONDS_A_CHARACTER),
            "names": (lambda text: candidate_names(normalise(text)), SECONDS_A_CHARACTER),
            "entity key": (entity_key, SECONDS_A_CHARACTER),
            "scripts": (scripts, SECONDS_A_CHARACTER),
            "time": (parse_time, SECONDS_A_CHARACTER),
        }

    def run(self, chance: random.Random, report: Report) -> None:
        """One of: a short text, a batch through spaCy, a long text."""
        kind = chance.random()
        if kind < 0.08:
            self._time(chance, report)
        elif kind < 0.1 and self.spacy is not None:
            self._batch(chance, self.spacy, report)
        else:
            self._answers(chance, report)

    def _answers(self, chance: random.Random, report: Report) -> None:
        text = a_text(chance)
        start = time.process_time()
        try:
            for analyzer in (self.fast, self.unsegmented):
                analysis, query = analyzer.analyze([text])[0], analyzer.analyze_query(text)
                check_analysis(analysis)
                check_analysis(query)
                # A memory may have more terms, behind those of a query.
                if (query.terms, query.entities) != (analysis.terms[: len(query.terms)], analysis.entities):
                    raise Wrong(f"query\n{query!r} is not {analysis!r}")
                if len(query.names) > NAMES or not all(query.names):
                    raise Wrong(f"names\n{query.names!r}")
                identifiers(query)
            if chance.random() < 0.05 and FastAnalyzer().analyze([text])[0] != self.fast.analyze([text])[0]:
                raise Wrong("not deterministic")
            for term in self._unstemmed.terms(normalise(text)):
                term.encode()
            if sum(scripts(text).values()) and dominant_script(text) is None:
                raise Wrong("script")
            moments(text, chance.choice([EARLIEST, LATEST, 0.0, 1.7e9, chance.uniform(EARLIEST, LATEST)]))
            at = parse_time(text)
            if at is not None and EARLIEST <= at <= LATEST:
                iso(at)
        except Exception as error:
            error.args = (f"{error}\ntext: {text!r}",)
            raise
        took = time.process_time() - start
        report.timed(took, f"all, {len(text)} characters: {text[:60]!r}")
        report.counts["texts"] += 1

    def _batch(self, chance: random.Random, spacy: SpacyAnalyzer, report: Report) -> None:
        """spaCy costs a thousand times as much, and is quicker in batches."""
        texts = [a_text(chance)[:600] for _ in range(8)]
        start = time.process_time()
        try:
            found = spacy.analyze(texts)
            for analysis in found:
                check_analysis(analysis)
            one = chance.randrange(len(texts))
            query = spacy.analyze_query(texts[one])
            check_analysis(query)
            if query.terms != found[one].terms[: len(query.terms)] or spacy.analyze([texts[one]])[0] != found[one]:
                raise Wrong(f"alone\n{texts[one]!r}: {query!r} is not {found[one]!r}")
        except Exception as error:
            error.args = (f"{error}\ntexts: {texts!r}",)
            raise
        took, size = time.process_time() - start, sum(map(len, texts))
        report.counts["texts through spaCy"] += len(texts)
        report.timed(took, f"spaCy, 8 texts of {size} characters")
        if took > PATIENCE_S + 3 * size * SPACY_SECONDS_A_CHARACTER:
            raise Wrong(f"slow: spaCy\n{took:.2f} s for {texts!r}")

    def _time(self, chance: random.Random, report: Report) -> None:
        """A long text, and one of a quarter of its length: no more than eight times the time."""
        name = chance.choice(list(self._long))
        call, bound = self._long[name]
        length = chance.choice([5_000, 20_000, 20_000, 100_000])
        state = chance.getstate()
        make = chance.choice([pieces, repeated])
        text = make(chance, length)
        chance.setstate(state)
        report.counts["long texts"] += 1
        took = _seconds(call, text)
        report.timed(took, f"{name}, {len(text)} characters: {text[:60]!r}")
        if took > PATIENCE_S + len(text) * bound:
            raise Wrong(f"slow: {name}\n{took:.2f} s for {len(text)} characters: {text[:200]!r} … {text[-20:]!r}")
        if took > 0.1:
            part = text[: length // 4]
            shorter = min(_seconds(call, part) for _ in range(2))
            took = min(took, _seconds(call, text))
            if took > 9 * max(shorter, 0.01):
                raise Wrong(
                    f"grows: {name}\n{took:.2f} s for {len(text)}, {shorter:.3f} s for a quarter: {text[:200]!r} … {text[-20:]!r}"
                )

    def close(self) -> None:
        """Warnings are given once in a process: those given here are still due."""
        lexer._warned.clear()
        lexer._warned.update(self._warned)


def _seconds(call: Callable[[str], Any], text: str) -> float:
    start = time.process_time()
    call(text)
    return time.process_time() - start
