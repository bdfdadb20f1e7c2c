"""Payloads: what is let in, what is refused in one line, and that no bytes break the decoder."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qd.errors import BadInput
from qd.payload import MAX_DEPTH, MAX_DIGITS, RawJson, checked, decode, encode

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(SCALARS | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20)


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@given(VALUES)
def test_what_is_encoded_is_decoded_to_the_same_value(value: Any) -> None:
    assert decode(encode(value)) == value


@given(VALUES)
def test_encoded_text_is_ascii_and_passes_as_checked_text(value: Any) -> None:
    text = encode(value)
    assert text.isascii()
    assert checked(text) == text


@given(st.binary() | st.text())
def test_decode_survives_anything(raw: bytes | str) -> None:
    try:
        decode(raw)
    except BadInput as refused:
        assert "\n" not in str(refused)


@given(st.recursive(st.just("1"), lambda inner: inner.map(lambda text: f'[{text},{{"[": "\\"]"}}]'), max_leaves=3))
def test_brackets_inside_strings_are_no_nesting(text: str) -> None:
    many = "[" + ",".join(['"[[[{{{"'] * 20 + [text]) + "]"
    assert checked(many) == many


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, [-math.inf], {"a": math.nan}, object(), {1, 2}, b"bytes", {(1, 2): 3}, 1j],
)
def test_what_json_has_no_word_for_is_refused(value: Any) -> None:
    with pytest.raises(BadInput, match=r"^payload: not JSON: [^\n]+$"):
        encode(value)


def test_a_list_in_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(BadInput, match=r"^payload: "):
        encode(value)


def test_31_levels_are_taken_and_32_refused() -> None:
    assert decode(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(BadInput, match="over 31 levels deep"):
        encode(nested(MAX_DEPTH + 1))
    with pytest.raises(BadInput, match="over 31 levels deep"):
        checked(json.dumps(nested(MAX_DEPTH + 1)))


@pytest.mark.parametrize("levels", [1_000, 100_000])
def test_very_deep_values_are_refused_without_a_crash(levels: int) -> None:
    with pytest.raises(BadInput, match="deep"):
        encode(nested(levels))
    with pytest.raises(BadInput, match="deep"):
        checked("[" * levels + "]" * levels)


def test_very_deep_text_is_undecodable() -> None:
    with pytest.raises(BadInput, match="deep"):
        decode("[" * 100_000 + "]" * 100_000)


@pytest.mark.parametrize("value", ["\ud800", ["a\udfff"], {"\udc00": 1}])
def test_half_a_surrogate_pair_is_refused(value: Any) -> None:
    for act, argument in ((encode, value), (checked, json.dumps(value)), (decode, json.dumps(value))):
        with pytest.raises(BadInput, match="surrogate"):
            act(argument)


@pytest.mark.parametrize("text", [r'{"a": "\ud800", "a": 1}', r'[{"\udfff": 1}]', r'{"a": ["\ud800"], "a": 1}'])
def test_half_a_pair_is_seen_behind_a_key_that_stands_twice(text: str) -> None:
    with pytest.raises(BadInput, match="surrogate"):
        encode(RawJson(text))


def test_whole_surrogate_pairs_are_characters() -> None:
    assert encode("😀") == '"\\ud83d\\ude00"'
    assert decode('"\\ud83d\\ude00"') == decode("😀".join('""')) == "😀"


def test_integers_have_308_digits_at_most() -> None:
    largest = 10**MAX_DIGITS - 1
    assert decode(encode([largest, -largest])) == [largest, -largest]
    for act, argument in ((encode, largest + 1), (encode, {"n": [-largest - 1]}), (checked, str(largest + 1))):
        with pytest.raises(BadInput, match="an integer of over 308 digits"):
            act(argument)


def test_integers_that_python_does_not_convert_are_bad_input() -> None:
    for act, argument in ((encode, 10**5000), (checked, "1" * 5000), (decode, "[-" + "1" * 5000 + "]")):
        with pytest.raises(BadInput, match="digits"):
            act(argument)


def test_a_long_fraction_is_no_integer() -> None:
    text = "0." + "0" * 400 + "1"
    assert checked(text) == text


def test_digits_inside_a_string_are_no_number() -> None:
    assert decode(encode("7" * 10_000)) == "7" * 10_000


BROKEN_TEXTS = ["", " ", "{", "nul", "{'a': 1}", "[1,]", "01", "NaN", "[Infinity]", "1e999", "\ufeff{}", "{}{}"]
BROKEN_BYTES = [b"\xff\xfe\x00", b"\xef\xbb\xbf{}", b"\x1f\x8b\x08", b'"\xed\xa0\x80"', b" " * 100_000]


@pytest.mark.parametrize("raw", [*BROKEN_TEXTS, *BROKEN_BYTES])
def test_undecodable_payloads_are_bad_input(raw: str | bytes) -> None:
    with pytest.raises(BadInput, match=r"^payload: [^\n]+$"):
        decode(raw)


def test_bytes_of_utf_8_are_decoded() -> None:
    assert decode('{"é": [1, null]}'.encode()) == {"é": [1, None]}


@pytest.mark.parametrize("text", ['{"b":1,  "a":1.0, "a":1}', ' "\\u00e9é" ', "1E5", "null", "[]\n"])
def test_checked_text_is_kept_byte_for_byte(text: str) -> None:
    assert checked(text) == text
    assert encode(RawJson(text)) == text


def test_raw_json_is_checked_and_a_plain_string_is_a_json_string() -> None:
    assert encode("{") == '"{"'
    with pytest.raises(BadInput):
        encode(RawJson("{"))


def test_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(BadInput, match="not UTF-8"):
        checked('"\udcff"')
