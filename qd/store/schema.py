"""Which schema a database has, whether this qd works with it, and bringing it up to date.

Files are in migrations/DIALECT/NNNN_what.sql; the README there says how one is written.
May import: the pure modules and this package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from qd.clock import monotonic
from qd.errors import LockWait, ServerBusy, SetupWrong
from qd.store.callers.cursor import errno
from qd.store.dialect import Cursor, Dialect
from qd.store.protocol import SchemaState

SCHEMA_VERSION = 1
"""The schema that this qd makes: the number of its last migration."""

COMPATIBLE_FROM = 1
"""The oldest schema that this qd's code works with."""

TABLES = ("qd_jobs", "qd_failed_jobs", "qd_queues", "qd_daemons")
"""qd's tables beside qd_schema."""

LOCK_WAIT = 60.0
"""Seconds that a migration waits for another one."""

_RUN = "run `qd migrate`, on a server with the migrator's account (qd --config FILE migrate)"
_LOCK_STEP = 5  # seconds; below any statement's time limit
_TABLE_WAIT = 10  # seconds
_LOCK = "CONCAT('qd.migrate.', LEFT(SHA2(DATABASE(), 256), 40))"
_ALREADY_THERE = frozenset({1050, 1060, 1061, 1091, 1826, 3822})
"""Table, column, index or check that an interrupted run made, or one that it dropped."""

_LEFT_OUT = frozenset({1205, 1684})
"""MariaDB's warnings under an answer of information_schema that lacks a table which exists: somebody has it locked
for a change of its definition."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: `name` without `.sql`, its number, what it leaves compatible, its statements."""

    name: str
    number: int
    compatible_from: int
    statements: tuple[str, ...]


def schema_state(cursor: Cursor, dialect: Dialect, directory: Path | None = None) -> SchemaState:
    """What the database says of its schema; changes nothing.

    Args:
        cursor: in the database that is to be looked at.
        directory: the migrations, if not the package's own.

    Raises:
        SetupWrong: it has tables with qd's names that aren't qd's, or has lost one of qd's, or a column.
        TransactionFailed: a table is being changed right now, so that it can't be told.
    """
    known = migrations(dialect, directory)
    version, compatible_from = _version(cursor, dialect)
    if version:
        columns = {table: _columns(cursor, dialect, table) for table in TABLES}
        _refuse_lost_tables([table for table in TABLES if not columns[table]])
        if compatible_from <= SCHEMA_VERSION:  # else another qd's: what it has is for that one to say
            _refuse_lost_columns(_made(known[0]), columns)
    pending = [migration.name for migration in known if migration.number > version]
    return SchemaState(version, compatible_from, pending)


def check_compatible(state: SchemaState, *, version: int = SCHEMA_VERSION, oldest: int = COMPATIBLE_FROM) -> None:
    """Whether code of this version works with the schema, so that rolling upgrades overlap.

    Args:
        version: the code's.
        oldest: the oldest schema that the code works with.

    Raises:
        SetupWrong: it doesn't; the one line says what to run.
    """
    if state.version == 0:
        raise SetupWrong(f"the database has no qd tables, or this account has no rights on them: {_RUN}")
    if state.version < oldest:
        raise SetupWrong(f"the schema's version {state.version} is too old, {oldest} is needed: {_RUN}")
    if state.version > version and state.compatible_from > version:
        raise SetupWrong(
            f"the schema's version {state.version} needs a qd of schema {state.compatible_from} or newer,"
            f" this one is of {version}: upgrade qd"
        )


def migrate(cursor: Cursor, dialect: Dialect, directory: Path | None = None) -> list[str]:
    """Brings the schema up to date; names what was applied, nothing if it was.

    Safe when two run at once (the second waits up to 60 s, then finds nothing to do) and when one
    was interrupted. On MySQL every statement commits by itself, and an ALTER takes its time: give
    a connection without a short read time-out. On SQLite it is one transaction.

    Args:
        cursor: in the database that is to be changed; its transaction must not hold changes.
        directory: the migrations, if not the package's own.

    Raises:
        SetupWrong: the schema is newer than these migrations, or isn't qd's; nothing was changed.
        LockWait: another statement changes a table right now; nothing was changed.
        ServerBusy: another migration didn't end in time.
    """
    known = migrations(dialect, directory)
    with (_alone_sqlite if dialect.name == "sqlite" else _alone_mysql)(cursor):
        version, _ = _version(cursor, dialect)
        if version > known[-1].number:
            raise SetupWrong(f"the schema's version {version} is newer than this qd's {known[-1].number}: upgrade qd")
        if version == 0:  # what stands here already is an interrupted run's, or a stranger's
            made = _made(known[0])
            _refuse_lost_columns(made, {table: _columns(cursor, dialect, table) for table in made})
        pending = [migration for migration in known if migration.number > version]
        for migration in pending:
            _apply(cursor, dialect, migration)
        return [migration.name for migration in pending]


def migrations(dialect: Dialect, directory: Path | None = None) -> list[Migration]:
    """All migrations in order.

    Raises:
        ValueError: a file's name or head is wrong, or a number is missing (a fault of the package).
    """
    if directory is None:
        return list(_shipped(dialect.name))
    return _all_in(directory)


@cache
def _shipped(dialect: str) -> tuple[Migration, ...]:
    """The package's own, as they were at the first use: a deploy replaces the files under a running daemon."""
    return tuple(_all_in(Path(__file__).parent / "migrations" / dialect))


def _all_in(folder: Path) -> list[Migration]:
    found = [_read(path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.sql"))]
    if not found or [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations in {folder} are not numbered from 0001 without a gap")
    return found


def _read(name: str, text: str) -> Migration:
    numbered = re.fullmatch(r"(\d{4})_[a-z0-9_]+\.sql", name)
    head = re.search(r"^-- compatible_from: (\d+)$", text, re.MULTILINE)
    if numbered is None or head is None:
        raise ValueError(f"migration {name}: must be named NNNN_what.sql and say `-- compatible_from: N`")
    bare = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    statements = [part.strip() for part in re.split(r";[ \t]*$", bare, flags=re.MULTILINE)]
    return Migration(name[:-4], int(numbered[1]), int(head[1]), tuple(filter(None, statements)))


def _apply(cursor: Cursor, dialect: Dialect, migration: Migration) -> None:
    for statement in migration.statements:
        try:
            cursor.execute(statement)
        except Exception as error:  # only what a former, interrupted run did is passed over
            if dialect.name == "sqlite" or errno(error) not in _ALREADY_THERE:
                raise
    values = (migration.number, migration.compatible_from)
    cursor.execute("UPDATE qd_schema SET version = %s, compatible_from = %s", values)
    if cursor.rowcount == 0:
        cursor.execute("INSERT INTO qd_schema (version, compatible_from) VALUES (%s, %s)", values)
    if dialect.name != "sqlite":
        cursor.execute("COMMIT")


def _version(cursor: Cursor, dialect: Dialect) -> tuple[int, int]:
    """What qd_schema says; zeros where there is none, or where the first migration was interrupted."""
    columns = _columns(cursor, dialect, "qd_schema")
    if not columns:
        strange = [table for table in TABLES if _columns(cursor, dialect, table)]
        if strange:
            raise SetupWrong(
                f"the database has {', '.join(strange)} but no qd_schema that this account may read:"
                " not qd's tables, not all of them, or rights are missing (docs/grants.sql)"
            )
        return 0, 0
    if not {"version", "compatible_from"} <= columns:
        raise SetupWrong("the table qd_schema of this database isn't qd's: it has other columns")
    cursor.execute("SELECT version, compatible_from FROM qd_schema ORDER BY version DESC LIMIT 1")
    row = cursor.fetchone()
    cursor.fetchall()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def _made(migration: Migration) -> dict[str, set[str]]:
    """The columns of each table that it makes; those of the first one are in every schema."""
    made = {}
    for statement in migration.statements:
        if head := re.match(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+) \(", statement):
            made[head[1]] = set(re.findall(r"^ +([a-z_]+) ", statement, re.MULTILINE))
    return made


def _refuse_lost_tables(lost: list[str]) -> None:
    if lost:
        raise SetupWrong(
            f"the database has no {', '.join(lost)} that this account may see: rights are missing (docs/grants.sql),"
            " or the table was lost: make it again from schema.sql"
        )


def _refuse_lost_columns(made: dict[str, set[str]], there: dict[str, set[str]]) -> None:
    """Of tables that are there; a stranger's that bears our name lacks some as well."""
    for table, columns in made.items():
        lost = columns - there[table] if there.get(table) else set[str]()
        if lost:
            raise SetupWrong(
                f"the table {table} has no column {', '.join(sorted(lost))}: it isn't qd's,"
                " or was changed by hand: compare it with schema.sql"
            )


def refuse_left_out(cursor: Cursor) -> None:
    """To be called behind a look into information_schema whose answer lacks a table: is that the truth?

    Raises:
        LockWait: the server left the table out, because somebody changes its definition.
    """
    cursor.execute("SHOW WARNINGS")
    for _, number, said in cursor.fetchall():
        if number in _LEFT_OUT:
            raise LockWait(f"a table is being changed by another connection, so the schema can't be read now: {said}")


def _columns(cursor: Cursor, dialect: Dialect, table: str) -> set[str]:
    if dialect.name == "sqlite":
        cursor.execute("SELECT name FROM pragma_table_info(%s)", (table,))
    else:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = %s",
            (table,),
        )
    found = {str(row[0]).lower() for row in cursor.fetchall()}
    if not found and dialect.name != "sqlite":
        refuse_left_out(cursor)
    return found


@contextmanager
def _alone_mysql(cursor: Cursor) -> Iterator[None]:
    """Holds the server's lock of this name. Where it isn't shared (Galera) the statements are repeatable."""
    deadline = monotonic() + LOCK_WAIT
    while not _one(cursor, f"SELECT GET_LOCK({_LOCK}, {_LOCK_STEP})"):
        if monotonic() >= deadline:
            raise ServerBusy(f"another migration of this database has been running for over {LOCK_WAIT:.0f} s")
    try:
        cursor.execute("COMMIT")  # a snapshot taken before the lock would show the schema as it was
        with _session_for_ddl(cursor):
            yield
    finally:
        with suppress(Exception):  # a lost connection has given it back already
            _one(cursor, f"SELECT RELEASE_LOCK({_LOCK})")


@contextmanager
def _session_for_ddl(cursor: Cursor) -> Iterator[None]:
    """An ALTER may run for as long as it takes, but not wait long: all that comes behind it waits too."""
    limits = {"lock_wait_timeout": _TABLE_WAIT}
    cursor.execute("SHOW SESSION VARIABLES LIKE 'max_statement_time'")  # MariaDB's, which ends DDL too
    if cursor.fetchall():
        limits["max_statement_time"] = 0
    before = {name: _one(cursor, f"SELECT @@session.{name}") for name in limits}
    for name, value in limits.items():
        cursor.execute(f"SET SESSION {name} = {value}")
    try:
        yield
    finally:
        with suppress(Exception):  # a lost connection has nothing to restore
            for name, value in before.items():
                cursor.execute(f"SET SESSION {name} = {value}")


@contextmanager
def _alone_sqlite(cursor: Cursor) -> Iterator[None]:
    """One transaction that lets no other writer in: its own, unless the caller has begun one."""
    try:
        cursor.execute("BEGIN EXCLUSIVE")
    except Exception as error:
        if "within a transaction" not in str(error):
            raise
        yield
        return
    try:
        yield
    except BaseException:
        with suppress(Exception):  # a full disk has SQLite roll back by itself; what happened first is what counts
            cursor.execute("ROLLBACK")
        raise
    cursor.execute("COMMIT")


def _one(cursor: Cursor, sql: str) -> Any:
    cursor.execute(sql)
    return cursor.fetchall()[0][0]
