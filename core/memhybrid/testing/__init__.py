"""Contract suites: what a backend, a lexical index, an embedder or an analyzer must do to work here.

Subclass one in a test module and give the fixture it asks for; pytest finds the tests. Each says in its docstring which property it
checks. Needs pytest.

    class TestMyEmbedder(EmbedderContract):
        @pytest.fixture
        def embedder(self):
            return MyEmbedder()
"""

from memhybrid.testing.analyzers import AnalyzerContract
from memhybrid.testing.backends import BackendContract
from memhybrid.testing.embedders import EmbedderContract
from memhybrid.testing.lexical import LexicalIndexContract

__all__ = ["AnalyzerContract", "BackendContract", "EmbedderContract", "LexicalIndexContract"]
