"""SQL behind the verbs on dead letters: list, show, retry, delete.

Each function runs inside a transaction that its caller (`AdminVerbs`) opens. A dead letter is found
by a plain read, then locked by its primary key: a locking read by job id could be planned as a
walk over the whole table. May import: the pure modules, protocol, dialect, holding, jobs, texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qd.errors import NotFound, Refused
from qd.store.admin.holding import key_holder
from qd.store.admin.jobs import equalities, past_attempts, payload_of, size_of
from qd.store.dialect import Cursor, Dialect
from qd.store.protocol import FailedRow, Filter
from qd.store.settle.texts import as_text, maybe_text


def no_dead_letter(job_id: int) -> NotFound:
    """The error for a job id without a dead letter."""
    return NotFound(f"no dead letter of job {job_id}: it is waiting or running, has finished, or never was")


def select_failed(dialect: Dialect, *, whole: bool) -> str:
    """SELECT up to its WHERE; `failed_row` reads what it gives."""
    return (
        f"SELECT id, job_id, queue, type, {payload_of(dialect, whole=whole)}, priority, attempts, max_attempts, "
        "unique_key, history, created_at, reason, error, traceback, reserved_by, failed_at, "
        f"{size_of(dialect, 'payload')} FROM qd_failed_jobs WHERE "
    )


def failed_row(dialect: Dialect, row: Sequence[Any], others: int = 0) -> FailedRow:
    """A row of `select_failed` for people."""
    created, failed_at = dialect.moment(row[10]), dialect.moment(row[15])
    assert created is not None and failed_at is not None  # NOT NULL columns
    return FailedRow(
        id=row[0], job_id=row[1], queue=as_text(row[2]), type=as_text(row[3]), payload=as_text(row[4]),
        priority=row[5], attempts=row[6], max_attempts=row[7], unique_key=maybe_text(row[8]),
        history=past_attempts(row[9]), created_at=created, reason=as_text(row[11]), error=maybe_text(row[12]),
        traceback=maybe_text(row[13]), reserved_by=maybe_text(row[14]), failed_at=failed_at,
        payload_bytes=row[16] or 0, others=others,
    )  # fmt: skip


def conditions(dialect: Dialect, where: Filter) -> tuple[str, list[Any]]:
    """The WHERE of a filter, its page aside, and its values."""
    parts, values = equalities({"queue": where.queue, "type": where.type, "reason": where.reason})
    parts.append("1 = 1")
    if where.older_than is not None:
        parts.append(f"failed_at <= {dialect.after}")
        values.append(dialect.span(-where.older_than))
    return " AND ".join(parts), values


def list_failed(cursor: Cursor, dialect: Dialect, where: Filter) -> list[FailedRow]:
    """One page of dead letters, newest first."""
    condition, values = conditions(dialect, where)
    if where.after is not None:
        condition += " AND id < %s"
        values.append(where.after)
    cursor.execute(
        f"{select_failed(dialect, whole=False)} {condition} ORDER BY id DESC LIMIT %s", (*values, where.limit)
    )
    return [failed_row(dialect, row) for row in cursor.fetchall()]


def count_failed(cursor: Cursor, dialect: Dialect, where: Filter) -> int:
    """How many dead letters a filter means."""
    condition, values = conditions(dialect, where)
    cursor.execute(f"SELECT COUNT(*) FROM qd_failed_jobs WHERE {condition}", values)
    return int(cursor.fetchone()[0])


def failed_ids(cursor: Cursor, dialect: Dialect, where: Filter) -> list[tuple[int, int]]:
    """(job id, dead letter's id) of all that a filter means, oldest first."""
    condition, values = conditions(dialect, where)
    cursor.execute(f"SELECT job_id, id FROM qd_failed_jobs WHERE {condition} ORDER BY id", values)
    return [(int(row[0]), int(row[1])) for row in cursor.fetchall()]


def find_failed(cursor: Cursor, dialect: Dialect, job_id: int) -> FailedRow:
    """The newest dead letter of a job, its payload whole.

    Raises:
        NotFound: there is none.
    """
    cursor.execute(f"{select_failed(dialect, whole=True)} job_id = %s ORDER BY id DESC LIMIT 1", (job_id,))
    row = cursor.fetchone()
    if row is None:
        raise no_dead_letter(job_id)
    cursor.execute("SELECT COUNT(*) FROM qd_failed_jobs WHERE job_id = %s", (job_id,))
    return failed_row(dialect, row, others=int(cursor.fetchone()[0]) - 1)


def retry(cursor: Cursor, dialect: Dialect, job_id: int, up_to: int | None) -> int:
    """Moves the newest dead letter of a job back; see `AdminVerbs.retry_failed`.

    The payload is copied by the server, so its bytes can't change and its size doesn't matter.
    """
    failed_id, queue, unique_key = _locked(cursor, dialect, job_id, up_to)
    if unique_key is not None:
        _refuse_taken(cursor, dialect, job_id, queue, unique_key)
    cursor.execute("SELECT 1 FROM qd_jobs WHERE id = %s", (job_id,))
    id_is_taken = cursor.fetchone() is not None
    cursor.execute(_INSERT_NEW if id_is_taken else _INSERT_SAME, (failed_id,))
    new_id = int(cursor.lastrowid or 0) if id_is_taken else job_id
    cursor.execute("DELETE FROM qd_failed_jobs WHERE id = %s", (failed_id,))
    return new_id


def delete(cursor: Cursor, dialect: Dialect, job_id: int, up_to: int | None) -> None:
    """Deletes the newest dead letter of a job; see `AdminVerbs.delete_failed`."""
    failed_id, _, _ = _locked(cursor, dialect, job_id, up_to)
    cursor.execute("DELETE FROM qd_failed_jobs WHERE id = %s", (failed_id,))


_KEPT = "queue, type, payload, priority, max_attempts, unique_key, history, created_at"

_INSERT_NEW = f"INSERT INTO qd_jobs ({_KEPT}, last_error) SELECT {_KEPT}, error FROM qd_failed_jobs WHERE id = %s"
"""All other columns take their defaults: due now, no attempts, no crashes, nobody's."""

_INSERT_SAME = _INSERT_NEW.replace("(queue", "(id, queue").replace("SELECT queue", "SELECT job_id, queue")


def _refuse_taken(cursor: Cursor, dialect: Dialect, job_id: int, queue: str, unique_key: str) -> None:
    holder = key_holder(cursor, dialect, queue, unique_key)
    if holder is not None:
        raise Refused(
            f"job {job_id}: its unique key {as_text(unique_key)!r} is taken by job {holder} by now; "
            "nothing was changed. Retry it when that one has ended, or delete it"
        )


def _locked(cursor: Cursor, dialect: Dialect, job_id: int, up_to: int | None) -> tuple[int, str, str | None]:
    """Locks the newest dead letter of a job: its id, queue and unique key.

    Raises:
        NotFound: there is none, or another took it just now.
    """
    bound, values = ("", [job_id]) if up_to is None else (" AND id <= %s", [job_id, up_to])
    cursor.execute(f"SELECT id FROM qd_failed_jobs WHERE job_id = %s{bound} ORDER BY id DESC LIMIT 1", values)
    found = cursor.fetchone()
    if found is not None:
        cursor.execute(f"SELECT id, queue, unique_key FROM qd_failed_jobs WHERE id = %s{dialect.lock}", (found[0],))
        found = cursor.fetchone()
    if found is None:
        raise no_dead_letter(job_id)
    return int(found[0]), as_text(found[1]), maybe_text(found[2])
