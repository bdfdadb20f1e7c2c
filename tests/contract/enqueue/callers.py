"""Cursors as applications have them: one of each driver and kind, for tests of enqueue and complete."""

from __future__ import annotations

import importlib
import importlib.util
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from qd.store.dialect import SQLITE
from qd.store.schema import migrate
from tests.contract.test_schema_checks import Percent
from tests.support.server import PASSWORD, Server


@dataclass
class Caller:
    """An application's connection and a way to its cursors.

    Attributes:
        cursor: a new cursor of the kind that is tested.
        committed: the rows that a query gives to another connection, which sees all columns.
    """

    connection: Any
    cursor: Callable[[], Any]
    committed: Callable[[str], list[tuple[Any, ...]]]


Opener = Callable[..., Caller]
"""Of a server, the name of a database, and an account of docs/grants.sql (default: `shop`)."""


def _connector(*, pure: bool = False, **kind: bool) -> Opener:
    def opened(server: Server, database: str, user: str = "shop") -> Caller:
        connection = server.connect(database, user=user, use_pure=pure)
        return Caller(connection, lambda: connection.cursor(**kind), lambda sql: server.run(sql, database=database))

    return opened


def _pymysql(kind: str) -> Opener:
    def opened(server: Server, database: str, user: str = "shop") -> Caller:
        place = {"host": server.host, "port": server.port, "database": database, "connect_timeout": 10}
        connection = pymysql.connect(user=server.prefix + user, password=PASSWORD, **place)
        cursor = getattr(pymysql.cursors, kind)
        return Caller(connection, lambda: connection.cursor(cursor), lambda sql: server.run(sql, database=database))

    return opened


def _mysqlclient(kind: str) -> Opener:
    def opened(server: Server, database: str, user: str = "shop") -> Caller:
        driver = importlib.import_module("MySQLdb")
        kinds = importlib.import_module("MySQLdb.cursors")
        place = {"host": server.host, "port": server.port, "database": database, "connect_timeout": 10}
        connection = driver.connect(user=server.prefix + user, password=PASSWORD, **place)
        cursor = getattr(kinds, kind)
        return Caller(connection, lambda: connection.cursor(cursor), lambda sql: server.run(sql, database=database))

    return opened


CALLERS: dict[str, Opener] = {
    "connector": _connector(),
    "connector pure": _connector(pure=True),
    "connector buffered": _connector(buffered=True),
    "connector dictionary": _connector(dictionary=True),
    "connector raw": _connector(raw=True),
    "connector prepared": _connector(prepared=True),
    "connector pure prepared": _connector(prepared=True, pure=True),
    "pymysql": _pymysql("Cursor"),
    "pymysql dictionary": _pymysql("DictCursor"),
    "pymysql unbuffered": _pymysql("SSCursor"),
}
"""Every kind of cursor on MySQL and MariaDB."""

MYSQLCLIENT = importlib.util.find_spec("MySQLdb") is not None
"""Whether this driver, which has to be compiled, is installed."""

if MYSQLCLIENT:
    CALLERS |= {"mysqlclient": _mysqlclient("Cursor"), "mysqlclient dictionary": _mysqlclient("DictCursor")}


def sqlite_caller(path: Path, *, create: bool = True) -> Caller:
    """An application's connection to an embedded store, made if need be."""
    connection = sqlite3.connect(path, timeout=20)
    if create:
        migrate(Percent(connection.cursor()), SQLITE)
        connection.commit()

    def committed(sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as other:
            return other.execute(sql).fetchall()

    return Caller(connection, connection.cursor, committed)


def old_snapshots_may_write(cursor: Any) -> None:
    """As before MariaDB 11.6, which answers 1020 to who writes what has changed since its snapshot."""
    cursor.execute("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'")
    if cursor.fetchall():
        cursor.execute("SET SESSION innodb_snapshot_isolation = OFF")
