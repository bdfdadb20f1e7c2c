"""Stale rows: finding them without a lock, and taking one back. May import: bury, history, look,
release, dialect, listed, moments, protocol, the pure modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qd.job import PRIORITIES
from qd.outcome import Reason, Verdict
from qd.store.claim.look import QUEUES_AT_ONCE
from qd.store.dialect import Cursor, Dialect
from qd.store.listed import chunks, joined
from qd.store.moments import written
from qd.store.protocol import StaleRow
from qd.store.settle.bury import bury
from qd.store.settle.history import LOST, appended, entry
from qd.store.settle.release import OURS, ready_again

GONE = "its lease ran out: whoever ran it is gone"


def stale(cursor: Cursor, dialect: Dialect, queues: Sequence[str], limit: int) -> list[StaleRow]:
    """Reserved rows whose lease has run out, lane by lane."""
    found: list[StaleRow] = []
    for start in range(0, len(queues), QUEUES_AT_ONCE):
        lanes = [(queue, priority) for queue in queues[start : start + QUEUES_AT_ONCE] for priority in _LEVELS]
        cursor.execute(
            " UNION ALL ".join([_of_lane(dialect)] * len(lanes)),
            [value for lane in lanes for value in (*lane, limit)],
        )
        found += [_row(row) for row in cursor.fetchall()]
    return sorted(found, key=lambda row: row.due)[:limit]


def free(cursor: Cursor, rows: Sequence[StaleRow]) -> set[StaleRow]:
    """Those that can be locked now, with SKIP LOCKED; in the order of the ids, as whoever settles."""
    found: set[int] = set()
    for ids in chunks(sorted(row.job_id for row in rows)):
        cursor.execute(f"SELECT j.id FROM {joined(len(ids), 'id')} FOR UPDATE SKIP LOCKED", ids)
        found.update(int(row[0]) for row in cursor.fetchall())
    return {row for row in rows if row.job_id in found}


def lockable(cursor: Cursor, dialect: Dialect, row: StaleRow, impatient: str) -> bool:
    """Whether one row is there and can be locked now; without SKIP LOCKED a lock that is held is an error."""
    cursor.execute(f"{impatient}SELECT id FROM qd_jobs WHERE id = %s{dialect.lock}", (row.job_id,))
    return cursor.fetchone() is not None


def reclaim(
    cursor: Cursor, dialect: Dialect, row: StaleRow, max_attempts: int, *, skip: bool, impatient: str
) -> Verdict:
    """Takes one row back; see Store.reclaim.

    Args:
        skip: the server has SKIP LOCKED; else a locked row costs a lock wait (`impatient`: none).
    """
    lock = dialect.skip_locked if skip else dialect.lock
    cursor.execute(
        f"{impatient}SELECT attempts, max_attempts, reserved_at, history, {dialect.now} FROM qd_jobs "
        f"WHERE id = %s AND {OURS} AND available_at = %s AND available_at <= {dialect.now}{lock}",
        (row.job_id, row.token, row.due),
    )
    found = cursor.fetchone()
    if found is None:
        return Verdict.LOST
    attempts, own_limit, started, past, now = found
    history = appended(past, entry(attempts, started, now, row.token, LOST, GONE))
    if attempts >= (own_limit if own_limit is not None else max_attempts):
        error = f"{GONE} ({row.token}), and it had no attempt left"
        words: dict[str, Any] = {"error": error, "traceback": None, "history": history}
        done = bury(cursor, dialect, row.job_id, OURS, (row.token,), reason=Reason.LOST, **words)
        return Verdict.BURIED if done else Verdict.LOST
    setting = "crashes = crashes + (crashes < 255), last_error = %s, history = %s"
    done = ready_again(cursor, dialect, row.job_id, row.token, 0.0, setting, (GONE, history))
    return Verdict.SETTLED if done else Verdict.LOST


_LEVELS = tuple(PRIORITIES.values())


def _of_lane(dialect: Dialect) -> str:
    inner = (
        f"SELECT id, queue, type, reserved_by, available_at, attempts FROM qd_jobs{dialect.by_lane} "
        f"WHERE queue = %s AND lane = 1 AND priority = %s AND available_at <= {dialect.now} "
        "ORDER BY priority, available_at, id LIMIT %s"
    )
    return f"({inner})" if dialect.name == "mysql" else f"SELECT * FROM ({inner})"


def _row(row: Any) -> StaleRow:
    job_id, queue, type_, token, due, attempts = row
    return StaleRow(int(job_id), str(queue), str(type_), str(token), written(due), int(attempts))
