import pytest

from memhybrid.protocols import Analyzer
from memhybrid.text import FastAnalyzer, SpacyAnalyzer
from memhybrid.text.pipeline import find_pipeline

ANALYZERS = ["fast", "spacy"]
_made: dict[str, Analyzer] = {}


def analyzer_named(name: str) -> Analyzer:
    """One analyser of each kind for the whole run."""
    if name == "spacy" and find_pipeline() is None:
        pytest.skip("no spaCy pipeline is installed")
    if name not in _made:
        _made[name] = FastAnalyzer() if name == "fast" else SpacyAnalyzer()
    return _made[name]


@pytest.fixture(params=ANALYZERS)
def analyzer(request: pytest.FixtureRequest) -> Analyzer:
    return analyzer_named(request.param)


@pytest.fixture
def spacy_analyzer() -> Analyzer:
    return analyzer_named("spacy")
