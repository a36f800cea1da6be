import os
import signal
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memhybrid.errors import MissingExtraError
from memhybrid.protocols import Analyzer
from memhybrid.text import FastAnalyzer, SpacyAnalyzer, entity_key, normalise

spacy = pytest.importorskip("spacy")

TEXTS = [
    "Joanna was running a pottery class in New York with O'Neil.",
    "The support group bought a hazelnut latte machine from James.",
    "我喜欢喝榛子拿铁, says Mel from the Boston office.",
    "CVE-2024-1234 broke getUserById on Monday",
    "",
    "Sam works at Samsung and likes “The Old Man and the Sea”.",
] * 10


def test_inflected_forms_meet_in_their_lemma(spacy_analyzer: Analyzer) -> None:
    """Irregular forms, which no stemmer joins, share a term."""
    terms = [
        analysis.terms for analysis in spacy_analyzer.analyze(["They went to buy mice", "She goes, bought a mouse"])
    ]
    assert {"go", "buy", "mous"} <= set(terms[0]) & set(terms[1])


def test_without_stems_an_ing_form_stays_beside_its_lemma() -> None:
    """As in Mem0: "running" gives run and running where stems are off."""
    if not _has_pipeline():
        pytest.skip("no spaCy pipeline is installed")
    terms = SpacyAnalyzer(stem=False).analyze(["She was running organizations"])[0].terms
    assert terms == ("run", "running", "organization")


def test_noun_compounds_are_entities(spacy_analyzer: Analyzer) -> None:
    """Noun chunks of several words, without determiners, are entities of kind compound."""
    entities = spacy_analyzer.analyze(["Mel joined a support group for her pottery class"])[0].entities
    assert {"support group", "pottery class"} == {entity.key for entity in entities if entity.kind == "compound"}


@pytest.mark.parametrize("language", ["en", "zh", "ja", "xx", "de"])
def test_a_pipeline_without_components_falls_back_to_the_surface(language: str) -> None:
    """Empty lemmas, no parser and no NER leave no text without terms."""
    try:
        nlp = spacy.blank(language)
    except ImportError:
        pytest.skip("the language needs a tokeniser that is not installed")
    analyzer = SpacyAnalyzer(nlp)
    for text, query in [("London calling from 北京大学", "北京"), ("We use GPT-4", "gpt4"), ("Alte Wälder", "walder")]:
        assert set(analyzer.analyze_query(query).terms) & set(analyzer.analyze([text])[0].terms)
    assert analyzer.analyze([""])[0].terms == ()


def test_the_entities_of_a_pipeline_for_another_language_are_taken() -> None:
    """A loaded pipeline that is not English is asked about every text."""
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "ORG", "pattern": "корпорация"}])
    entities = SpacyAnalyzer(nlp).analyze(["Это корпорация зла"])[0].entities
    assert [entity.key for entity in entities] == ["корпорация"]


def test_threads_get_what_one_gets(spacy_analyzer: Analyzer) -> None:
    """Sixteen threads on one pipeline give the sequential result."""
    expected = spacy_analyzer.analyze(TEXTS)
    results: list[object] = [None] * 16

    def work(number: int) -> None:
        results[number] = [spacy_analyzer.analyze([text])[0] for text in TEXTS[:12]]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == expected[:12] for result in results)


def test_the_vocabulary_does_not_grow() -> None:
    """Unseen words are forgotten with the round that brought them."""
    nlp = spacy.blank("en")
    analyzer = SpacyAnalyzer(nlp)
    analyzer.analyze(["warm up"])
    before = len(nlp.vocab.strings)
    analyzer.analyze([f"commit abc{number}def of user{number}x" for number in range(3000)])
    assert len(nlp.vocab.strings) <= before + 50


def test_two_analysers_on_one_pipeline_share_its_lock() -> None:
    """A Language given twice is one pipeline."""
    nlp = spacy.blank("en")
    first, second = SpacyAnalyzer(nlp), SpacyAnalyzer(nlp)
    assert first._loaded is second._loaded  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_not_stuck_on_a_lock_held_by_the_parent() -> None:
    """A pipeline that is busy at the fork works in the child."""
    nlp = spacy.blank("en")
    analyzer = SpacyAnalyzer(nlp)
    expected = analyzer.analyze(["Joanna plays"])
    with analyzer._loaded.lock:  # type: ignore[attr-defined]
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)  # killed rather than stuck
            try:
                os._exit(0 if analyzer.analyze(["Joanna plays"]) == expected else 1)
            finally:
                os._exit(2)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_text_beyond_the_limits_of_spacy_is_indexed_to_its_end() -> None:
    """1.2 million characters raise nothing, and the last words are terms."""
    analyzer = SpacyAnalyzer(spacy.blank("en"))
    text = "some words here " * 75_000 + "Zanzibar"
    assert analyzer.analyze([text])[0].terms[-1] == "zanzibar"
    assert "zanzibar" in analyzer.analyze_query(text).terms


def test_pieces_of_a_long_text_are_read_like_short_ones(spacy_analyzer: Analyzer) -> None:
    """Lemmas and names are found beyond the first piece, and their offsets fit."""
    filler = "It was a quiet day and they went home. " * 200
    analysis = spacy_analyzer.analyze([filler + "Joanna bought two mice in Lisbon."])[0]
    assert analysis.terms[-5:] == ("joanna", "buy", "two", "mous", "lisbon")
    assert [entity.key for entity in analysis.entities][-2:] == ["joanna", "lisbon"]


def test_a_batch_gives_what_single_texts_give(spacy_analyzer: Analyzer) -> None:
    """A text's analysis does not depend on its neighbours, and a query is analysed like a text."""
    texts = TEXTS[:6]
    batch = spacy_analyzer.analyze(texts)
    assert batch == [spacy_analyzer.analyze([text])[0] for text in texts]
    for text, analysis in zip(texts, batch, strict=True):
        query = spacy_analyzer.analyze_query(text)
        assert (query.terms, query.entities) == (analysis.terms[: len(query.terms)], analysis.entities)
        assert {entity.key for entity in query.entities} <= set(query.names)
        assert all(entity.key == entity_key(entity.name) for entity in query.entities)


@pytest.mark.parametrize(
    "text", ["\x00", "\ud800 a", "(" * 3000, "a" * 30_000, "x\n" * 500, "MIXED 我 Ça \u0301", "' ' \""]
)
def test_odd_texts_raise_nothing(spacy_analyzer: Analyzer, text: str) -> None:
    """Control characters, lone surrogates and unbroken runs are analysed like anything else."""
    assert bool(spacy_analyzer.analyze([text])[0].terms) == any(char.isalnum() for char in normalise(text))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(alphabet=st.one_of(st.sampled_from(list("abAB 09.,-'’:#\"“”我か가\n")), st.characters()), max_size=90)
)
def test_any_text_is_analysed_alike_as_text_and_as_query(spacy_analyzer: Analyzer, text: str) -> None:
    """Any string is analysed without error, and the query's terms and entities are the text's."""
    analysis = spacy_analyzer.analyze([text])[0]
    query = spacy_analyzer.analyze_query(text)
    assert (query.terms, query.entities) == (analysis.terms[: len(query.terms)], analysis.entities)
    assert all(entity.key == entity_key(entity.name) for entity in analysis.entities)


def test_lemmas_and_stems_agree_on_regular_words(spacy_analyzer: Analyzer) -> None:
    """Where a lemma is regular, the analyser without a pipeline gives the same terms."""
    text = "CVE-2024-1234 is fixed in the Boston offices, 我喜欢喝榛子拿铁"
    assert spacy_analyzer.analyze([text])[0].terms == FastAnalyzer().analyze([text])[0].terms


def test_a_pipeline_that_is_not_installed_is_an_error_that_says_what_to_install() -> None:
    """An unknown name raises MissingExtraError with the command, and downloads nothing."""
    with pytest.raises(MissingExtraError, match="pip install"):
        SpacyAnalyzer("xx_no_such_pipeline")


def _has_pipeline() -> bool:
    from memhybrid.text.pipeline import find_pipeline

    return find_pipeline() is not None
