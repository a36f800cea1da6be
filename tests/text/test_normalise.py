import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhybrid.text import entity_key, fold, normalise


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Joanna's", "joanna"),
        ("James'", "james"),
        ("O’Neil's", "o'neil"),
        ("  New \t York, ", "new york"),
        ("“The Who”", "the who"),
        ("C++", "c++"),
        ("C#", "c#"),
        (".NET", ".net"),
        ("(ZX-4471)", "zx-4471"),
        ("AT&T", "at&t"),
        ("ＮＡＳＡ", "nasa"),
        ("नमस्ते", "नमस्ते"),
        ("《三体》", "三体"),
        ("?!", ""),
        ("\ud800", ""),
    ],
)
def test_a_key_is_the_name_without_case_width_possessive_and_outer_marks(name: str, key: str) -> None:
    """Spellings of one name have one key; marks that belong to a name stay."""
    assert entity_key(name) == key


@given(st.text())
def test_normalising_and_folding_twice_changes_nothing(text: str) -> None:
    """`normalise` is idempotent, and its result has neither lone surrogates nor control characters."""
    once = normalise(text)
    assert normalise(once) == once
    assert not any("\ud800" <= char <= "\udfff" or (char < " " and char != "\n") for char in once)
    assert fold(fold(once)) == fold(once)


def test_composed_and_decomposed_spellings_are_one() -> None:
    """Canonical and compatibility variants of a text are the same text."""
    assert normalise("ga\u0302teau") == normalise("gâteau")
    assert normalise("ﬁne ｆｕｌｌ") == "fine full"
    assert normalise("soft\u00adware\u200b") == "software"
    assert normalise("iPhone™").split() == ["iPhone"]
    assert normalise("a\x00b\tc") == "a b c"
