"""SQL behind the verbs on waiting and running jobs: list, show, release, delete, position.

Each function runs inside a transaction that its caller (`AdminVerbs`) opens. The state of a row is
decided by the database's clock, in the statement that locks it. Locks are taken on one primary
key at a time. Posts are no jobs: nothing here shows or touches them.
May import: the pure modules, protocol, dialect, candidate, moments, texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qd.duration import spell
from qd.errors import BadInput, NotFound, Refused
from qd.job import NAME_PATTERN
from qd.store.claim.candidate import POST
from qd.store.dialect import Cursor, Dialect
from qd.store.moments import written
from qd.store.protocol import POSITION_COUNTED, STATES, Filter, JobRow, StaleRow
from qd.store.settle.texts import as_text, maybe_text

SHOWN_PAYLOAD = 65_536
"""Bytes above which a list fetches only the beginning of a payload."""

CUT_PAYLOAD = 1_000
"""Characters of such a payload that a list fetches."""

NO_POST = f"type <> '{POST}'"
"""The row is a job."""

HELD = "lane = 1 AND available_at > {now}"
"""The row's lease is alive."""


def no_job(job_id: int) -> NotFound:
    """The error for an id without a row."""
    return NotFound(f"no job {job_id} is waiting or running: it has finished, is a dead letter, or never was")


def state_of(dialect: Dialect) -> str:
    """The SQL expression of a row's state."""
    now = dialect.now
    return (
        f"CASE WHEN lane = 2 THEN 'blocked' WHEN lane = 1 AND available_at > {now} THEN 'reserved' "
        f"WHEN lane = 1 THEN 'stale' WHEN available_at > {now} THEN 'delayed' ELSE 'ready' END"
    )


def in_state(dialect: Dialect, state: str) -> str:
    """The SQL condition for a state; written so that an index on lane and due time can serve it.

    Raises:
        BadInput: there is no such state.
    """
    now = dialect.now
    conditions = {
        "ready": f"lane = 0 AND available_at <= {now}",
        "delayed": f"lane = 0 AND available_at > {now}",
        "reserved": HELD.format(now=now),
        "stale": f"lane = 1 AND available_at <= {now}",
        "blocked": "lane = 2",
    }
    if state not in conditions:
        raise BadInput(
            f"there is no state {state!r}; a job is {', '.join(STATES)} (dead letters have verbs of their own)"
        )
    return conditions[state]


def size_of(dialect: Dialect, column: str) -> str:
    """The SQL expression of a column's length in bytes."""
    return f"OCTET_LENGTH({column})" if dialect.name == "mysql" else f"LENGTH(CAST({column} AS BLOB))"


def payload_of(dialect: Dialect, *, whole: bool) -> str:
    """The SQL expression of a payload: whole, or only the beginning of a huge one."""
    if whole:
        return "payload"
    size = size_of(dialect, "payload")
    return f"CASE WHEN {size} > {SHOWN_PAYLOAD} THEN SUBSTR(payload, 1, {CUT_PAYLOAD}) ELSE payload END"


def past_attempts(value: Any) -> list[dict[str, Any]]:
    """A `history` column as a list; what isn't one (written by hand) is shown as a single entry."""
    if value is None:
        return []
    try:
        entries = json.loads(as_text(value))
    except (ValueError, RecursionError):
        return [{"error": as_text(value)[:CUT_PAYLOAD]}]
    if not isinstance(entries, list):
        entries = [entries]
    return [_flat(entry) if isinstance(entry, dict) else {"error": _scalar(entry)} for entry in entries]


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: _scalar(value) for key, value in entry.items()}


def _scalar(value: Any) -> Any:
    """A value of an entry; qd writes no lists or objects there, and deep ones would break who shows them."""
    return value if value is None or isinstance(value, (str, int, float)) else f"({type(value).__name__})"


def select_jobs(dialect: Dialect, *, whole: bool) -> str:
    """SELECT up to its WHERE; `job_row` reads what it gives."""
    return (
        f"SELECT id, queue, type, {payload_of(dialect, whole=whole)}, priority, {state_of(dialect)}, attempts, "
        "crashes, max_attempts, available_at, reserved_at, reserved_by, unique_key, last_error, history, "
        f"created_at, {size_of(dialect, 'payload')} FROM qd_jobs WHERE "
    )


def job_row(dialect: Dialect, row: Sequence[Any]) -> JobRow:
    """A row of `select_jobs` for people."""
    due, created = dialect.moment(row[9]), dialect.moment(row[15])
    assert due is not None and created is not None  # NOT NULL columns
    return JobRow(
        id=row[0], queue=as_text(row[1]), type=as_text(row[2]), payload=as_text(row[3]), priority=row[4],
        state=as_text(row[5]), attempts=row[6], crashes=row[7], max_attempts=row[8], available_at=due,
        reserved_at=dialect.moment(row[10]), reserved_by=maybe_text(row[11]), unique_key=maybe_text(row[12]),
        last_error=maybe_text(row[13]), history=past_attempts(row[14]), created_at=created,
        payload_bytes=row[16] or 0,
    )  # fmt: skip


def conditions(dialect: Dialect, where: Filter) -> tuple[str, list[Any]]:
    """The WHERE of a filter, its page aside, and its values."""
    parts, values = equalities({"queue": where.queue, "type": where.type})
    parts.append(NO_POST)
    if where.state is not None:
        parts.append(in_state(dialect, where.state))
    return " AND ".join(parts), values


def equalities(wanted: dict[str, str | None]) -> tuple[list[str], list[Any]]:
    """Conditions for columns that hold names.

    Raises:
        BadInput: a name that no row can have (the server may refuse to compare it, too).
    """
    given = {column: value for column, value in wanted.items() if value is not None}
    for column, value in given.items():
        if not re.fullmatch(NAME_PATTERN, value):
            raise BadInput(f"{column} {value!r}: a name has only the characters A-Z a-z 0-9 _ . : -")
    return [f"{column} = %s" for column in given], list(given.values())


def list_jobs(cursor: Cursor, dialect: Dialect, where: Filter) -> list[JobRow]:
    """One page of jobs by id."""
    condition, values = conditions(dialect, where)
    cursor.execute(
        f"{select_jobs(dialect, whole=False)} {condition} AND id > %s ORDER BY id LIMIT %s",
        (*values, where.after or 0, where.limit),
    )
    return [job_row(dialect, row) for row in cursor.fetchall()]


def find_job(cursor: Cursor, dialect: Dialect, job_id: int) -> JobRow:
    """One job, its payload whole.

    Raises:
        NotFound: there is no such row.
    """
    cursor.execute(f"{select_jobs(dialect, whole=True)} id = %s AND {NO_POST}", (job_id,))
    row = cursor.fetchone()
    if row is None:
        raise no_job(job_id)
    return job_row(dialect, row)


def count_jobs(cursor: Cursor, dialect: Dialect, where: Filter) -> tuple[int, int]:
    """How many jobs a filter means, and the highest id among them (0: none)."""
    condition, values = conditions(dialect, where)
    cursor.execute(f"SELECT COUNT(*), COALESCE(MAX(id), 0) FROM qd_jobs WHERE {condition}", values)
    count, highest = cursor.fetchone()
    return int(count), int(highest)


def job_ids(cursor: Cursor, dialect: Dialect, where: Filter) -> list[int]:
    """One page of ids."""
    condition, values = conditions(dialect, where)
    cursor.execute(
        f"SELECT id FROM qd_jobs WHERE {condition} AND id > %s ORDER BY id LIMIT %s",
        (*values, where.after or 0, where.limit),
    )
    return [int(row[0]) for row in cursor.fetchall()]


def release(cursor: Cursor, dialect: Dialect, job_id: int, max_attempts: int | None) -> StaleRow | None:
    """Makes a delayed row due now.

    Returns:
        A stale row, unchanged: it is for `reclaim`, which writes the lost run into its history.
    """
    row = _locked(cursor, dialect, job_id)
    if row.state == "blocked":
        raise Refused(f"job {job_id} waits for a limit or for another job, not for a time: nothing to release")
    if row.state == "delayed":
        cursor.execute(f"UPDATE qd_jobs SET available_at = {dialect.now} WHERE id = %s", (job_id,))
    if row.state != "stale":
        return None
    limit = row.max_attempts if row.max_attempts is not None else max_attempts
    if limit is not None and row.stale.attempts >= limit:
        raise Refused(
            f"job {job_id} was cut off in the last of its {limit} attempts and isn't run again as it is: "
            "`qd recover` makes it a dead letter, `qd failed retry` brings that back with fresh attempts"
        )
    return row.stale


def delete(cursor: Cursor, dialect: Dialect, job_id: int) -> None:
    """Deletes one row whose lease isn't alive."""
    _locked(cursor, dialect, job_id)
    cursor.execute("DELETE FROM qd_jobs WHERE id = %s", (job_id,))


def delete_many(cursor: Cursor, dialect: Dialect, ids: Sequence[int], where: Filter) -> int:
    """Deletes those of the rows that still are what the filter means and whose lease isn't alive.

    One key a statement: a list of keys may be planned as a scan, which waits for everybody's inserts.
    """
    condition, values = conditions(dialect, where)
    sql = f"DELETE FROM qd_jobs WHERE id = %s AND {condition} AND NOT ({HELD.format(now=dialect.now)})"
    deleted = 0
    for job_id in ids:
        cursor.execute(sql, (job_id, *values))
        deleted += cursor.rowcount
    return deleted


def position(cursor: Cursor, dialect: Dialect, job_id: int) -> int:
    """How many ready rows of its queue are claimed before this one, counted up to POSITION_COUNTED."""
    cursor.execute(f"SELECT queue, priority, available_at FROM qd_jobs WHERE id = %s AND {NO_POST}", (job_id,))
    row = cursor.fetchone()
    if row is None:
        raise no_job(job_id)
    queue, priority, due = row
    ready = f"SELECT 1 AS n FROM qd_jobs{dialect.by_lane} WHERE queue = %s AND lane = 0 AND priority = %s"
    before = 0
    for higher in range(priority):
        before += _counted(cursor, f"{ready} AND available_at <= {dialect.now}", (queue, higher))
    before += _counted(
        cursor,
        f"{ready} AND available_at <= {dialect.now} AND (available_at < %s OR (available_at = %s AND id < %s))",
        (queue, priority, due, due, job_id),
    )
    return min(before, POSITION_COUNTED)


def _counted(cursor: Cursor, rows: str, values: Sequence[Any]) -> int:
    cursor.execute(f"SELECT COUNT(*) FROM ({rows} LIMIT {POSITION_COUNTED}) counted", values)
    return int(cursor.fetchone()[0])


@dataclass(frozen=True, slots=True)
class _Locked:
    """A row that this transaction has locked and nobody holds a lease on."""

    state: str
    max_attempts: int | None
    stale: StaleRow


def _locked(cursor: Cursor, dialect: Dialect, job_id: int) -> _Locked:
    """Locks a row, by the clock of the statement that does it.

    Raises:
        NotFound: there is no such row.
        Refused: its lease is alive.
    """
    cursor.execute(
        f"SELECT {state_of(dialect)}, max_attempts, reserved_by, {dialect.age.format('available_at')}, "
        f"queue, type, available_at, attempts FROM qd_jobs WHERE id = %s AND {NO_POST}{dialect.lock}",
        (job_id,),
    )
    row = cursor.fetchone()
    if row is None:
        raise no_job(job_id)
    state, token = as_text(row[0]), as_text(row[2])
    if state == "reserved":
        raise Refused(
            f"job {job_id} is running: {token} holds its lease for another {spell(max(0.0, -float(row[3])))}; "
            "wait until it ends or its lease runs out"
        )
    return _Locked(state, row[1], StaleRow(job_id, as_text(row[4]), as_text(row[5]), token, written(row[6]), row[7]))
