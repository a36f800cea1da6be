"""The contract of an analyzer."""

from __future__ import annotations

from typing import Any

TEXTS = [
    "Joanna plays chess in Oslo.",
    "我喜欢喝榛子拿铁",
    "CVE-2024-1234 in getUserById()",
    "",
    "🙂 !!!",
    "\x00\ud800",
    "кассовый разрыв",
]


class AnalyzerContract:
    """Give a fixture `analyzer`."""

    def test_every_text_is_analysed(self, analyzer: Any) -> None:
        """As many analyses as texts, in their order, for any str at all."""
        together = analyzer.analyze(TEXTS)
        assert together == [analyzer.analyze([text])[0] for text in TEXTS]

    def test_queries_and_memories_speak_the_same_terms(self, analyzer: Any) -> None:
        """A text used as a query has the terms that it has as a memory, which may have more behind these."""
        for text, analysis in zip(TEXTS, analyzer.analyze(TEXTS), strict=True):
            asked = analyzer.analyze_query(text).terms
            assert asked == analysis.terms[: len(asked)]
            assert bool(asked) == bool(analysis.terms)

    def test_no_script_vanishes(self, analyzer: Any) -> None:
        """Letters of any script give terms; case does not matter."""
        for text in TEXTS:
            if any(c.isalpha() for c in text):
                assert analyzer.analyze([text])[0].terms
        assert analyzer.analyze(["OSLO harbour"])[0].terms == analyzer.analyze(["oslo harbour"])[0].terms

    def test_identifiers_are_kept_whole_and_in_parts(self, analyzer: Any) -> None:
        """An identifier is found by itself and by its parts."""
        terms = set(analyzer.analyze(["see CVE-2024-1234"])[0].terms)
        assert {"cve-2024-1234", "2024", "1234"} <= terms

    def test_known_names_are_offered_in_any_case(self, analyzer: Any) -> None:
        """A query in lower case offers the names that it may contain."""
        assert "joanna" in analyzer.analyze_query("what does joanna play").names

    def test_the_fingerprint_is_stable(self, analyzer: Any) -> None:
        """The fingerprint is the same each time."""
        assert analyzer.fingerprint == analyzer.fingerprint
        assert isinstance(analyzer.missing, tuple)
