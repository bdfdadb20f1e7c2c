"""Rows that are no jobs: who runs (qd_daemons), and dead letters past their time.

May import: listed, texts, dialect, protocol.
"""

from __future__ import annotations

import json
from typing import Any

from qd.store.dialect import Cursor, Dialect
from qd.store.listed import AT_ONCE, chunks, joined
from qd.store.protocol import SEEN_WITHIN, DaemonRow
from qd.store.settle.texts import as_text

FORGET_AFTER = 86_400
"""Seconds after which a daemon that was not seen is forgotten."""

_SIGN = {
    "mysql": "ON DUPLICATE KEY UPDATE host = VALUES(host), pid = VALUES(pid), version = VALUES(version), "
    "queues = VALUES(queues), types = VALUES(types), seen_at = VALUES(seen_at)",
    "sqlite": "ON CONFLICT (id) DO UPDATE SET host = excluded.host, pid = excluded.pid, version = excluded.version, "
    "queues = excluded.queues, types = excluded.types, seen_at = excluded.seen_at",
}


def announce(cursor: Cursor, dialect: Dialect, daemon: DaemonRow, age: float) -> None:
    """Writes a daemon's row, seen now; its process is that many seconds old."""
    cursor.execute(
        "INSERT INTO qd_daemons (id, host, pid, version, queues, types, started_at, seen_at) "
        f"VALUES (%s, %s, %s, %s, %s, %s, {dialect.after}, {dialect.now}) {_SIGN[dialect.name]}",
        (
            daemon.id, daemon.host, daemon.pid, daemon.version,
            json.dumps(daemon.queues), json.dumps(daemon.types), dialect.span(-age),
        ),
    )  # fmt: skip


def live(cursor: Cursor, dialect: Dialect) -> list[DaemonRow]:
    """The daemons that count as running."""
    age = dialect.age.format("seen_at")
    cursor.execute(
        f"SELECT id, host, pid, version, queues, types, started_at, seen_at, {age} FROM qd_daemons "
        f"WHERE {age} <= {SEEN_WITHIN} ORDER BY host, pid, id"
    )
    return [
        DaemonRow(
            as_text(row[0]), as_text(row[1]), row[2], as_text(row[3]),
            names_in(row[4]), names_in(row[5]), dialect.moment(row[6]), dialect.moment(row[7]), max(0.0, float(row[8])),
        )
        for row in cursor.fetchall()
    ]  # fmt: skip


def names_in(value: Any) -> tuple[str, ...]:
    """A JSON list of names; anything else (another version's) counts as no names."""
    try:
        names = json.loads(as_text(value))
    except (ValueError, RecursionError):
        return ()
    return tuple(str(name) for name in names) if isinstance(names, list) else ()


def forgotten(cursor: Cursor, dialect: Dialect) -> list[str]:
    """Ids of daemons that were not seen for a day; a plain read."""
    cursor.execute(f"SELECT id FROM qd_daemons WHERE {dialect.age.format('seen_at')} > {FORGET_AFTER}")
    return [str(row[0]) for row in cursor.fetchall()]


def withdraw(cursor: Cursor, daemon_id: str) -> None:
    """Removes a daemon's row."""
    cursor.execute("DELETE FROM qd_daemons WHERE id = %s", (daemon_id,))


def outdated(cursor: Cursor, dialect: Dialect, older_than: float, limit: int) -> list[int]:
    """Ids of dead letters that failed longer ago than this; a plain read over their index."""
    cursor.execute(
        f"SELECT id FROM qd_failed_jobs WHERE failed_at < {dialect.after} ORDER BY failed_at LIMIT %s",
        (dialect.span(-older_than), limit),
    )
    return [int(row[0]) for row in cursor.fetchall()]


def purge(cursor: Cursor, dialect: Dialect, ids: list[int], older_than: float) -> int:
    """Deletes these dead letters where they still are what they were; one that was retried is gone."""
    deleted = 0
    for some in chunks(sorted(ids), AT_ONCE if dialect.name == "mysql" else 1):
        old = f"failed_at < {dialect.after}"
        if len(some) == 1:
            sql = f"DELETE FROM qd_failed_jobs WHERE id = %s AND {old}"
        else:
            sql = f"DELETE j FROM {joined(len(some), 'id', table='qd_failed_jobs')} WHERE j.{old}"
        cursor.execute(sql, (*some, dialect.span(-older_than)))
        deleted += cursor.rowcount
    return deleted
