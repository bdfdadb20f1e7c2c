"""Enqueuing under unique keys on MySQL and MariaDB: one job a key, and nobody else kept waiting.

An INSERT that meets a taken key locks, at every isolation level, the gap beside it too, and in that
gap may lie the places of all new jobs that have no key: until the caller's commit nobody
could enqueue them. So a taken key is found by reading first, and the INSERT meets one only when two
race for it. May import: the pure modules and this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qd.store.callers.cursor import CallersCursor
from qd.store.callers.new_row import NewRow

OR_HOLDER = " ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)"
"""Ends an INSERT of one row so that its last id is that of the job that holds the key."""

KEY_TAKEN = 1062
"""What an INSERT without that end is refused with, whole, if one of its rows has a key that is taken."""

_QUEUE = "CONVERT(%s USING ascii) COLLATE ascii_bin"
_KEY = "CONVERT(%s USING utf8mb4) COLLATE utf8mb4_bin"
_BY_KEY = " FORCE INDEX (qd_jobs_unique) ON j.unique_queue = d.queue AND j.unique_key = d.unique_key"
_BY_ID = " FORCE INDEX (PRIMARY) ON j.id = d.id WHERE j.queue = d.queue AND j.unique_key = d.unique_key"
_SHARED = " LOCK IN SHARE MODE"


def holders(own: CallersCursor, jobs: str, rows: Sequence[NewRow]) -> dict[int, int]:
    """Which of these rows' keys are taken: the row's place, and the id of the job that holds its key.

    Two reads: the first finds candidates and locks nothing. It may show a job that is finished by
    now, if the transaction's snapshot is old, so the second one reads those rows as they are.

    Args:
        jobs: the table.
        rows: each with a unique key.
    """
    asked = [(place, 0, row.queue, row.unique_key) for place, row in enumerate(rows)]
    found = _matching(own, jobs, asked, _BY_KEY)
    if not found:
        return {}
    asked = [(place, found[place], queue, key) for place, _, queue, key in asked if place in found]
    return _matching(own, jobs, asked, _BY_ID + _SHARED)


def _matching(own: CallersCursor, jobs: str, asked: Sequence[tuple[Any, ...]], on: str) -> dict[int, int]:
    """A join with a derived table: a list of keys can be planned as a scan, which waits for everybody's rows."""
    first = f"SELECT %s AS place, %s AS id, {_QUEUE} AS queue, {_KEY} AS unique_key"
    others = f" UNION ALL SELECT %s, %s, {_QUEUE}, {_KEY}" * (len(asked) - 1)
    own.execute(
        f"SELECT d.place, j.id FROM ({first}{others}) d STRAIGHT_JOIN {jobs} j{on}",
        [value for values in asked for value in values],
    )
    return {int(place): int(job_id) for place, job_id in own.rows()}
