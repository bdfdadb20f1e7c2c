"""A checked job: exact texts and numbers, whatever kind of them was given, and how large it can be in a statement."""

from __future__ import annotations

import re
from enum import Enum, IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qd
from qd.errors import BadInput
from qd.payload import RawJson
from qd.store.callers.new_row import _ESCAPED, new_row


class Name(str, Enum):
    """As applications keep their queues and types; `str()` of a member is `Name.MAILS`."""

    MAILS = "mails"
    HIGH = "high"


class Level(IntEnum):
    """As applications keep their priorities."""

    HIGH = 1
    TRIES = 7


class Liar(str):
    """A text that says it is another."""

    def __str__(self) -> str:
        return "x'), ('y"


class LyingNumber(int):
    """A number that says it is another."""

    def __int__(self) -> int:
        return 99

    __index__ = __int__


def test_a_member_of_an_enum_means_its_value() -> None:
    job = qd.NewJob(Name.MAILS, queue=Name.MAILS, priority=Name.HIGH, unique_key=Name.MAILS, max_attempts=Level.TRIES)
    row = new_row(job)
    assert row.values == ("mails", "mails", "{}", 1, "mails", 7)
    assert [type(value) for value in row.values] == [str, str, str, int, str, int]
    assert new_row(qd.NewJob("t", priority=Level.HIGH)).priority == 1


def test_what_was_checked_is_what_is_written() -> None:
    class Raw(RawJson):
        __str__ = Liar.__str__

    job = qd.NewJob(Liar("t"), Raw("[1]"), Liar("q"), 0, LyingNumber(1), Liar("k"), LyingNumber(2))
    assert new_row(job).values == ("q", "t", "[1]", 1, "k", 2)


@given(st.text(max_size=70))
def test_a_name_that_is_let_in_means_nothing_inside_quotes(text: str) -> None:
    """The INSERT of many rows writes names out."""
    try:
        queue = new_row(qd.NewJob("t", queue=text)).queue
    except BadInput:
        return
    assert not _ESCAPED.search(queue.encode()) and not re.search("[%?;`{}]", queue)


@given(st.text(max_size=50), st.text(min_size=1, max_size=50), st.booleans())
def test_a_rows_bound_is_never_under_its_size(payload: str, key: str, raw: bool) -> None:
    import json

    text = json.dumps(payload, ensure_ascii=False)
    try:
        row = new_row(qd.NewJob("t", RawJson(text) if raw else payload, unique_key=key))
    except BadInput:
        return
    assert row.most() >= row.size()


@pytest.mark.parametrize("value", [-1, 4, 1.0, True, "2", LyingNumber(4)])
def test_no_other_number_passes_for_a_priority(value: object) -> None:
    with pytest.raises(BadInput, match=r"^priority: "):
        new_row(qd.NewJob("t", priority=value))  # type: ignore[arg-type]
