"""Counts per queue: one grouped walk over the claim index, which holds all that is counted.

Posts are known by their due time, so no row is touched. May import: posts, dialect, moments, protocol.
"""

from __future__ import annotations

from typing import Any

from qd.store.dialect import Cursor, Dialect
from qd.store.posts import POST_DUE, PROBE_QUEUE
from qd.store.protocol import QueueDepth


def depths(cursor: Cursor, dialect: Dialect) -> list[QueueDepth]:
    """Every queue that has rows, dead letters or a row in qd_queues, by name."""
    queues: dict[str, dict[str, Any]] = {}
    for queue, lane, due, later, age in _lanes(cursor, dialect):
        if due or later:
            _of(queues, queue).update(_counts(int(lane), int(due), int(later), age))
    cursor.execute("SELECT queue, COUNT(*) FROM qd_failed_jobs GROUP BY queue")
    for queue, failed in cursor.fetchall():
        _of(queues, queue)["failed"] = int(failed)
    cursor.execute("SELECT name, paused_at IS NOT NULL FROM qd_queues")
    for queue, paused in cursor.fetchall():
        _of(queues, queue)["paused"] = bool(paused)
    return [QueueDepth(queue, **counts) for queue, counts in sorted(queues.items())]


def _of(queues: dict[str, dict[str, Any]], queue: Any) -> dict[str, Any]:
    return queues.setdefault(str(queue), {})


def _lanes(cursor: Cursor, dialect: Dialect) -> list[Any]:
    """Queue, lane, rows that are due, rows that aren't, age of the first that is due in seconds."""
    due = f"available_at <= {dialect.now}"
    oldest = f"MIN(CASE WHEN {due} THEN available_at END)"
    cursor.execute(
        f"SELECT queue, lane, SUM({due}), SUM({dialect.now} < available_at AND available_at < %s), "
        f"{dialect.age.format(oldest)} FROM qd_jobs{dialect.by_lane} WHERE queue <> %s GROUP BY queue, lane",
        (POST_DUE, PROBE_QUEUE),
    )
    return list(cursor.fetchall())


def _counts(lane: int, due: int, later: int, age: Any) -> dict[str, Any]:
    if lane == 0:
        return {"ready": due, "delayed": later, "oldest_ready_age": max(0.0, float(age or 0))}
    return {"reserved": later, "stale": due} if lane == 1 else {"blocked": due + later}
