"""The cursor on the driver's C extension gives what the driver's own cursor gives, and raises what it raises."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import mysql.connector
import pytest

from qd.store.mysql.connection import Connection, connect, connector_flavour
from qd.store.mysql.direct import NEEDED, DirectCursor, direct_cursor
from tests.contract.bench import Bench


@pytest.fixture
def connection(mariadb_bench: Bench) -> Iterator[Connection]:
    if connector_flavour() != "c":
        pytest.skip("the driver's C extension doesn't load here")
    made = connect(mariadb_bench.config, "direct")
    assert isinstance(made.quick, DirectCursor), "the C extension has changed: the slower cursor is used"
    yield made
    made.discard()


READS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("SELECT 1", ()),
    ("SELECT %s, %s, %s", ('it\'s \\ "%s" ü \U0001f41f', 7, None)),
    ("SELECT 1.50, 2e0, NULL, CAST('x' AS BINARY), DATE('2026-01-02'), TIMESTAMP('2026-01-02 03:04:05.678901')", ()),
    ("SELECT id, type FROM qd_jobs WHERE type = %s ORDER BY id", ("none",)),
    ("SELECT id FROM qd_jobs WHERE id < %s ORDER BY id", (1 << 40,)),
    ("SELECT %s", (b"\x00\xff'",)),
    ("SELECT %s", (True,)),
    ("SELECT 7 % 4, '100%', %s, '%d'", ("%s",)),
)


@pytest.mark.parametrize(("sql", "values"), READS)
def test_it_reads_what_the_drivers_cursor_reads(
    mariadb_bench: Bench, connection: Connection, sql: str, values: tuple[Any, ...]
) -> None:
    mariadb_bench.add(3)
    answers = []
    for cursor in (connection.cursor, connection.quick):
        cursor.execute(sql, values)
        counted = cursor.rowcount
        answers.append((cursor.fetchone(), cursor.fetchall(), cursor.fetchone(), counted))
    assert answers[0] == answers[1]
    assert list(map(type, answers[0][0] or ())) == list(map(type, answers[1][0] or ()))


def test_it_counts_what_the_drivers_cursor_counts(mariadb_bench: Bench, connection: Connection) -> None:
    for cursor in (connection.cursor, connection.quick):
        cursor.execute("INSERT INTO qd_jobs (type) VALUES (%s), (%s)", ("a", "a"))
        assert (cursor.rowcount, cursor.lastrowid > 0) == (2, True)
        cursor.execute("UPDATE qd_jobs SET type = %s WHERE type = %s", ("a", "a"))
        assert cursor.rowcount == 2, "rows that were found, changed or not"
        cursor.execute("DELETE FROM qd_jobs WHERE type = %s", ("a",))
        assert cursor.rowcount == 2
        cursor.execute("DELETE FROM qd_jobs WHERE type = %s", ("a",))
        assert cursor.rowcount == 0
    connection.commit()


WRONG: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("SELECT nothing FROM qd_jobs", ()),
    ("SELECT 1 FROM", ()),
    ("INSERT INTO qd_jobs (type, priority) VALUES (%s, 77)", ("a",)),
    ("SELECT %s, %s", (1,)),
    ("SELECT 1", (1,)),
    ("SELECT 1; SELECT 2", ()),
    ("SELECT %s", ("\ud800",)),
    ("SELECT %s", (object(),)),
)


@pytest.mark.parametrize(("sql", "values"), WRONG)
def test_it_raises_what_the_drivers_cursor_raises_and_goes_on(
    connection: Connection, sql: str, values: tuple[Any, ...]
) -> None:
    raised = []
    for cursor in (connection.cursor, connection.quick):
        with pytest.raises(Exception) as error:
            cursor.execute(sql, values)
        raised.append((type(error.value), getattr(error.value, "errno", None)))
    assert raised[0] == raised[1]
    connection.quick.execute("SELECT 5")
    assert connection.quick.fetchall() == [(5,)]


def test_a_connection_that_was_killed_is_told_by_the_same_errno(mariadb_bench: Bench) -> None:
    raised = []
    for quick in (False, True):
        one = connect(mariadb_bench.config, "killed")
        mariadb_bench.sql(f"KILL {one.raw.connection_id}")
        with pytest.raises(mysql.connector.Error) as error:
            (one.quick if quick else one.cursor).execute("SELECT 1")
        raised.append((type(error.value), error.value.errno))
        one.discard()
    assert raised[0] == raised[1]


@pytest.mark.parametrize("lacking", [*NEEDED, None])
def test_where_the_extension_has_changed_the_drivers_cursor_serves(lacking: str | None) -> None:
    extension = SimpleNamespace(**{name: None for name in NEEDED if name != lacking})
    found = direct_cursor(SimpleNamespace(_cmysql=extension, converter=None))
    assert (found is None) == (lacking is not None)
    assert direct_cursor(SimpleNamespace()) is None
    assert direct_cursor(SimpleNamespace(_cmysql=extension, converter=object())) is None
