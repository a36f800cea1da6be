import pytest

from memhybrid.protocols import Analyzer
from memhybrid.text import entity_key


def keys(analyzer: Analyzer, text: str) -> list[str]:
    return [entity.key for entity in analyzer.analyze([text])[0].entities]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sam works at Samsung", {"sam", "samsung"}),
        ("Joanna plays chess", {"joanna"}),
        ("Caroline: Hey Mel! Good to see you!", {"caroline", "mel"}),
        ("We moved to New York City in June", {"new york city"}),
        ("Joanna's brother met O’Neil's wife in Paris", {"joanna", "o'neil", "paris"}),
        ("We saw The Who live in Leeds", {"the who", "leeds"}),
        ("He finished “The Old Man and the Sea” yesterday", {"the old man and the sea"}),
        ('They watched "Dune" again', {"dune"}),
        ("patch CVE-2024-1234 in getUserById, use C++ not .NET", {"cve-2024-1234", "getuserbyid", "c++", ".net"}),
        ("write to john.doe@example.com about ZX-4471", {"john.doe@example.com", "zx-4471"}),
        ("the NASA budget", {"nasa"}),
        ("a signed copy by J.K. Rowling", {"j.k. rowling"}),
        ("我看了《三体》和「沙丘」", {"三体", "沙丘"}),
        ("张伟在北京大学读书", {"张伟", "北京大学"}),
        ("Вчера приехал Пётр", {"пётр"}),
    ],
)
def test_names_quotes_and_identifiers_are_entities(analyzer: Analyzer, text: str, expected: set[str]) -> None:
    """Proper names, quoted titles and identifiers are found, a short name beside a longer one included."""
    assert expected <= set(keys(analyzer, text))


@pytest.mark.parametrize(
    "text",
    [
        "If Done. So WANT to go. Don't.",
        "Thanks! That's great. Maybe Tomorrow.",
        "Woohoo! Reminds me of home. Books are great.",
        "THIS IS SO UNFAIR AND I WANT MORE",
        "I'm fine. You're right. Let's go on Monday in June.",
        'She said "I don\'t know."',
        "",
        "3 apples, 10:30, 5km, 2024-05-08",
    ],
)
def test_capitals_that_only_show_the_place_or_the_mood_make_no_entity(analyzer: Analyzer, text: str) -> None:
    """Sentence starts, contractions, shouting, weekdays, speech in quotes and quantities are no entities."""
    assert keys(analyzer, text) == []


def test_a_query_in_title_case_has_no_names_of_common_words(analyzer: Analyzer) -> None:
    """In a headline only identifiers count; the words are still candidates for known names."""
    query = analyzer.analyze_query("What Is The Q3 Plan")
    assert not [entity.key for entity in query.entities if entity.kind == "proper"]
    assert {"q3", "q3 plan"} <= set(query.names)


def test_entities_come_once_in_order_with_kind_and_spelling(analyzer: Analyzer) -> None:
    """No entity twice; the first spelling and the order of the text are kept; keys are `entity_key` of names."""
    entities = analyzer.analyze(["Then Mel met JOHN_DOE at \"Dune's End\" with Mel's and john_doe"])[0].entities
    assert [(entity.name, entity.kind) for entity in entities] == [
        ("Mel", "proper"),
        ("JOHN_DOE", "identifier"),
        ("Dune's End", "quoted"),
    ]
    assert all(entity.key == entity_key(entity.name) for entity in entities)


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        ("Joanna plays chess", "what does joanna play"),
        ("Joanna plays chess", "JOANNA'S HOBBIES"),
        ("We moved to New York City in June", "is new york city expensive?"),
        ("He uses C++ at work", "who knows c++?"),
        ("We saw The Who live in Leeds", "the who"),
        ("张伟在北京大学读书", "北京大学怎么样"),
        ("我看了《三体》", "三体好看吗"),
        ("Вчера приехал Пётр", "когда приехал пётр"),
        ("write to john.doe@example.com", "who is JOHN.DOE@example.com?"),
    ],
)
def test_a_query_names_known_entities_whatever_its_case(analyzer: Analyzer, stored: str, query: str) -> None:
    """Some candidate name of the query is the key of the stored entity."""
    assert set(keys(analyzer, stored)) & set(analyzer.analyze_query(query).names)


def test_names_end_at_word_boundaries(analyzer: Analyzer) -> None:
    """ "Sam" is not named by a query about Samsung, and stop words alone name nothing beside others."""
    assert "sam" not in analyzer.analyze_query("what does samsung build").names
    assert not {"what", "does", "what does"} & set(analyzer.analyze_query("what does samsung build").names)


def test_a_document_as_query_names_a_bounded_number_of_entities(analyzer: Analyzer) -> None:
    """However long the query, its candidate names are at most 4,096, each once."""
    query = analyzer.analyze_query(" ".join(f"word{number}" for number in range(5000)) + "我喜欢喝榛子拿铁" * 500)
    assert 0 < len(query.names) <= 4096
    assert len(set(query.names)) == len(query.names)
