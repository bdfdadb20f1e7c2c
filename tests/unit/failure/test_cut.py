"""Texts that any column, log or page can take."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qd.failure import MARK, clean, cut, cut_tail, text_of

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)  # surrogates and controls included


@given(ANY_TEXT, st.integers(0, 400))
def test_a_cut_text_is_valid_utf8_within_its_bytes(text: str, limit: int) -> None:
    for result in (cut(text, limit), cut_tail(text, limit)):
        assert len(result.encode("utf-8", "strict")) <= limit


@given(ANY_TEXT)
def test_clean_text_has_no_character_that_a_terminal_or_a_column_can_not_take(text: str) -> None:
    left = {character for character in clean(text) if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")}
    assert left <= {"\n", "\t"}


@given(ANY_TEXT)
def test_what_fits_stays_whole(text: str) -> None:
    assert cut(text, 10_000) == cut_tail(text, 10_000) == clean(text)


@given(st.text("aé€😀", min_size=1, max_size=200), st.integers(20, 100))
def test_a_cut_keeps_whole_characters_of_the_beginning_or_the_end_and_says_so(text: str, limit: int) -> None:
    if len(text.encode()) > limit:
        head, tail = cut(text, limit), cut_tail(text, limit)
        assert head.endswith(MARK) and text.startswith(head.removesuffix(MARK))
        assert tail.startswith("[cut] … ") and text.endswith(tail.removeprefix("[cut] … "))
        assert limit - len(head.encode()) < 4 and limit - len(tail.encode()) < 4


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a\\x00b"),
        ("\udcff", "\\udcff"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("one\r\ntwo\tthree", "one\\r\ntwo\tthree"),
        ("\u202efdp.exe", "\\u202efdp.exe"),
        ("a\u2028b\x85c", "a\\u2028b\\x85c"),
        ("naïve 😀", "naïve 😀"),
    ],
)
def test_what_can_not_be_stored_or_shown_is_escaped(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_a_str_with_methods_of_its_own_is_cut_all_the_same() -> None:
    class Liar(str):
        def __getitem__(self, key: object) -> str:
            raise RuntimeError("no")

        def __len__(self) -> int:
            return -5

        def encode(self, *args: object) -> bytes:
            raise RuntimeError("no")

    assert cut(Liar("a" * 50), 20) == "a" * 10 + MARK
    assert cut_tail(Liar("a" * 50), 20).endswith("a" * 10)
    assert type(cut(Liar("a"), 20)) is str


def test_a_value_without_a_text_is_named() -> None:
    class Mute:
        def __str__(self) -> str:
            raise SystemExit(3)

    assert text_of(Mute(), 100) == "[no text: SystemExit in __str__]"
