"""Counts per queue: one statement, so that all counts are of one moment and within one time limit.

It is a grouped walk over the claim index, which holds all that is counted of jobs, and over the dead
letters' index by queue. Posts are known by their due time, so no row is touched. Whoever can enqueue can
name a queue for each job, so who counts for a daemon has the server add up those that it doesn't know, the
paused ones by themselves, and name a few of them in the same walk.
May import: config (the name for those), posts, dialect, protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from qd.config.limits import OTHER
from qd.store.dialect import Cursor, Dialect
from qd.store.posts import POST_DUE, PROBE_QUEUE
from qd.store.protocol import Count, QueueDepth

HELD = f"{OTHER}, paused"
"""What the server adds up the unknown queues under that are paused; no queue can be called so."""

FAILED, QUEUE = -1, -2
"""What stands in the lane's place in lines on dead letters, and on rows of qd_queues."""

BY_QUEUE = {"mysql": " FORCE INDEX (qd_failed_jobs_queue)", "sqlite": " INDEXED BY qd_failed_jobs_queue"}
"""Else it may be the rows themselves, with all their payloads and tracebacks, that are walked."""


def depths(cursor: Cursor, dialect: Dialect) -> list[QueueDepth]:
    """Every queue that has rows, dead letters or a row in qd_queues, by name."""
    cursor.execute(_each_queue(dialect), (PROBE_QUEUE, POST_DUE))
    return _depths(cursor.fetchall())


def count(cursor: Cursor, dialect: Dialect, known: Collection[str]) -> Count:
    """The known queues that have any of these; what others have is put together under OTHER, and a few are named.

    Whether a queue is paused is looked up for unknown ones only, once for each line that was counted of them.
    """
    paused = "queue IN (SELECT name FROM qd_queues WHERE paused_at IS NOT NULL)"
    name = f"CASE WHEN queue IN ({_marks(known)}) THEN queue WHEN {paused} THEN '{HELD}' ELSE '{OTHER}' END"
    cursor.execute(
        f"SELECT {name} AS known, lane, SUM(due), SUM(n), MAX(age), MIN(queue), MAX(queue) "
        f"FROM ({_each_queue(dialect)}) counts GROUP BY known, lane",
        (*known, PROBE_QUEUE, POST_DUE),
    )
    lines = cursor.fetchall()
    others = {str(queue) for line in lines if line[0] in (OTHER, HELD) and int(line[1]) >= 0 for queue in line[5:]}
    return Count(_joined(_depths(line[:5] for line in lines)), tuple(sorted(others)))


def _joined(depths: list[QueueDepth]) -> list[QueueDepth]:
    """What stands under HELD is put under OTHER."""
    found = {depth.queue: depth for depth in depths}
    held = found.pop(HELD, None)
    if held is not None:
        found[OTHER] = found.get(OTHER, QueueDepth(OTHER)).plus(held)
    return [found[queue] for queue in sorted(found)]


def _depths(lines: Iterable[Sequence[Any]]) -> list[QueueDepth]:
    queues: dict[str, dict[str, Any]] = {}
    for queue, lane, due, rows, age in lines:
        queues.setdefault(str(queue), {}).update(_counts(int(lane), int(due), int(rows), age))
    return [QueueDepth(queue, **counts) for queue, counts in sorted(queues.items())]


def _each_queue(dialect: Dialect) -> str:
    """Queue, lane, rows that are due, all rows, seconds since the first was due (below 0: none is).

    For qd_queues whether it is paused stands in the place of those that are due.
    """
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
