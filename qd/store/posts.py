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

PROBE_QUEUE = "qd.probe"
"""Where the probe for SKIP LOCKED has its rows."""


def post_key(priority: int) -> str:
    """The unique key by which a lane's post is found again."""
    return f"{POST}:{priority}"


def ensure_posts(cursor: Cursor, queues: Sequence[str]) -> int:
    """Puts back what is missing or was moved; MySQL and MariaDB only."""
    return sum(_put(cursor, queue, priority) for queue in queues for priority in _wrong(cursor, queue))


def _wrong(cursor: Cursor, queue: str) -> list[int]:
    """Priorities whose post isn't as it should be."""
    keys = [post_key(priority) for priority in PRIORITIES.values()]
    cursor.execute(
        "SELECT unique_key, type, lane, priority, available_at FROM qd_jobs "
        "WHERE unique_queue = %s AND unique_key IN (%s, %s, %s, %s)",
        (queue, *keys),
    )
    found = {str(key): (type_, lane, priority, written(due)) for key, type_, lane, priority, due in cursor.fetchall()}
    foreign = {key for key, row in found.items() if row[0] != POST}  # a user's job has the key: no post there
    return [
        priority
        for priority in PRIORITIES.values()
        if post_key(priority) not in foreign and found.get(post_key(priority)) != (POST, 0, priority, POST_DUE)
    ]


def _put(cursor: Cursor, queue: str, priority: int) -> int:
    cursor.execute(
        "INSERT INTO qd_jobs (queue, type, priority, available_at, unique_key) VALUES (%s, %s, %s, %s, %s) "
        "ON DUPLICATE KEY UPDATE lane = 0, reserved_by = NULL, reserved_at = NULL, priority = %s, available_at = %s",
        (queue, POST, priority, POST_DUE, post_key(priority), priority, POST_DUE),
    )
    return 1
