"""Whether qd's tables are as its migrations make them: what an import, a copy or a hand may have lost or changed.

Columns, indexes and constraints are compared with what the migrations say, by what they do and not by their names
or spelling; what only holds more than ours (a longer text, a wider number, a column or index beside ours) is nobody's
fault. May import: the pure modules, protocol, dialect, schema, shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from qd.store.admin.shape import WIDER, Column, Key, Table, read
from qd.store.dialect import Cursor, Dialect, Session
from qd.store.protocol import Finding
from qd.store.schema import SCHEMA_VERSION, migrations

UNIQUE = "qd_jobs_unique"

NAMED = frozenset({"PRIMARY", UNIQUE, "qd_jobs_claim", "qd_failed_jobs_queue"})
"""Indexes that statements force by name."""

REMEDY = "as schema.sql has"

MADE_BY_SERVER = "isn't made by the server, so that jobs with the same unique key are enqueued twice"


@cache
def expected(dialect: Dialect) -> dict[str, Table]:
    """All tables as the migrations make them; a test holds them equal to schema.sql."""
    made = {}
    for migration in migrations(dialect):
        for statement in migration.statements:
            if head := re.match(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+) \(", statement):
                made[head[1]] = read(statement)
    return made


def of_tables(session: Session, table: str) -> Iterator[Finding]:
    """All that is wrong with one table."""
    found = session.read(lambda cursor: _shown(cursor, table))
    if found.engine != "InnoDB":
        yield Finding("FAIL", "engine", f"{table} is {found.engine}, not InnoDB: moves between tables can be half done")
    if session.read(_version) > SCHEMA_VERSION:  # another qd's: how its tables must be is for that one to say
        return
    ours = expected(session.dialect)[table]
    yield from _of_keys(table, ours, found)
    yield from _of_columns(table, ours, found)
    yield from _of_checks(ours, found)


def of_triggers(session: Session) -> Iterator[Finding]:
    """Those that this account may see; on MySQL the daemon's sees none."""
    tables = ", ".join(f"'{table}'" for table in expected(session.dialect))

    def shown(cursor: Cursor) -> list[str]:
        cursor.execute(
            "SELECT trigger_name, action_timing, event_manipulation, event_object_table "
            "FROM information_schema.triggers WHERE event_object_schema = DATABASE() "
            f"AND event_object_table IN ({tables}) ORDER BY trigger_name"
        )  # fmt: skip
        return [f"{name} ({timing} {event} on {table})" for name, timing, event, table in cursor.fetchall()]

    if names := session.read(shown):
        yield Finding(
            "warn", "triggers", f"{', '.join(names)}: each runs within qd's own statements, many times a second, and "
            "what it refuses or changes is qd's as well. If it isn't wanted, drop it"
        )  # fmt: skip


def _shown(cursor: Cursor, table: str) -> Table:
    """Not information_schema: that hides constraints from the daemon's account, and says nothing of some traits."""
    cursor.execute(f"SHOW CREATE TABLE {table}")
    return read(str(cursor.fetchall()[0][1]))


def _version(cursor: Cursor) -> int:
    cursor.execute("SELECT MAX(version) FROM qd_schema")
    return int(cursor.fetchall()[0][0] or 0)


def _of_keys(table: str, ours: Table, found: Table) -> Iterator[Finding]:
    wanted = dict(ours.keys)
    unique = wanted.get(UNIQUE)
    if unique and not any(key.unique and key.columns == unique.columns for key in found.keys.values()):
        del wanted[UNIQUE]
        yield Finding(
            "FAIL", "unique keys", f"{table} has no unique index on ({', '.join(unique.columns)}): jobs with the same "
            "key are enqueued twice. Make it again as schema.sql has it"
        )  # fmt: skip
    unused = [name for name in wanted if name in found.keys and not found.keys[name].used]
    lost = [name for name, key in wanted.items() if name not in unused and not _serves(name, key, found)]
    if unused:
        yield Finding(
            "FAIL", "indexes", f"the server may not use {', '.join(unused)}: statements that need one are refused. "
            f"ALTER TABLE {table} ALTER INDEX ... VISIBLE (MySQL), or NOT IGNORED (MariaDB)"
        )  # fmt: skip
    if lost:
        yield Finding(
            "FAIL", "indexes", f"lost, or not as they were: {', '.join(_named(table, lost))}: whole tables are walked, "
            "or a statement is refused. Make them again as schema.sql has them"
        )  # fmt: skip


def _serves(name: str, key: Key, found: Table) -> bool:
    """Whether an index does what ours does; more columns behind ours are nobody's fault."""
    there = [found.keys.get(name)] if name in NAMED else found.keys.values()
    return any(
        each is not None and each.used and each.unique >= key.unique
        and each.columns[: len(key.columns) or None] == key.columns
        and (not key.unique or each.columns == key.columns)
        for each in there
    )  # fmt: skip


def _named(table: str, keys: list[str]) -> list[str]:
    return [f"the primary key of {table}" if name == "PRIMARY" else name for name in keys]


def _of_columns(table: str, ours: Table, found: Table) -> Iterator[Finding]:
    wrong = [
        f"{name} {said}"
        for name, column in ours.columns.items()
        if name in found.columns
        for said in differences(column, found.columns[name])
    ]
    wrong += [
        f"{name}, which isn't qd's, has no default, so that rows without it are refused"
        for name, column in found.columns.items()
        if name not in ours.columns and not (column.null or column.default is not None or column.made or column.counted)
    ]
    if wrong:
        yield Finding("FAIL", "columns", f"of {table}: {'; '.join(wrong)}. Make them {REMEDY} them")


def differences(ours: Column, theirs: Column) -> Iterator[str]:
    """In what a column can't do what ours does."""
    if ours.made != theirs.made:
        yield MADE_BY_SERVER if theirs.made is None else f"is {'made otherwise' if ours.made else 'made by the server'}"
    if not _holds(ours, theirs):
        yield f"is {theirs.spelled}, not {ours.spelled}"
    if theirs.charset != ours.charset and ours.charset == "utf8mb4":
        yield f"is {theirs.charset}, not utf8mb4, which holds every letter"
    if ours.binary and not theirs.binary:
        yield "is compared by a collation that takes different texts for the same, not byte by byte"
    if ours.counted and not theirs.counted:
        yield "has no AUTO_INCREMENT, so that no job can be put in"
    if ours.null is not theirs.null and ours.made is None:
        yield "may be NULL, in which case nothing finds the row" if theirs.null else "can't be NULL, as qd needs it"
    if ours.default != theirs.default and ours.default is not None:
        yield f"has {'no default' if theirs.default is None else f'the default {theirs.default}'}, not {ours.default}"
    if theirs.touched and not ours.touched:
        yield "changes by itself at each UPDATE (ON UPDATE)"


def _holds(ours: Column, theirs: Column) -> bool:
    """Whether all that fits into ours fits into theirs, and comes back as it was."""
    for order in WIDER:
        if ours.type in order and theirs.type in order:
            signed = ours.unsigned is theirs.unsigned
            return signed and order.index(theirs.type) >= order.index(ours.type)
    return ours.type == theirs.type and theirs.size >= ours.size


def _of_checks(ours: Table, found: Table) -> Iterator[Finding]:
    enforced = {check.clause for check in found.checks if check.enforced}
    idle = {check.clause for check in found.checks} - enforced
    lost = [check.name for check in ours.checks if check.clause not in enforced | idle]
    off = [check.name for check in ours.checks if check.clause in idle]
    for names, how in ((lost, "lost, or not as they were"), (off, "not enforced")):
        if names:
            yield Finding(
                "warn", "constraints", f"{how}: {', '.join(names)}: rows that can't be run are let in. Make them "
                "again as schema.sql has them"
            )  # fmt: skip
