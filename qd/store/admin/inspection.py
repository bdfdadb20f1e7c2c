"""What `qd check` asks the server: are the session, the claim's plan and the grants as they must be.

Grants are tried, not parsed: statements whose WHERE is false need the same rights as real ones and
touch no row. May import: the pure modules, protocol, dialect, candidate (the claim's statements).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from qd.errors import SetupWrong
from qd.store.claim.candidate import candidates
from qd.store.dialect import Cursor, Dialect, Session
from qd.store.protocol import Claim, Finding, Spot

NEEDED = {
    "qd_jobs": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "qd_failed_jobs": ("SELECT", "INSERT", "DELETE"),
    "qd_queues": ("SELECT", "INSERT", "UPDATE"),
    "qd_daemons": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "qd_schema": ("SELECT",),
}
"""The rights that daemon and verbs use, by table; the same as docs/grants.sql gives."""

_REQUIRED = {
    "qd_jobs": ("type",),
    "qd_failed_jobs": ("job_id", "queue", "type", "payload", "priority", "attempts", "reason"),
    "qd_queues": ("name",),
    "qd_daemons": ("id", "host", "pid", "version", "queues", "types"),
    "qd_schema": ("version",),
}
"""Columns without a default: an INSERT that leaves one out is refused before its rights are looked at."""

_TRIED = {
    "SELECT": "SELECT {column} FROM {table} WHERE 1 = 0",
    "INSERT": "INSERT INTO {table} ({required}) SELECT {required} FROM {table} WHERE 1 = 0",
    "UPDATE": "UPDATE {table} SET {column} = {column} WHERE 1 = 0",
    "DELETE": "DELETE FROM {table} WHERE 1 = 0",
}

CHECKS = tuple(
    f"qd_jobs_{what}_check" for what in ("queue", "type", "payload", "priority", "lane", "max_attempts", "available_at")
)
"""The constraints of schema.sql that refuse rows which can't be run."""

SMALL_PACKET = 4 * 1024 * 1024
"""Bytes of max_allowed_packet below which larger payloads and tracebacks are worth a warning."""

SHORT_WAIT = 60
"""Seconds of wait_timeout below which idle connections would be made anew all the time."""

_VARIABLES = (
    "transaction_isolation", "tx_isolation", "time_zone", "innodb_lock_wait_timeout", "max_allowed_packet",
    "wait_timeout", "binlog_format", "log_bin", "read_only",
)  # fmt: skip


@dataclass(frozen=True)
class _Traits:
    """What information_schema says of qd's tables."""

    foreign: list[str]
    unique: set[tuple[str, ...]]
    checks: set[str]


def inspect(session: Session) -> list[Finding]:
    """All findings about the server."""
    if session.dialect.name != "mysql":
        return list(_plan(session))
    variables = session.read(_variables)
    return [*_of_session(variables), *_of_server(variables), *_of_tables(session), *_plan(session), *_grants(session)]


def _variables(cursor: Cursor) -> dict[str, str]:
    """The session's variables by name; a server has one of the two names of the isolation."""
    names = ", ".join(f"'{name}'" for name in _VARIABLES)
    cursor.execute(f"SHOW SESSION VARIABLES WHERE Variable_name IN ({names})")
    return {str(row[0]).lower(): str(row[1]) for row in cursor.fetchall()}


def _of_session(variables: dict[str, str]) -> Iterator[Finding]:
    """What a store's session must have pinned."""
    level = variables.get("transaction_isolation") or variables.get("tx_isolation") or "unknown"
    if level.replace(" ", "-").upper() == "READ-COMMITTED":
        yield Finding("ok", "isolation", "READ COMMITTED on qd's own sessions")
    else:
        yield Finding("FAIL", "isolation", f"a session of qd has {level}; does a proxy or init_connect change it?")
    zone = variables.get("time_zone", "unknown")
    if zone != "+00:00":
        yield Finding("FAIL", "time zone", f"a session of qd has {zone}, +00:00 is wanted; does a proxy change it?")


def _of_server(variables: dict[str, str]) -> Iterator[Finding]:
    """What the server is set to."""
    if variables.get("binlog_format", "").upper() == "STATEMENT" and variables.get("log_bin") == "ON":
        yield Finding(
            "FAIL", "binlog", "binlog_format is STATEMENT, under which every write of qd fails: set ROW or MIXED"
        )
    if variables.get("read_only", "OFF") not in ("OFF", "0"):
        yield Finding(
            "warn", "read_only", f"read_only is {variables['read_only']}: qd can't write here; is it the primary?"
        )
    packet = int(variables.get("max_allowed_packet", SMALL_PACKET))
    if packet < SMALL_PACKET:
        yield Finding("warn", "packet", f"max_allowed_packet is {packet} bytes: larger payloads are refused")
    wait = int(variables.get("wait_timeout", SHORT_WAIT))
    if wait < SHORT_WAIT:
        yield Finding(
            "warn", "wait_timeout", f"the server drops connections after {wait} s: they are made anew all the time"
        )


def _of_tables(session: Session) -> Iterator[Finding]:
    """What qd relies on in its tables beside their columns, and what an import or a hand may have lost."""
    found = session.read(_traits)
    names = ", ".join(found.foreign)
    if found.foreign:
        yield Finding("FAIL", "engine", f"not InnoDB, so that moves between tables can be half done: {names}")
    if ("unique_queue", "unique_key") not in found.unique:
        yield Finding(
            "FAIL", "unique keys", "qd_jobs has no unique index on (unique_queue, unique_key): jobs with the same key "
            "are enqueued twice. Make it again as schema.sql has it"
        )  # fmt: skip
    lost = [name for name in CHECKS if name not in found.checks]
    if lost:
        yield Finding(
            "warn", "constraints", f"lost: {', '.join(lost)}: rows that can't be run are let in. Make them again as "
            "schema.sql has them"
        )  # fmt: skip


def _traits(cursor: Cursor) -> _Traits:
    tables = ", ".join(f"'{table}'" for table in NEEDED)
    here = "table_schema = DATABASE() AND table_name"
    cursor.execute(f"SELECT table_name, engine FROM information_schema.tables WHERE {here} IN ({tables})")
    foreign = [str(name) for name, engine in cursor.fetchall() if engine != "InnoDB"]
    cursor.execute(
        f"SELECT index_name, column_name FROM information_schema.statistics WHERE {here} = 'qd_jobs' AND non_unique = 0"
        " ORDER BY index_name, seq_in_index"
    )
    columns: dict[str, tuple[str, ...]] = {}
    for name, column in cursor.fetchall():
        columns[name] = (*columns.get(name, ()), str(column).lower())
    cursor.execute("SHOW CREATE TABLE qd_jobs")  # information_schema hides constraints from the daemon's account
    checks = set(re.findall(r"CONSTRAINT `(\w+)` CHECK", str(cursor.fetchall()[0][1])))
    return _Traits(foreign, set(columns.values()), checks)


def _grants(session: Session) -> Iterator[Finding]:
    """Each right on each table, tried."""
    missing = [
        f"{right} on {table}" for table, rights in NEEDED.items() for right in rights if not _may(session, table, right)
    ]
    if missing:
        yield Finding("FAIL", "grants", f"missing: {', '.join(missing)}; see docs/grants.sql")
    else:
        yield Finding("ok", "grants", f"all that qd needs, on {len(NEEDED)} tables")


def _may(session: Session, table: str, right: str) -> bool:
    required = _REQUIRED[table]
    sql = _TRIED[right].format(table=table, column=required[0], required=", ".join(required))

    def tried(cursor: Cursor) -> None:
        cursor.execute(sql)
        if right == "SELECT":
            cursor.fetchall()

    try:
        session.transaction(tried)
    except SetupWrong:
        return False
    return True


class _Explaining:
    """A cursor that has each statement explained instead of run; the plans' rows are in `plans`."""

    rowcount = 0
    lastrowid = None

    def __init__(self, cursor: Cursor, word: str) -> None:
        self._cursor, self._word = cursor, word
        self.plans: list[Any] = []

    def execute(self, sql: str, params: Sequence[Any] = ()) -> None:
        self._cursor.execute(f"{self._word} {sql}", params)
        self.plans += self._cursor.fetchall()

    def fetchone(self) -> Any:
        return None

    def fetchall(self) -> list[Any]:
        return []


def _plan(session: Session) -> Iterator[Finding]:
    """Whether the claim walks its index in order: a sort would lock the whole backlog."""
    indexes, sorts = session.read(lambda cursor: _explained(cursor, session.dialect))
    if "qd_jobs_claim" in indexes and not sorts:
        yield Finding("ok", "claim plan", "walks qd_jobs_claim in order, without a sort")
        return
    way = f"uses {', '.join(sorted(indexes)) or 'no index'}{' and sorts' if sorts else ''}"
    yield Finding("FAIL", "claim plan", f"the claim {way} instead of walking qd_jobs_claim: compare it with schema.sql")


def _explained(cursor: Cursor, dialect: Dialect) -> tuple[set[str], bool]:
    """The indexes that the claim's own statement uses, and whether it sorts."""
    mysql = dialect.name == "mysql"
    explaining = _Explaining(cursor, "EXPLAIN FORMAT=JSON" if mysql else "EXPLAIN QUERY PLAN")
    claim = Claim(queue="default", limit=10, lease=60.0, token="", max_attempts=1)
    candidates(explaining, dialect, claim, 2, Spot("2001-01-01 00:00:00.000000", 1), 10, dialect.lock)
    return (_read_mysql if mysql else _read_sqlite)(explaining.plans)


def _read_mysql(plans: list[Any]) -> tuple[set[str], bool]:
    """JSON is what all servers offer; the names in it differ by server and version."""
    nodes = [node for row in plans for node in _nodes(json.loads(row[0]))]
    indexes = {str(node[key]) for node in nodes for key in ("key", "index_name") if key in node}
    sorts = any(
        "filesort" in node or node.get("using_filesort") is True or str(node.get("operation", "")).startswith("Sort")
        for node in nodes
    )
    return indexes, sorts


def _nodes(plan: Any) -> Iterator[dict[str, Any]]:
    """All objects of a JSON value."""
    if isinstance(plan, dict):
        yield plan
    for value in plan.values() if isinstance(plan, dict) else plan if isinstance(plan, list) else ():
        yield from _nodes(value)


def _read_sqlite(plans: list[Any]) -> tuple[set[str], bool]:
    steps = [str(row[3]) for row in plans]
    indexes = {name for step in steps for name in re.findall(r"USING (?:COVERING )?INDEX (\w+)", step)}
    return indexes, any("USE TEMP B-TREE" in step for step in steps)
