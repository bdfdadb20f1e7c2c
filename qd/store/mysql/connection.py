"""One connection to MySQL or MariaDB: how it is opened, and which settings it is pinned to.

Any time-out or loss makes it worthless: the owner discards it and opens another; it is never
rolled back, pinged or used again. May import: direct, errors, forked, limits, tls, config, the pure modules.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

import mysql.connector
from mysql.connector.constants import ClientFlag

from qd.clock import monotonic
from qd.config.model import DatabaseConfig
from qd.config.password import read_password, why_none
from qd.errors import ConfigError, SetupWrong
from qd.store.mysql import forked, tls
from qd.store.mysql.direct import direct_cursor
from qd.store.mysql.errors import LOGIN, number, sort
from qd.store.mysql.limits import IDLE, IDLE_ON_MYSQL, Limits

SQL_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
"""Strict, and with backslash escapes: the driver's quoting needs them."""

UNKNOWN_VARIABLE = 1193

HARMLESS = (
    "SESSION sql_select_limit = 18446744073709551615, SESSION sql_safe_updates = 0, SESSION sql_big_selects = 1, "
    "SESSION completion_type = 'NO_CHAIN'"
)
"""What a server's defaults may hold that refuses qd's statements, cuts their rows or ends its sessions."""

_first = threading.Lock()
_first_done = False


class Connection:
    """An open connection with its one cursor.

    Attributes:
        quick: a cursor with less between qd and the wire, where there is one.
        opened_at: monotonic.
        used_at: monotonic, of the last transaction's end.
        pid: of the process that opened it; in a forked child it isn't ours.
        server: for people, e.g. `MariaDB 10.11.14`.
        version: as the server writes it.
        mariadb: whether it is one (variables and some syntax differ), whatever it greets as.
        max_packet: bytes of the longest statement that it takes.
    """

    def __init__(self, raw: Any, limits: Limits) -> None:
        self.raw = raw
        self.limits = limits
        self.cursor = raw.cursor(buffered=True)
        self.quick: Any = direct_cursor(raw) or self.cursor
        self.opened_at = self.used_at = monotonic()
        self.pid = os.getpid()
        self.mariadb = "mariadb" in str(raw.server_info).lower()
        self.server = self.version = ""
        self.max_packet = 0

    def pin(self) -> None:
        """Sets what every session of qd relies on, and learns who answers: two round trips."""
        try:
            self.cursor.execute(_pinned(self.limits, self.mariadb))
        except mysql.connector.Error as error:
            if number(error) != UNKNOWN_VARIABLE:
                raise
            self.mariadb = not self.mariadb  # a proxy greets by a version that isn't the server's
            self.cursor.execute(_pinned(self.limits, self.mariadb))
        self.cursor.execute("SELECT VERSION(), @@max_allowed_packet")
        version, max_packet = self.cursor.fetchone()
        self.version, self.max_packet = str(version), int(max_packet)
        first = 1 if self.version.startswith("5.5.5-") else 0  # how old MariaDBs begin, for replication's sake
        self.server = f"{'MariaDB' if self.mariadb else 'MySQL'} {self.version.split('-')[first]}"

    def commit(self) -> None:
        """Commits; what it raises is the driver's own."""
        self.raw.commit()

    def rollback(self) -> None:
        """Rolls back; only on a connection that is known to live."""
        self.raw.rollback()

    def discard(self) -> None:
        """Closes it in a bounded time, whatever state it is in."""
        _close(self.raw)


def _close(raw: Any) -> None:
    with suppress(Exception):  # it is worthless, so is what closing it may say
        raw.close()


def connector_flavour(*, pure: bool = False) -> str:
    """`c` where the driver's C extension is used, else `pure`."""
    return "c" if mysql.connector.HAVE_CEXT and not pure else "pure"


def connect(config: DatabaseConfig, name: str, *, pure: bool = False, autocommit: bool = False) -> Connection:
    """Opens and pins a connection.

    Args:
        name: seen in performance_schema as program_name.
        pure: True takes the driver's Python flavour even where its C extension loads.
        autocommit: each statement is a transaction of its own.

    Raises:
        StoreError: sorted by errno.
    """
    where = f"connecting to {address(config)} as {config.user}"
    arguments = {**_arguments(config, name, pure), "autocommit": autocommit}
    try:
        raw = _open(arguments)
    except Exception as error:  # the driver raises more than its own errors; sorted, not swallowed
        hint = why_none(config) if number(error) in LOGIN else None
        said = _without(arguments["password"], error)
        raise tls.refused(config, where, error) or sort(said, where, hint=hint) from None
    forked.guard(raw)
    try:
        connection = Connection(raw, Limits.of(config))  # it pings, so it may be lost already
        connection.pin()
        tls.require(config, connection.cursor, address(config))
    except Exception as error:  # as above; the half-made connection is closed
        _close(raw)
        raise sort(error, where) from None
    return connection


def address(config: DatabaseConfig) -> str:
    """Where the server is, for people."""
    return config.unix_socket or f"{config.host}:{config.port}"


def _open(arguments: dict[str, Any]) -> Any:
    """The process's first connection is made alone: the C extension has crashed when several were."""
    global _first_done
    if _first_done:
        return mysql.connector.connect(**arguments)
    with _first:
        try:
            return mysql.connector.connect(**arguments)
        finally:
            _first_done = True


def _arguments(config: DatabaseConfig, name: str, pure: bool) -> dict[str, Any]:
    limits = Limits.of(config)
    place = {"unix_socket": config.unix_socket} if config.unix_socket else {"host": config.host, "port": config.port}
    return {
        **place,
        **tls.arguments(config),
        "user": config.user,
        "password": password(config),
        "database": config.name,
        "use_pure": connector_flavour(pure=pure) == "pure",
        "connection_timeout": limits.connect,
        "read_timeout": limits.statement,
        "write_timeout": limits.statement,
        "charset": "utf8mb4",
        "collation": "utf8mb4_bin",
        "allow_local_infile": False,
        "client_flags": [ClientFlag.FOUND_ROWS, -ClientFlag.MULTI_STATEMENTS, -ClientFlag.LOCAL_FILES],
        "conn_attrs": {"program_name": f"qd {name}"[:128]},
    }


def password(config: DatabaseConfig) -> str:
    """The password, read anew for each connection so that a changed file is taken up.

    Raises:
        SetupWrong: the file can't be read, or holds none.
    """
    try:
        return read_password(config) or ""
    except ConfigError as error:  # found while a daemon runs, it is an outage like a wrong password
        raise SetupWrong(str(error)) from None


def _pinned(limits: Limits, mariadb: bool) -> str:
    isolation = "tx_isolation" if mariadb else "transaction_isolation"
    longest = (
        f"max_statement_time = {limits.server}, SESSION idle_transaction_timeout = {limits.pause}"
        if mariadb
        else f"max_execution_time = {round(limits.server * 1000)}"
    )
    idle = IDLE if mariadb else IDLE_ON_MYSQL
    return (
        f"SET NAMES utf8mb4 COLLATE utf8mb4_bin, SESSION sql_mode = '{SQL_MODE}', SESSION time_zone = '+00:00', "
        f"SESSION {isolation} = 'READ-COMMITTED', SESSION innodb_lock_wait_timeout = {limits.lock_wait}, "
        f"SESSION lock_wait_timeout = {limits.table_wait}, SESSION wait_timeout = {idle}, SESSION {longest}, {HARMLESS}"
    )


def _without(secret: str, error: Exception) -> Exception:
    """The same error, or, if its text has the password in it, one that doesn't say it."""
    if not secret or secret not in str(error):
        return error
    errno = getattr(error, "errno", None)
    return mysql.connector.Error(msg=str(error).replace(secret, "***"), errno=errno)
