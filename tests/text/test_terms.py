import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhybrid.protocols import Analyzer
from memhybrid.text import FastAnalyzer
from memhybrid.text.tokens import MAX_TERM

FAST = FastAnalyzer()


def terms(analyzer: Analyzer, text: str) -> tuple[str, ...]:
    return analyzer.analyze([text])[0].terms


def shared(analyzer: Analyzer, query: str, text: str) -> set[str]:
    return set(analyzer.analyze_query(query).terms) & set(terms(analyzer, text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CVE-2024-1234", {"cve-2024-1234", "cve", "2024", "1234"}),
        ("getUserById", {"getuserbyid", "user", "id"}),
        ("HTTPServer", {"httpserver", "http", "server"}),
        ("C++ C# F# .NET C++11", {"c++", "c#", "f#", ".net", "net", "c++11", "11"}),
        ("sign-off", {"sign-off", "signoff", "sign", "off"}),
        ("snake_case", {"snake_case", "snake", "case"}),
        ("C:\\repo\\src", {"c:\\repo\\src", "repo", "src"}),
        ("/usr/bin", {"usr/bin", "usr", "bin"}),
        ("john.doe@example.com", {"john.doe@example.com", "john.doe", "john", "doe", "example.com", "com"}),
        ("https://ex.com/a_b?x=1", {"https://ex.com/a_b?x=1", "ex.com", "a_b", "1"}),
        ("3.11.7", {"3.11.7", "3.11", "3", "11", "7"}),
        ("10:30", {"10:30", "10", "30"}),
        ("GB/s", {"gb/s", "gb"}),
        ("ZX-4471", {"zx-4471", "zx", "4471", "zx4471"}),
        ("1,000,000", {"1000000"}),
        ("U.S.", {"u.s", "us"}),
        ("O'Neil's", {"o'neil", "oneil", "neil"}),
        ("naïve café", {"naïve", "naiv", "café", "cafe"}),
        ("EBITDA KKR NORD", {"ebitda", "kkr", "nord"}),
        ("٢٠٢٦", {"٢٠٢٦", "2026"}),
    ],
)
def test_an_identifier_is_a_term_as_a_whole_and_in_its_parts(analyzer: Analyzer, text: str, expected: set[str]) -> None:
    """The whole, its parts and its joined form are all terms."""
    assert expected <= set(terms(analyzer, text))


def test_single_letters_with_marks_are_not_the_bare_letter(analyzer: Analyzer) -> None:
    """C++, C# and C are three languages."""
    assert not shared(analyzer, "C++", "He writes C for a living")
    assert not shared(analyzer, "C#", "He writes C++ for a living")
    assert shared(analyzer, "C", "He writes C for a living") == {"c"}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("windy London?", "It is windy in london."),
        ("signoff", "waiting for the sign-off"),
        ("sign off", "waiting for the sign-off"),
        ("1234", "fixed CVE-2024-1234 today"),
        ("gateau", "un gâteau au chocolat"),
        ("gâteau", "gateau recipe"),
        ("ga\u0302teau", "gâteau"),
        ("GPT4", "we use GPT-4 now"),
        ("runs", "she was running"),
        ("meeting", "the meetings"),
        ("james", "James came"),
        ("Joanna's hobbies", "joanna has a hobby"),
        ("O’Neil", "o'neil called"),
        ("榛子拿铁", "我喜欢喝榛子拿铁"),
        ("拿铁", "我喜欢喝榛子拿铁"),
        ("大桥", "南京市长江大桥"),
        ("猫", "我的猫很可爱"),
        ("機器學習", "他在研究機器學習與人工智慧"),
        ("東京大学", "私は東京大学で勉強しました"),
        ("コーヒー", "毎朝コーヒーを飲みます"),
        ("커피", "나는 커피를 좋아해요"),
        ("กาแฟ", "ฉันชอบดื่มกาแฟตอนเช้า"),
        ("кассовый разрыв 2026", "в отчёте виден кассовый разрыв"),
        ("μηνιαία αναφορά", "η μηνιαία αναφορά είναι έτοιμη"),
        ("القهوة", "أحب القهوة في الصباح"),
        ("קפה", "אני אוהב קפה"),
        ("नमस्ते", "नमस्ते दुनिया"),
        ("ყავა", "მიყვარს ყავა"),
        ("T恤", "我买了一件T恤"),
        ("C:\\repo\\src", "cloned to C:\\repo\\src yesterday"),
        ("sh | bash", "never pipe curl to bash"),
        ('"unbalanced (', "an unbalanced bracket"),
        ("foo:bar", "set foo:bar here"),
        ("5km", "ran 5 km"),
    ],
)
def test_a_query_finds_its_text_in_every_script(analyzer: Analyzer, query: str, text: str) -> None:
    """Query and text share a term whatever the case, punctuation, accents, inflection or script."""
    assert shared(analyzer, query, text)


def test_two_chinese_characters_find_only_their_line(analyzer: Analyzer) -> None:
    """A query of two characters does not match lines that have just one of them."""
    lines = ["我喜欢喝榛子拿铁", "他修铁路", "拿起书本", "今天天气很好"]
    assert [line for line in lines if shared(analyzer, "拿铁", line)] == ["我喜欢喝榛子拿铁"]


def test_a_name_with_possessive_finds_its_person_among_the_like(analyzer: Analyzer) -> None:
    """Of notes on hobbies only the one of the person asked about shares name and topic with the query."""
    names = ["Joanna", "Nate", "Maria", "Tim", "Caroline", "Melanie", "James", "Hans"]
    notes = [f"{name}'s hobbies are chess and running" for name in names]
    counts = [len(shared(analyzer, "Joanna's hobbies", note)) for note in notes]
    assert counts == [2, 1, 1, 1, 1, 1, 1, 1]


def test_the_exact_accent_matches_better_than_the_folded_one(analyzer: Analyzer) -> None:
    """Vietnamese words that differ by accents share a weaker term only; "thé" does not vanish as "the"."""
    assert len(shared(analyzer, "năm", "năm")) > len(shared(analyzer, "năm", "Nam"))
    assert terms(analyzer, "le thé vert")
    assert "thé" in terms(analyzer, "le thé vert")
    assert "the" not in terms(analyzer, "le thé vert")


def test_stop_words_go_unless_there_is_nothing_else(analyzer: Analyzer) -> None:
    """Stop words are removed whatever their case; a text of stop words alone keeps them."""
    assert terms(analyzer, "The cat is on the mat. AND it's his") == terms(analyzer, "cat mat AND")
    assert terms(analyzer, "The Who") == ("the", "who")
    assert terms(analyzer, "it") == ("it",)
    assert terms(analyzer, "我们") == ("我们",)
    assert "the" not in terms(analyzer, "THE PLAN")


def test_a_stop_word_in_capitals_is_an_acronym(analyzer: Analyzer) -> None:
    """IT and WHO are terms in a text that does not shout."""
    assert "it" in terms(analyzer, "Ask the IT department")
    assert shared(analyzer, "it", "Ask the IT department")
    assert shared(analyzer, "The Who", "We saw The Who live in Leeds")


def test_repeats_are_kept_and_expansions_counted_once(analyzer: Analyzer) -> None:
    """A term comes as often as its word; the parts of an identifier once for each occurrence."""
    assert terms(analyzer, "chess chess chess").count("chess") == 3
    assert terms(analyzer, "ab-ab ab-ab").count("ab") == 2


@pytest.mark.parametrize("text", ["", "   ", "\n", "→ ©®™ ▏ ░", "( * |", "\x00", "\ud800", "…—"])
def test_a_text_without_words_has_no_terms(analyzer: Analyzer, text: str) -> None:
    """Nothing to index is no error, and arrows, lines and punctuation are nothing."""
    assert analyzer.analyze([text])[0].terms == ()
    assert analyzer.analyze_query(text).terms == ()


def test_chinese_without_the_segmenter_is_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without rjieba pairs and single characters are terms, and a warning comes once."""
    from memhybrid.text import MissingPieceWarning, lexer

    monkeypatch.setattr(lexer, "rjieba_version", lambda: "")
    monkeypatch.setattr(lexer, "_warned", set[str]())
    analyzer = FastAnalyzer()
    assert analyzer.missing == ("rjieba",)
    assert analyzer.fingerprint != FAST.fingerprint
    terms(analyzer, "no Chinese here")
    with pytest.warns(MissingPieceWarning, match="rjieba") as caught:
        found = [shared(analyzer, "榛子拿铁", "我喜欢喝榛子拿铁"), shared(analyzer, "猫", "我的猫很可爱")]
    assert all(found)
    assert len(caught) == 1


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80))
def test_no_text_raises_and_no_letter_or_digit_vanishes(text: str) -> None:
    """Any string is analysed, deterministically; one with a letter or digit has a term; terms are folded and short."""
    first = FAST.analyze([text])[0]
    assert FAST.analyze([text])[0] == first
    query = FAST.analyze_query(text)
    assert (query.terms, query.entities) == (first.terms[: len(query.terms)], first.entities)
    # Behind these only the characters inside of Chinese words.
    assert all(len(term) == 1 and term in text for term in first.terms[len(query.terms) :])
    from memhybrid.text import normalise

    if any(char.isalpha() or char.isdecimal() for char in normalise(text)):
        assert first.terms
    assert all(0 < len(term) <= 3 * MAX_TERM for term in first.terms)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="aZ9.-_'’/@:+# \"“”«‘中かกᄀ가ÀßİИ\n\x00\ud800,&=", max_size=60))
def test_no_mixture_of_marks_raises(text: str) -> None:
    """Words, marks and scripts in any order are analysed."""
    assert FAST.analyze([text])[0] == FAST.analyze([text])[0]
    FAST.analyze_query(text)


@pytest.mark.parametrize(
    "unit",
    ["a-", "a", "a.b/", "我", "ก", "1,000", "+", "x y ", '"a b" ', "“", "Ab ", "A of ", "«a", "a@b.", "é'", "\n"],
)
def test_time_is_linear_in_the_length(unit: str) -> None:
    """Three hundred thousand characters of anything take no more than a few seconds, as text and as query."""
    import time

    text = unit * (300_000 // len(unit))
    start = time.process_time()
    FAST.analyze([text])
    FAST.analyze_query(text)
    assert time.process_time() - start < 5


def test_memory_is_bounded_whatever_the_words() -> None:
    """Memos of words do not grow with every new word."""
    from memhybrid.text import lexer

    analyzer = FastAnalyzer()
    for start in range(0, 200_000, 1000):
        analyzer.analyze([" ".join(f"w{number}" for number in range(start, start + 1000))])
    sizes = [len(analyzer._lexer._memo), len(analyzer._lexer.stem._memo)]  # type: ignore[attr-defined]
    assert max(sizes) <= lexer._LIMIT


@pytest.mark.parametrize(
    "text", ["10.0.0.1 192.168.100.200", "in 2020 2021 2022", "scores 10 20 30 40", "12.3456789", "1 2 3"]
)
def test_numbers_that_stand_beside_each_other_are_not_joined(analyzer: Analyzer, text: str) -> None:
    """Years, small numbers, fractions and network addresses are no number in groups."""
    assert not [term for term in terms(analyzer, text) if term.isdigit() and len(term) >= 7 and term not in text]


def test_a_picture_does_not_hide_that_all_words_are_stop_words(analyzer: Analyzer) -> None:
    """The words are terms then, as without it."""
    assert set(terms(analyzer, "who is it? 😊")) == {*terms(analyzer, "who is it?"), "😊"}
    assert terms(analyzer, "tea 😊") == ("tea", "😊")
