"""Posts: one live row at the far end of each ready lane, at which index walks stop.

The server skips dead entries before it looks at a range's end, so the probe of an empty lane would
walk into its neighbour's. Posts are no jobs: nothing shows, counts or claims them.
May import: candidate, dialect, moments, the pure modules.
"""

from __future__ import annotations

from collections.abc import Sequence

from qd.job import PRIORITIES
from qd.store.claim.candidate import POST
from qd.store.dialect import Cursor
from qd.store.moments import written

POST_DUE = "2038-01-19 03:14:07.999999"
"""The last moment that a TIMESTAMP can tell."""

TOGETHER = 100
"""Queues whose posts are looked at by one statement."""

PROBE_QUEUE = "qd.probe"
"""Where the probe for SKIP LOCKED has its rows."""


def post_key(priority: int) -> str:
    """The unique key by which a lane's post is found again."""
    return f"{POST}:{priority}"


def ensure_posts(cursor: Cursor, queues: Sequence[str]) -> int:
    """Puts back what is missing or was moved; MySQL and MariaDB only."""
    wrong = [
        lane for first in range(0, len(queues), TOGETHER) for lane in _wrong(cursor, queues[first : first + TOGETHER])
    ]
    return sum(_put(cursor, queue, priority) for queue, priority in wrong)


def _wrong(cursor: Cursor, queues: Sequence[str]) -> list[tuple[str, int]]:
    """Queues and priorities whose post isn't as it should be; one statement, for it is asked again and again."""
    keys = {post_key(priority): priority for priority in PRIORITIES.values()}
    cursor.execute(
        "SELECT unique_queue, unique_key, type, lane, priority, available_at "
        "FROM qd_jobs FORCE INDEX (qd_jobs_unique) "
        f"WHERE unique_queue IN ({', '.join(['%s'] * len(queues))}) AND unique_key IN (%s, %s, %s, %s)",
        (*queues, *keys),
    )
    found = {
        (str(queue), str(key)): (type_, lane, priority, written(due))
        for queue, key, type_, lane, priority, due in cursor.fetchall()
    }
    return [
        (queue, priority)
        for queue in queues
        for key, priority in keys.items()
        if not _stands(found.get((queue, key)), priority)
    ]


def _stands(row: tuple[object, ...] | None, priority: int) -> bool:
    """Whether a lane's post is right, or can't be: a user's job has its key."""
    return row is not None and (row[0] != POST or row == (POST, 0, priority, POST_DUE))


def _put(cursor: Cursor, queue: str, priority: int) -> int:
    cursor.execute(
        "INSERT INTO qd_jobs (queue, type, priority, available_at, unique_key) VALUES (%s, %s, %s, %s, %s) "
        "ON DUPLICATE KEY UPDATE lane = 0, reserved_by = NULL, reserved_at = NULL, priority = %s, available_at = %s",
        (queue, POST, priority, POST_DUE, post_key(priority), priority, POST_DUE),
    )
    return 1
