"""What can't be right is refused at the door, in one line that names the field, with nothing written."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import qd
from qd.errors import BadInput
from tests.contract.enqueue.callers import Caller, sqlite_caller

BAD = [
    ("type", ["", "a b", "mails\n", "é", "x" * 129, None, 7, "qd.post", "qd.", b"t"]),
    ("queue", ["", " ", "a/b", "x" * 65, None, "mails ", "a\0"]),
    ("payload", [math.nan, {1, 2}, object(), "\ud800", [[]] * 2 + [{"a": math.inf}]]),
    ("priority", ["", "HIGH", "none", -1, 4, 1.0, True, None, "2"]),
    ("delay", [-1, -0.001, math.nan, math.inf, "5", None, True, 10**400, Decimal(5)]),
    ("delay", [timedelta(days=-1), timedelta(days=9999)]),
    ("unique_key", ["", "x" * 192, 7, "k ", " ", "\ud800", b"k"]),
    ("max_attempts", [0, -1, 65536, 1.0, "3", True]),
]  # fmt: skip
CASES = [(field, value) for field, values in BAD for value in values]
GOOD = [
    ("type", ["t", "A-Z_09.:-", "x" * 128, "qd_own"]),
    ("queue", ["x" * 64, "-"]),
    ("priority", ["urgent", "high", "normal", "low", 0, 1, 2, 3]),
    ("delay", [0, 0.0, 0.5, timedelta(0), 86400 * 365]),
    ("unique_key", ["x" * 191, "😀" * 191, " k", "a\nb", None]),
    ("max_attempts", [1, 65535, None]),
]


@pytest.fixture
def embedded(tmp_path: Path) -> Any:
    with closing(sqlite_caller(tmp_path / "qd.sqlite3").connection) as connection:
        yield connection


def untouched(connection: sqlite3.Connection) -> bool:
    return not connection.in_transaction and connection.execute("SELECT COUNT(*) FROM qd_jobs").fetchone() == (0,)


@pytest.mark.parametrize(("field", "value"), CASES, ids=lambda case: ascii(case).partition(" at 0x")[0][:30])
def test_a_wrong_value_is_refused_in_one_line_and_nothing_is_written(embedded: Any, field: str, value: Any) -> None:
    job: dict[str, Any] = {"type": "t"} | {field: value}
    with pytest.raises(BadInput) as one:
        qd.enqueue(embedded.cursor(), job.pop("type"), **job)
    with pytest.raises(BadInput) as many:
        qd.enqueue_many(embedded.cursor(), [qd.NewJob("t"), qd.NewJob(**({"type": "t"} | {field: value}))])
    assert str(one.value).startswith(f"{field}: ")
    assert str(many.value) == f"job 1: {one.value}"
    assert "\n" not in str(one.value) and len(str(one.value)) < 300
    assert untouched(embedded)


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in GOOD for value in values],
    ids=lambda case: ascii(case)[:30],
)
def test_a_value_at_the_edge_is_taken(embedded: Any, field: str, value: Any) -> None:
    job: dict[str, Any] = {"type": "t"} | {field: value}
    qd.enqueue_many(embedded.cursor(), [qd.NewJob(**job)])
    qd.enqueue(embedded.cursor(), job.pop("type"), **job)


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (datetime(2030, 1, 1), "time zone"),
        ("2030-01-01", "time zone"),
        (datetime(2038, 1, 20, tzinfo=timezone.utc), "2038"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))), "2038"),
    ],
)
def test_a_moment_without_a_zone_or_past_the_servers_range_is_refused(embedded: Any, at: Any, why: str) -> None:
    with pytest.raises(BadInput, match=rf"^at: [^\n]*{why}"):
        qd.enqueue(embedded.cursor(), "t", at=at)
    assert untouched(embedded)


def test_at_and_delay_together_are_refused(embedded: Any) -> None:
    with pytest.raises(BadInput, match=r"^delay: not together with at"):
        qd.enqueue(embedded.cursor(), "t", at=datetime.now(timezone.utc), delay=5)


def test_what_is_no_new_job_is_refused(embedded: Any) -> None:
    with pytest.raises(BadInput, match=r"^job 0: job: [^\n]*qd.NewJob"):
        qd.enqueue_many(embedded.cursor(), ["t"])  # type: ignore[list-item]


@pytest.mark.parametrize("cursor", [None, 7, object(), "cursor"])
def test_what_is_no_cursor_is_refused(cursor: Any) -> None:
    for act in (lambda: qd.enqueue(cursor, "t"), lambda: qd.enqueue_many(cursor, [qd.NewJob("t")])):
        with pytest.raises(BadInput, match=r"^cursor: [^\n]+ give a cursor of"):
            act()


def test_a_connection_is_no_cursor(plain_caller: Caller) -> None:
    with pytest.raises(BadInput, match=r"^cursor: "):
        qd.enqueue(plain_caller.connection, "t")


def test_a_frameworks_cursor_around_the_drivers_will_do(plain_caller: Caller) -> None:
    class Wrapper:
        def __init__(self, cursor: Any) -> None:
            self.cursor = cursor

    job = qd.enqueue(Wrapper(Wrapper(plain_caller.cursor())), "t")
    plain_caller.connection.commit()
    assert plain_caller.committed("SELECT id FROM qd_jobs") == [(job,)]


def test_a_value_whose_text_cannot_be_had_is_refused_all_the_same(embedded: Any) -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    with pytest.raises(BadInput, match=r"^queue: a Rude is not allowed"):
        qd.enqueue(embedded.cursor(), "t", queue=Rude())  # type: ignore[arg-type]
