import pytest

from memhybrid.text import SCRIPTS, dominant_script, script_of, scripts


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("I like hazelnut latte", "latin"),
        ("gâteau Đà Nẵng", "latin"),
        ("我喜欢喝榛子拿铁", "han"),
        ("ひらがな", "hiragana"),
        ("コーヒー", "katakana"),
        ("커피를 좋아해요", "hangul"),
        ("кассовый разрыв", "cyrillic"),
        ("Αθήνα", "greek"),
        ("مرحبا", "arabic"),
        ("שלום", "hebrew"),
        ("ฉันชอบกาแฟ", "thai"),
        ("नमस्ते", "devanagari"),
        ("გამარჯობა", "other"),
        ("我用 GPT", "latin"),
        ("", None),
        ("123 ?! 😀 \ud800", None),
    ],
)
def test_the_script_with_most_letters_is_dominant(text: str, script: str | None) -> None:
    """The dominant script is the one most letters are in, None where there are no letters."""
    assert dominant_script(text) == script


def test_letters_are_counted_by_script() -> None:
    """Counts leave out digits, marks and punctuation, and name only scripts that occur."""
    assert scripts("ab 我c 12 か, é") == {"latin": 4, "han": 1, "hiragana": 1}
    assert scripts("Hello, World 42!") == {"latin": 10}


def test_every_character_has_a_known_script_or_none() -> None:
    """Whatever the character, the answer is one of the scripts, and None exactly for what is not a letter."""
    for code in range(0, 0x30000, 7):
        script = script_of(chr(code))
        assert (script is None) == (not chr(code).isalpha())
        assert script is None or script in SCRIPTS
