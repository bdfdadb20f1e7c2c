"""What the server tells of its own work and settings, for who measures. Nothing of it changes anything.

May import: dialect.
"""

from __future__ import annotations

from qd.store.dialect import Cursor, Session

_READS = "Handler_read%"
"""The server's counters of rows and index entries read, one for each way of reading."""

_GLOBAL = ("innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin")
_ISOLATION = ("transaction_isolation", "tx_isolation")
_PRAGMAS = ("journal_mode", "synchronous")


def rows_read(session: Session) -> int | None:
    """Rows and index entries that the server has read for this connection; None: it doesn't tell."""
    if session.dialect.name != "mysql":
        return None
    return session.read(_handler_reads)


def settings(session: Session) -> dict[str, str]:
    """What decides how dear a commit is, and the isolation of qd's sessions, by the database's own names."""
    return session.read(_variables if session.dialect.name == "mysql" else _pragmas)


def _handler_reads(cursor: Cursor) -> int:
    cursor.execute("SHOW SESSION STATUS WHERE Variable_name LIKE %s", (_READS,))
    return sum(int(row[1]) for row in cursor.fetchall())


def _variables(cursor: Cursor) -> dict[str, str]:
    found = dict(_shown(cursor, "GLOBAL", _GLOBAL))
    isolation = dict(_shown(cursor, "SESSION", _ISOLATION))  # a server has one of the two names, or both
    return {**found, "isolation": next(iter(isolation.values()), "unknown")}


def _shown(cursor: Cursor, scope: str, names: tuple[str, ...]) -> list[tuple[str, str]]:
    listed = ", ".join(f"'{name}'" for name in names)
    cursor.execute(f"SHOW {scope} VARIABLES WHERE Variable_name IN ({listed})")
    return [(str(row[0]).lower(), str(row[1])) for row in cursor.fetchall()]


def _pragmas(cursor: Cursor) -> dict[str, str]:
    found = {}
    for name in _PRAGMAS:
        cursor.execute(f"PRAGMA {name}")
        found[name] = str(cursor.fetchone()[0])
    return found
