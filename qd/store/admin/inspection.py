"""What `qd check` asks the server: are session, tables, claim plan and grants as they must be, is there room.

Grants are tried, not parsed: statements whose WHERE is false need the same rights as real ones and
touch no row. A part that can't be asked is a finding of its own, and the others are asked all the same.
May import: the pure modules, protocol, dialect, plan, room, tables, writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from qd.duration import spell
from qd.errors import OUT_OF_REACH, SetupWrong, StoreError, UnknownError
from qd.store.admin import room
from qd.store.admin.plan import claim_plan
from qd.store.admin.tables import of_tables, of_triggers
from qd.store.admin.writes import DENIED, tried
from qd.store.dialect import Cursor, Session
from qd.store.protocol import Demand, Finding

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

SHORT_WAIT = 60
"""Seconds of wait_timeout below which idle connections would be made anew all the time."""

_VARIABLES = (
    "transaction_isolation", "tx_isolation", "time_zone", "innodb_lock_wait_timeout", "lock_wait_timeout",
    "max_statement_time", "max_execution_time", "wait_timeout", "binlog_format", "log_bin",
    "read_only",
)  # fmt: skip


class _Parts:
    """The parts of an inspection, each asked whatever became of those before it.

    Args:
        fresh: makes a session. An error that no rule knows closes the one it came on, and keeps it closed for a while:
            what is asked next is asked on another.
    """

    def __init__(self, fresh: Callable[[], Session]) -> None:
        self._fresh = fresh
        self._session: Session | None = None

    def asked(self, what: str, ask: Callable[[Session], Iterator[Finding]]) -> Iterator[Finding]:
        """A part's findings; what can't be asked (no right to it, a locked table) is one too."""
        try:
            yield from ask(self.session())
        except OUT_OF_REACH:
            raise
        except StoreError as error:
            self.failed(error)
            yield Finding("FAIL", what, f"can't be looked at: {error}")

    def session(self) -> Session:
        """That for the next question."""
        if self._session is None:
            self._session = self._fresh()
        return self._session

    def failed(self, error: StoreError) -> None:
        """A question had no answer."""
        if isinstance(error, UnknownError):
            self.close()

    def close(self) -> None:
        """Ends the session, if there is one."""
        if self._session is not None:
            self._session.close()
        self._session = None


def inspect(fresh: Callable[[], Session], demand: Demand | None = None) -> Iterator[Finding]:
    """All findings about the server, as they are made.

    Args:
        fresh: makes a session of its own, so that no error of ours stays with the caller's.
        demand: what its limits are judged by; None leaves them out.

    Raises:
        StoreError: the server is out of reach; what was found before stands.
    """
    parts = _Parts(fresh)
    try:
        yield from _all(parts, demand)
    finally:
        parts.close()


def _all(parts: _Parts, demand: Demand | None) -> Iterator[Finding]:
    if parts.session().dialect.name != "mysql":
        yield from parts.asked("claim plan", claim_plan)
        return
    yield from parts.asked("server", lambda session: _of_settings(session, demand))
    if demand is not None:
        yield from parts.asked("connections", lambda session: room.connections(session, demand.connections))
        yield from parts.asked("account", room.account)
        yield from parts.asked("packet", room.packet)
    can_undo = True
    for finding in (found for table in NEEDED for found in parts.asked("tables", partial(of_tables, table=table))):
        can_undo = can_undo and finding.what != "engine"
        yield finding
    yield from parts.asked("triggers", of_triggers)
    yield from parts.asked("claim plan", claim_plan)
    yield from _grants(parts)
    if can_undo:
        yield from parts.asked("writes", tried)


def _of_settings(session: Session, demand: Demand | None) -> Iterator[Finding]:
    variables = session.read(_variables)
    yield from _of_session(variables)
    yield from _of_server(variables)
    if demand is not None:
        yield from _of_limits(variables, demand.statement_timeout)


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
    if variables.get("log_bin") != "ON":
        yield Finding("ok", "binlog", "off")
    elif variables.get("binlog_format", "").upper() == "STATEMENT":
        yield Finding(
            "FAIL", "binlog", "binlog_format is STATEMENT, under which every write of qd fails: set ROW or MIXED"
        )
    else:
        yield Finding("ok", "binlog", f"on, its format is {variables.get('binlog_format', 'ROW')}")
    if variables.get("read_only", "OFF") not in ("OFF", "0"):
        yield Finding(
            "warn", "read_only", f"read_only is {variables['read_only']}: qd can't write here; is it the primary?"
        )


def _of_limits(variables: dict[str, str], patience: float) -> Iterator[Finding]:
    """The server's time limits on qd's sessions, which qd sets itself, against each other and the client's.

    Args:
        patience: seconds that qd waits for an answer.
    """
    longest, patience = _longest_statement(variables), max(1.0, patience)  # the driver counts in whole seconds
    rows, tables = (float(variables.get(f"{name}lock_wait_timeout", 0)) for name in ("innodb_", ""))
    idle, given_up = float(variables.get("wait_timeout", SHORT_WAIT)), f"qd gives it up after {spell(patience)}"
    wrong = []
    if not 0 < longest <= patience:
        end = f"after {spell(longest)}" if longest else "never"
        wrong.append(f"the server ends a statement {end}, its locks held, though {given_up}")
    if max(rows, tables) > patience:
        wrong.append(f"a statement waits {spell(max(rows, tables))} for a lock, though {given_up}")
    if idle < SHORT_WAIT:
        wrong.append(f"an idle connection is dropped after {spell(idle)}, and is made anew all the time")
    for text in wrong:
        yield Finding("warn", "server limits", f"{text}. qd sets this itself: does a proxy or init_connect change it?")
    if not wrong:
        kind = "a statement" if "max_statement_time" in variables else "a SELECT (MySQL ends nothing else)"
        yield Finding(
            "ok", "server limits", f"for qd's sessions: {kind} {spell(longest)}, the wait for a row's lock "
            f"{spell(rows)}, an idle connection {spell(idle)}"
        )  # fmt: skip


def _longest_statement(variables: dict[str, str]) -> float:
    """Seconds; MariaDB counts in these, MySQL in milliseconds, and for SELECT alone. 0: for ever."""
    if "max_statement_time" in variables:
        return float(variables["max_statement_time"])
    return float(variables.get("max_execution_time", 0)) / 1000


def _grants(parts: _Parts) -> Iterator[Finding]:
    """Each right on each table, tried; where a table can't be asked, the others are."""
    missing: list[str] = []
    untried: dict[str, list[str]] = {}
    for table in NEEDED:
        try:
            missing += [f"{right} on {table}" for right in _missing(parts.session(), table)]
        except OUT_OF_REACH:
            raise
        except StoreError as error:
            parts.failed(error)
            untried.setdefault(str(error), []).append(table)
    if missing:
        yield Finding("FAIL", "grants", f"missing: {', '.join(missing)}; see docs/grants.sql")
    for why, tables in untried.items():
        yield Finding("FAIL", "grants", f"can't be tried on {', '.join(tables)}: {why}")
    if not missing and not untried:
        yield Finding("ok", "grants", f"all that qd needs, on {len(NEEDED)} tables")


def _missing(session: Session, table: str) -> list[str]:
    """What this account may not do; without SELECT none of the others can be told."""
    rights = NEEDED[table] if _may(session, table, "SELECT") else ("SELECT",)
    return [right for right in rights if not _may(session, table, right)]


def _may(session: Session, table: str, right: str) -> bool:
    required = _REQUIRED[table]
    sql = _TRIED[right].format(table=table, column=required[0], required=", ".join(required))

    def tried(cursor: Cursor) -> None:
        cursor.execute(sql)
        if right == "SELECT":
            cursor.fetchall()

    try:
        session.transaction(tried)
    except SetupWrong as error:
        if error.errno not in DENIED:
            raise
        return False
    return True
