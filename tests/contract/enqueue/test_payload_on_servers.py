"""What `encode` and `checked` let in, every server's CHECK takes: the door refuses, never the table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qd.errors import BadInput
from qd.payload import MAX_DEPTH, MAX_DIGITS, checked, decode, encode
from tests.support.server import Server

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20)
ODD = ["-0", "-0.0", "1E400", "1E+2", '"\\/"', '"\\u0000"', '"\\ud83d\\ude00"', " [ ] ", "[1\t,\r\n2]"]


@pytest.fixture(scope="module")
def server_says(mariadb: Server) -> Iterator[Any]:
    """Whether the server takes a text for JSON."""
    with closing(mariadb.connect(autocommit=True)) as connection, closing(connection.cursor()) as cursor:

        def valid(text: str) -> bool:
            cursor.execute("SELECT JSON_VALID(%s)", (text,))
            return bool(cursor.fetchall()[0][0])

        yield valid


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_every_encoded_value_is_json_to_the_server(server_says: Any, value: Any) -> None:
    assert server_says(encode(value))
    assert server_says(checked(json.dumps(value, ensure_ascii=False)))


@pytest.mark.parametrize("text", ODD)
def test_odd_but_lawful_text_is_judged_alike(server_says: Any, text: str) -> None:
    try:
        checked(text)
    except BadInput:
        return  # stricter than the server is what the door may be
    assert server_says(text)
    decode(text)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_31_levels_are_json_to_the_server(server_says: Any, opening: str) -> None:
    closing_bracket = "]" if opening == "[" else "}"
    assert server_says(checked(opening * MAX_DEPTH + "1" + closing_bracket * MAX_DEPTH))


def test_the_largest_integer_is_json_to_the_server(server_says: Any) -> None:
    largest = 10**MAX_DIGITS - 1
    assert server_says(encode([largest, -largest]))
