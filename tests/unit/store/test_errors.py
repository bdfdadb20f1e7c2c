"""Every error number that is known, and what becomes of it."""

from __future__ import annotations

import sqlite3

import mysql.connector
import pytest
from mysql.connector.errors import ReadTimeoutError

from qd.errors import (
    ConnectionLost,
    DataRefused,
    LockWait,
    ReadOnlyServer,
    ServerBusy,
    SetupWrong,
    StoreError,
    TransactionFailed,
    UnknownError,
)
from qd.store.mysql.errors import sort
from qd.store.sqlite.errors import sort as sort_sqlite

TABLE: dict[type[StoreError], tuple[int, ...]] = {
    LockWait: (1205,),
    TransactionFailed: (1213, 1020, 1180, 1317, 1969, 3024),
    ConnectionLost: (-1, 2002, 2003, 2005, 2006, 2013, 2026, 2055, 4031, 1927, 1053, 1040, 1203, 1047),
    ReadOnlyServer: (1290, 1792, 1836),
    ServerBusy: (1114, 1021, 1129, 1226),
    SetupWrong: (
        1044, 1045, 1049, 1142, 1146, 1054, 1064, 1364, 1665, 1176, 1130, 1143, 1227, 1370, 1698, 1820, 1862, 2061,
        3118, 4151,
    ),
    DataRefused: (4025, 3819, 1153, 1264, 1048, 1062, 1265, 1292, 1301, 1366, 1406, 1690, 2020, 3140, 3141),
    UnknownError: (1, 1105, 1273, 2014, 2027, 9999),
}  # fmt: skip

KINDS = {
    1205: "lock_wait", 1213: "deadlock", 2013: "lost", 1290: "read_only", 1114: "refused", 1064: "other", 9999: "other",
}  # fmt: skip


@pytest.mark.parametrize(("kind", "number"), [(kind, number) for kind, many in TABLE.items() for number in many])
@pytest.mark.parametrize("said_as", [mysql.connector.DatabaseError, mysql.connector.InterfaceError])
def test_each_number_has_its_class_whatever_the_drivers_class(
    kind: type[StoreError], number: int, said_as: type[mysql.connector.Error]
) -> None:
    error = sort(said_as(msg="what the server said", errno=number), "poller: SELECT")
    assert type(error) is kind
    assert error.errno == number
    assert error.kind == KINDS.get(number, error.kind)
    assert str(error).startswith("poller: SELECT: what the server said")
    assert "\n" not in str(error)


def test_a_lost_connection_that_took_the_whole_limit_is_a_timeout() -> None:
    lost = mysql.connector.OperationalError(msg="gone", errno=2013)
    assert sort(lost, "x").kind == "lost"
    assert sort(lost, "x", timed_out=True).kind == "timeout"


def test_the_pure_drivers_read_timeout_is_a_loss_though_it_bears_a_servers_number() -> None:
    error = sort(ReadTimeoutError(errno=3024), "x")
    assert type(error) is ConnectionLost
    assert error.kind == "timeout"
    assert "\n" not in str(error)


def test_a_loss_in_commit_leaves_the_outcome_unknown_and_a_deadlock_does_not() -> None:
    lost = sort(mysql.connector.OperationalError(msg="gone", errno=2013), "x", in_commit=True)
    assert isinstance(lost, ConnectionLost)
    assert lost.outcome_unknown
    assert type(sort(mysql.connector.DatabaseError(msg="x", errno=1213), "x", in_commit=True)) is TransactionFailed


@pytest.mark.parametrize("errno", [1180, 1317, 1969, 3024, 9999])
def test_a_commit_that_was_cut_short_or_failed_oddly_may_stand(errno: int) -> None:
    cut = sort(mysql.connector.DatabaseError(msg="x", errno=errno), "x", in_commit=True)
    assert isinstance(cut, ConnectionLost) and cut.outcome_unknown


def test_a_socket_error_without_a_number_is_a_loss() -> None:
    assert type(sort(ConnectionResetError("reset"), "x")) is ConnectionLost
    assert sort(TimeoutError("timed out"), "x").kind == "timeout"


def test_what_nobody_knows_is_unknown_and_named() -> None:
    error = sort(ZeroDivisionError("odd"), "x")
    assert type(error) is UnknownError
    assert "ZeroDivisionError" in str(error)


@pytest.mark.parametrize("number", [1045, 1049, 1146, 1142, 1665, 1176, 1290, 2003, 1040, 1129])
def test_what_a_person_can_mend_says_how(number: int) -> None:
    assert "; " in str(sort(mysql.connector.DatabaseError(msg="no", errno=number), "x"))


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (sqlite3.OperationalError("database is locked"), LockWait),
        (sqlite3.OperationalError("interrupted"), TransactionFailed),
        (sqlite3.OperationalError("attempt to write a readonly database"), ReadOnlyServer),
        (sqlite3.OperationalError("database or disk is full"), ServerBusy),
        (sqlite3.OperationalError("no such table: qd_jobs"), SetupWrong),
        (sqlite3.OperationalError("unable to open database file"), SetupWrong),
        (sqlite3.DatabaseError("file is not a database"), SetupWrong),
        (sqlite3.IntegrityError("CHECK constraint failed"), DataRefused),
        (sqlite3.DataError("string or blob too big"), DataRefused),
        (OverflowError("Python int too large"), DataRefused),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates"), DataRefused),
        (sqlite3.OperationalError("disk I/O error"), UnknownError),
    ],
)
def test_sqlites_words_have_their_class(raised: Exception, kind: type[StoreError]) -> None:
    assert type(sort_sqlite(raised, "x")) is kind
