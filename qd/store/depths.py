"""Counts per queue: one statement, so that all counts are of one moment and within one time limit.

It is a grouped walk over the claim index, which holds all that is counted of jobs, and over the dead
letters' index by queue. Posts are known by their due time, so no row is touched. Whoever can enqueue can
name a queue for each job, so who counts for a daemon has the server add up those that it doesn't know.
May import: config (the name for those), posts, dialect, protocol.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from qd.config.limits import OTHER
from qd.store.dialect import Cursor, Dialect
from qd.store.posts import POST_DUE, PROBE_QUEUE
from qd.store.protocol import QueueDepth

FAILED, QUEUE = -1, -2
"""What stands in the lane's place in lines on dead letters, and on rows of qd_queues."""

BY_QUEUE = {"mysql": " FORCE INDEX (qd_failed_jobs_queue)", "sqlite": " INDEXED BY qd_failed_jobs_queue"}
"""Else it may be the rows themselves, with all their payloads and tracebacks, that are walked."""


def depths(cursor: Cursor, dialect: Dialect, known: Collection[str] | None = None) -> list[QueueDepth]:
    """Every queue that has rows, dead letters or a row in qd_queues, by name.

    Args:
        known: the queues to be told apart; what the others have is added up under OTHER. None: all of them.
    """
    queues: dict[str, dict[str, Any]] = {}
    for queue, lane, due, rows, age in _lines(cursor, dialect, known):
        queues.setdefault(str(queue), {}).update(_counts(int(lane), int(due), int(rows), age))
    return [QueueDepth(queue, **counts) for queue, counts in sorted(queues.items())]


def strangers(cursor: Cursor, dialect: Dialect, known: Collection[str], limit: int) -> list[tuple[str, int]]:
    """The fullest queues that aren't known, and how many jobs wait in each."""
    cursor.execute(
        f"SELECT queue, COUNT(*) FROM qd_jobs{dialect.by_lane} WHERE queue NOT IN ({_marks([*known, PROBE_QUEUE])}) "
        "AND available_at < %s GROUP BY queue ORDER BY COUNT(*) DESC, queue LIMIT %s",
        (*known, PROBE_QUEUE, POST_DUE, limit),
    )
    return [(str(queue), int(jobs)) for queue, jobs in cursor.fetchall()]


def _lines(cursor: Cursor, dialect: Dialect, known: Collection[str] | None) -> list[Any]:
    """Queue, lane, rows that are due, all rows, seconds since the first was due (below 0: none is).

    For qd_queues whether it is paused stands in the place of those that are due.
    """
    sql, values = _each_queue(dialect), (PROBE_QUEUE, POST_DUE)
    if known is not None:
        name = f"CASE WHEN queue IN ({_marks(known)}) THEN queue ELSE '{OTHER}' END"
        sql = f"SELECT {name} AS known, lane, SUM(due), SUM(n), MAX(age) FROM ({sql}) counts GROUP BY known, lane"
    cursor.execute(sql, (*(known or ()), *values))
    return list(cursor.fetchall())


def _each_queue(dialect: Dialect) -> str:
    due, age = f"COUNT(CASE WHEN available_at <= {dialect.now} THEN 1 END)", dialect.age.format("MIN(available_at)")
    return (
        f"SELECT queue, lane, {due} AS due, COUNT(*) AS n, {age} AS age FROM qd_jobs{dialect.by_lane} "
        "WHERE queue <> %s AND available_at < %s GROUP BY queue, lane UNION ALL "
        f"SELECT queue, {FAILED}, 0, COUNT(*), NULL FROM qd_failed_jobs{BY_QUEUE[dialect.name]} GROUP BY queue "
        f"UNION ALL SELECT name, {QUEUE}, paused_at IS NOT NULL, 1, NULL FROM qd_queues"
    )


def _marks(values: Collection[str]) -> str:
    return ", ".join(["%s"] * len(values))


def _counts(lane: int, due: int, rows: int, age: Any) -> dict[str, Any]:
    if lane == 0:
        return {"ready": due, "delayed": rows - due, "oldest_ready_age": max(0.0, float(age or 0))}
    if lane == 1:
        return {"reserved": rows - due, "stale": due}
    if lane == FAILED:
        return {"failed": rows}
    return {"paused": bool(due)} if lane == QUEUE else {"blocked": rows}
