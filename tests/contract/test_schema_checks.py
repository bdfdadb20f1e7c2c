"""What the tables refuse by themselves, in the laxest sql_mode: nobody's SQL leaves a row that harms."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import mysql.connector
import pytest

from qd.store.dialect import SQLITE
from qd.store.schema import migrate
from tests.support.server import Server

REFUSED = {3819, 4025}
"""MySQL's and MariaDB's number of a CHECK that doesn't hold."""


@pytest.fixture
def lax(mariadb: Server, mysql_database: str) -> Iterator[Any]:
    """A cursor in a session that would cut, round and zero whatever doesn't fit."""
    with (
        closing(mariadb.connect(mysql_database, autocommit=True)) as connection,
        closing(connection.cursor()) as cursor,
    ):
        cursor.execute("SET sql_mode = ''")
        yield cursor


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[sqlite3.Cursor]:
    connection = sqlite3.connect(tmp_path / "qd.sqlite3", isolation_level=None)
    with closing(connection), closing(connection.cursor()) as cursor:
        migrate(Percent(cursor), SQLITE)
        yield cursor


class Percent:
    """A sqlite3 cursor that takes `%s`, as qd's own do."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.fetchone, self.fetchall = cursor.fetchone, cursor.fetchall

    rowcount = property(lambda self: self._cursor.rowcount)
    lastrowid = property(lambda self: self._cursor.lastrowid)

    def execute(self, sql: str, params: Any = ()) -> Any:
        return self._cursor.execute(sql.replace("%s", "?"), params)


def insert(cursor: Any, **columns: Any) -> int:
    """Inserts a row of qd_jobs from values written as SQL; its id."""
    columns = {"type": "'t'"} | columns
    cursor.execute(f"INSERT INTO qd_jobs ({', '.join(columns)}) VALUES ({', '.join(columns.values())})")
    return int(cursor.lastrowid)


def refuses(cursor: Any, **columns: Any) -> None:
    if isinstance(cursor, sqlite3.Cursor):
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            insert(cursor, **columns)
    else:
        with pytest.raises(mysql.connector.Error) as refused:
            insert(cursor, **columns)
        assert refused.value.errno in REFUSED, refused.value
    cursor.execute("SELECT COUNT(*) FROM qd_jobs")
    assert cursor.fetchone()[0] == 0


BAD_NAMES = [
    "''",
    "' '",
    "'a b'",
    "'mails '",
    "'a/b'",
    "'a\nb'",
    "'a\n'",
    "'mäils'",
    "'a\"b'",
    "'<b>'",
    "'a,b'",
    "'a+b'",
]
GOOD_NAMES = ["a", "A-Z_09.:-", "-", ":", "x" * 64]
BAD_PAYLOADS = ["''", "' '", "'{'", "'nul'", "'{}{}'", "'[1,]'", "'NaN'", "'{\"a\": NaN}'", "'[Infinity]'", "0x1f8b"]
GOOD_PAYLOADS = ["{}", "null", "[]", "5", '"x"', ' {"b": 1.0,  "a": 1, "a": 2}\n', "[" * 31 + "]" * 31]
DRIFT = [("0", "'w'"), ("1", "NULL"), ("2", "'w'")]


@pytest.mark.parametrize("column", ["queue", "type"])
@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_with_other_characters_is_refused(lax: Any, column: str, name: str) -> None:
    refuses(lax, **{column: name})


@pytest.mark.parametrize("column", ["queue", "type"])
@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_with_other_characters_is_refused_by_sqlite(embedded: Any, column: str, name: str) -> None:
    refuses(embedded, **{column: name})


@pytest.mark.parametrize("column", ["queue", "type"])
@pytest.mark.parametrize("name", GOOD_NAMES)
def test_every_allowed_name_is_taken(lax: Any, embedded: Any, column: str, name: str) -> None:
    for cursor in (lax, embedded):
        job = insert(cursor, **{column: f"'{name}'"})
        cursor.execute(f"SELECT {column} FROM qd_jobs WHERE id = {job}")
        assert cursor.fetchone()[0] == name


def test_names_differ_by_case(lax: Any, embedded: Any) -> None:
    for cursor in (lax, embedded):
        insert(cursor, queue="'mail'")
        insert(cursor, queue="'MAIL'")
        cursor.execute("SELECT COUNT(*) FROM qd_jobs WHERE queue = 'mail'")
        assert cursor.fetchone()[0] == 1


def test_a_missing_type_is_refused(lax: Any) -> None:
    with pytest.raises(mysql.connector.Error) as refused:
        lax.execute("INSERT INTO qd_jobs (queue) VALUES ('mails')")
    assert refused.value.errno in REFUSED | {1364}


@pytest.mark.parametrize("payload", BAD_PAYLOADS)
def test_a_payload_that_is_not_json_is_refused(lax: Any, payload: str) -> None:
    refuses(lax, payload=payload)


@pytest.mark.parametrize("payload", [payload for payload in BAD_PAYLOADS if not payload.startswith("0x")])
def test_a_payload_that_is_not_json_is_refused_by_sqlite(embedded: Any, payload: str) -> None:
    refuses(embedded, payload=payload)


@pytest.mark.parametrize("payload", GOOD_PAYLOADS)
def test_any_json_is_kept_byte_for_byte(lax: Any, embedded: Any, payload: str) -> None:
    for cursor in (lax, embedded):
        insert(cursor, payload=f"'{payload}'")
        cursor.execute("SELECT payload FROM qd_jobs")
        assert cursor.fetchone()[0] == payload


@pytest.mark.parametrize("priority", ["4", "255", "300", "1000000"])
def test_a_priority_over_3_is_refused(lax: Any, embedded: Any, priority: str) -> None:
    refuses(lax, priority=priority)
    refuses(embedded, priority=priority)


@pytest.mark.parametrize("moment", ["0", "'0000-00-00'", "''", "'rubbish'", "'2026-13-45'", "'1970-06-01'"])
def test_a_date_that_is_none_is_refused(lax: Any, embedded: Any, moment: str) -> None:
    refuses(lax, available_at=moment)
    if moment != "'2026-13-45'":  # SQLite has no type for dates; the text compares as a later time
        refuses(embedded, available_at=moment)


@pytest.mark.parametrize(("lane", "owner"), DRIFT)
def test_a_lane_that_disagrees_with_the_owner_is_refused(lax: Any, embedded: Any, lane: str, owner: str) -> None:
    refuses(lax, lane=lane, reserved_by=owner)
    refuses(embedded, lane=lane, reserved_by=owner)


@pytest.mark.parametrize("change", ["reserved_by = NULL", "lane = 0", "lane = 3", "lane = 2"])
def test_an_update_by_hand_that_would_leave_a_lost_row_is_refused(lax: Any, embedded: Any, change: str) -> None:
    for cursor in (lax, embedded):
        job = insert(cursor, lane="1", reserved_by="'w'")
        with pytest.raises((mysql.connector.Error, sqlite3.IntegrityError)):
            cursor.execute(f"UPDATE qd_jobs SET {change} WHERE id = {job}")
        cursor.execute(f"UPDATE qd_jobs SET lane = 0, reserved_by = NULL WHERE id = {job}")


def test_a_lane_over_2_is_refused(lax: Any, embedded: Any) -> None:
    for cursor in (lax, embedded):
        refuses(cursor, lane="3")


@pytest.mark.parametrize("attempts", ["0", "-5"])
def test_fewer_than_one_attempt_is_refused(lax: Any, embedded: Any, attempts: str) -> None:
    refuses(lax, max_attempts=attempts)
    refuses(embedded, max_attempts=attempts)


def test_one_queue_holds_a_unique_key_once(lax: Any, embedded: Any) -> None:
    for cursor, taken in ((lax, mysql.connector.IntegrityError), (embedded, sqlite3.IntegrityError)):
        insert(cursor, queue="'a'", unique_key="'k'")
        insert(cursor, queue="'b'", unique_key="'k'")
        insert(cursor, queue="'a'", unique_key="'K'")
        insert(cursor, queue="'a'", unique_key="NULL")
        insert(cursor, queue="'a'", unique_key="NULL")
        with pytest.raises(taken):
            insert(cursor, queue="'a'", unique_key="'k'")


def test_a_row_needs_no_more_than_a_type(lax: Any) -> None:
    insert(lax)
    lax.execute(
        "SELECT queue, payload, priority, lane, attempts, crashes, max_attempts, reserved_at, reserved_by, unique_key,"
        " last_error, history, available_at = created_at, ABS(TIMESTAMPDIFF(SECOND, available_at, NOW())) < 60"
        " FROM qd_jobs"
    )
    assert lax.fetchone() == ("default", "{}", 2, 0, 0, 0, *[None] * 6, 1, 1)


def test_a_row_of_sqlite_needs_no_more_than_a_type(embedded: Any) -> None:
    insert(embedded)
    embedded.execute("SELECT queue, payload, priority, lane, attempts, max_attempts, available_at FROM qd_jobs")
    *defaults, available_at = embedded.fetchone()
    assert defaults == ["default", "{}", 2, 0, 0, None]
    assert len(available_at) == len("2026-01-01 00:00:00.000")
    assert datetime.fromisoformat(available_at)
