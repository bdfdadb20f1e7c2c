"""Enqueuing inside the caller's own transaction: the job commits or rolls back with its rows.

Only the caller's cursor is used; nothing here commits, rolls back or connects. What is at hand whole
is checked before anything is written, what an iterator gives before its statement is sent.
May import: the pure modules and this package.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, overload

from qd.errors import BadInput
from qd.job import NewJob
from qd.store.callers.cursor import CallersCursor, errno, table
from qd.store.callers.new_row import NewRow, new_row
from qd.store.callers.unique import KEY_TAKEN, OR_HOLDER, holders
from qd.store.dialect import MYSQL

ROWS = 1000
"""Rows that one INSERT of `enqueue_many` has at most."""

_ROWS_PREPARED = 50  # the driver's time grows with the square of the placeholders
_LARGE = 65536  # bytes; below this no server's max_allowed_packet is asked for
_STATEMENT = 4096  # bytes that a statement has beside its rows
_SQLITE_MOST = 1 << 24  # bytes of rows that are held at once; each is a statement
_COLUMNS = "queue, type, payload, priority, unique_key, max_attempts"
_SQLITE_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
_SQLITE_AFTER = "strftime('%Y-%m-%d %H:%M:%f', 'now', %s)"


def enqueue(
    cursor: Any,
    type: str,
    payload: Any = None,
    *,
    queue: str = "default",
    delay: float | timedelta = 0,
    priority: str | int = "normal",
    unique_key: str | None = None,
    max_attempts: int | None = None,
    at: datetime | None = None,
    database: str | None = None,
) -> int:
    """Adds a job to the transaction of `cursor`.

    Args:
        cursor: of MySQL Connector, PyMySQL, mysqlclient or sqlite3; plain, dictionary, buffered.
        type: the name of the handler.
        payload: any JSON value; None is no payload, which the handler sees as `{}`.
        delay: seconds, or a timedelta, from the database's now.
        priority: `urgent`, `high`, `normal` or `low`, or 0 to 3.
        unique_key: at most one job of the queue has it, until that is finished or dead.
        max_attempts: None takes the queue's.
        at: when it is due, with a time zone; one that has passed is now. Not with `delay`.
        database: where qd's tables are, if not in the connection's own database.

    Returns:
        The job's id; with a unique key that is taken, that of the job that holds it.

    Raises:
        BadInput: it can't be right; one line, nothing was written.
        Exception: the driver's own errors, untouched.
    """
    row = new_row(NewJob(type, payload, queue, delay, priority, unique_key, max_attempts), at)
    jobs, own = table("qd_jobs", database), CallersCursor(cursor)
    if own.sqlite:
        return _insert_sqlite(own, jobs, row)
    if row.most() > _LARGE:
        _check_size(row, _packet(own), "")
    with _utc(own, needed=row.waits):
        return _insert_one(own, jobs, row)


@overload
def enqueue_many(cursor: Any, jobs: Iterable[NewJob], *, database: str | None = None) -> list[int]: ...
@overload
def enqueue_many(
    cursor: Any, jobs: Iterable[NewJob], *, each: Callable[[list[int]], object], database: str | None = None
) -> None: ...
def enqueue_many(
    cursor: Any,
    jobs: Iterable[NewJob],
    *,
    each: Callable[[list[int]], object] | None = None,
    database: str | None = None,
) -> list[int] | None:
    """Adds many jobs to the transaction of `cursor`, with one statement for 1,000 rows.

    From an iterator, such as a generator, a statement's jobs are taken at a time and none is kept, so
    that any number needs the same memory; with `each` the ids aren't kept either. The iterator may use
    the connection between two statements, but not this cursor. In each thousand those without a unique
    key are inserted first. On a connection that autocommits each statement is a transaction of its own.

    Args:
        cursor: as for `enqueue`.
        jobs: `qd.NewJob`s. A list or another collection is checked whole before the first statement.
        each: called after each statement with the ids of its jobs, in their order: progress.
        database: as for `enqueue`.

    Returns:
        The ids, in the order of `jobs`; that of the holder for each unique key that is taken. None
        with `each`, which has got them all.

    Raises:
        BadInput: one of them can't be right; the line says which. Of a collection nothing was written,
            of an iterator the statements before are part of your transaction: roll back.
        Exception: the driver's own errors and those of the iterator and of `each`, untouched.
    """
    made = insert(cursor, checked(jobs), database=database)
    if each is None:
        return [job_id for ids in made for job_id in ids]
    for ids in made:
        each(ids)
    return None


def checked(jobs: Iterable[NewJob]) -> Iterable[NewRow]:
    """The rows of these jobs: a list, all of them checked, or for an iterator another, which checks as it goes.

    Raises:
        BadInput: one of them can't be right; the line says which, counted from 0. At once for a collection.
    """
    rows = (_numbered(number, job) for number, job in enumerate(jobs))
    return list(rows) if isinstance(jobs, Collection) else rows


def insert(cursor: Any, rows: Iterable[NewRow], *, database: str | None = None, first: int = 0) -> Iterator[list[int]]:
    """Adds rows to the transaction of `cursor` while it is iterated; the ids of each statement's rows.

    Args:
        first: the number of the first row, for what `BadInput` says.
    """
    name, own = table("qd_jobs", database), CallersCursor(cursor)
    if own.sqlite:
        for chunk in _chunks(rows, _SQLITE_MOST, ROWS):
            yield [_insert_sqlite(own, name, row) for row in chunk]
        return
    if isinstance(rows, Sequence) and not rows:
        return
    packet, step = _settings(own, "max_allowed_packet", "auto_increment_increment")
    fitting = _fitting(rows, packet, first)
    if isinstance(rows, Sequence):
        fitting = iter(list(fitting))
    for chunk in _chunks(fitting, packet - _STATEMENT, _ROWS_PREPARED if own.prepares else ROWS):
        with _utc(own, needed=any(row.waits for row in chunk)):
            ids = _insert_chunk(own, name, chunk, step)
        yield ids  # with the session as it was: what runs now is the caller's


def _numbered(number: int, job: NewJob) -> NewRow:
    try:
        return new_row(job)
    except BadInput as refused:
        raise BadInput(f"job {number}: {refused}") from None


def _fitting(rows: Iterable[NewRow], packet: int, first: int) -> Iterator[NewRow]:
    for number, row in enumerate(rows, first):
        if row.most() + _STATEMENT > packet:
            _check_size(row, packet, f"job {number}: ")
        yield row


def _chunks(rows: Iterable[NewRow], room: int, most: int) -> Iterator[list[NewRow]]:
    """Parts that are one statement each: at most so many rows, and bytes unless a row alone has more."""
    chunk: list[NewRow] = []
    left = room
    for row in rows:
        size = row.most()
        if size > left:
            size = row.size()
        if chunk and size > left:
            yield chunk
            chunk, left = [], room
        chunk.append(row)
        left -= size
        if len(chunk) == most:  # sent before another is asked for, who may be long in coming
            yield chunk
            chunk, left = [], room
    if chunk:
        yield chunk


def _insert_chunk(own: CallersCursor, jobs: str, rows: list[NewRow], step: int) -> list[int]:
    """Inserts rows, those without a key first, and returns their ids in order."""
    free = [place for place, row in enumerate(rows) if row.unique_key is None]
    keyed = [place for place, row in enumerate(rows) if row.unique_key is not None]
    ids = dict(zip(free, _insert_new(own, jobs, [rows[place] for place in free], step), strict=True))
    if keyed:
        by_key = _insert_keyed(own, jobs, [rows[place] for place in keyed], step)
        ids |= {place: by_key[rows[place].queue, rows[place].unique_key] for place in keyed}
    return [ids[place] for place in range(len(rows))]


def _insert_keyed(own: CallersCursor, jobs: str, rows: list[NewRow], step: int) -> dict[tuple[str, str | None], int]:
    """Inserts the first row of each key that is free; the id of each key's job."""
    first: dict[tuple[str, str | None], NewRow] = {}
    for row in rows:
        first.setdefault((row.queue, row.unique_key), row)
    once = list(first.values())
    taken = holders(own, jobs, once)
    ids = {(once[place].queue, once[place].unique_key): job_id for place, job_id in taken.items()}
    new = [row for place, row in enumerate(once) if place not in taken]
    try:
        made = _insert_new(own, jobs, new, step)
    except Exception as error:  # the driver's; only a race for one of the keys is taken up: none of the rows is in
        if errno(error) != KEY_TAKEN:
            raise
        made = [_insert_one(own, jobs, row) for row in new]
    return ids | {(row.queue, row.unique_key): job_id for row, job_id in zip(new, made, strict=True)}


def _insert_new(own: CallersCursor, jobs: str, rows: list[NewRow], step: int) -> list[int]:
    """Inserts rows whose keys are free; their ids, which follow from the first one's.

    They aren't read back: under REPEATABLE READ that would lock the gap beside the lowest key, in
    which all new jobs without one have their place.
    """
    if not rows:
        return []
    _insert(own, jobs, rows)
    first = own.last_id
    return [first + number * step for number in range(len(rows))]


def _insert_one(own: CallersCursor, jobs: str, row: NewRow) -> int:
    if row.unique_key is None:
        _insert(own, jobs, [row])
        return own.last_id
    taken = holders(own, jobs, [row])
    if taken:
        return taken[0]
    _insert(own, jobs, [row], OR_HOLDER)
    return own.last_id


def _insert(own: CallersCursor, jobs: str, rows: list[NewRow], or_holder: str = "") -> None:
    waits = any(row.waits for row in rows)
    columns = _COLUMNS + (", available_at" if waits else "")
    lines, params = [], []
    for row in rows:
        due, due_params = _due(row) if waits else ("", ())
        if len(rows) == 1:
            lines.append(f"(%s, %s, %s, %s, %s, %s{due})")
            params += [*row.values, *due_params]
        else:
            line, values = _line(row)
            lines.append(f"({line}{due})")
            params += [*values, *due_params]
    own.execute(f"INSERT INTO {jobs} ({columns}) VALUES {', '.join(lines)}{or_holder}", params)


def _line(row: NewRow) -> tuple[str, tuple[Any, ...]]:
    """One of many rows, its names and numbers written out: drivers take longer for a placeholder than the server does
    for the row. A checked name has nothing in it that means anything inside quotes."""
    limit = "NULL" if row.max_attempts is None else row.max_attempts
    line = f"'{row.queue}', '{row.type}', %s, {row.priority}"
    if row.unique_key is None:
        return f"{line}, NULL, {limit}", (row.payload,)
    return f"{line}, %s, {limit}", (row.payload, row.unique_key)


def _due(row: NewRow) -> tuple[str, tuple[Any, ...]]:
    """The value of available_at, right where the session's time zone is '+00:00'."""
    if row.at is not None:
        return ", GREATEST(CAST(%s AS DATETIME(6)), NOW(6))", (f"{row.at:%Y-%m-%d %H:%M:%S.%f}",)
    if row.delay:
        return f", {MYSQL.after}", (MYSQL.span(row.delay),)
    return ", DEFAULT", ()


def _insert_sqlite(own: CallersCursor, jobs: str, row: NewRow) -> int:
    due, params = f", {_SQLITE_NOW}", ()  # type: tuple[str, tuple[Any, ...]]
    if row.at is not None:
        due, params = f", max(%s, {_SQLITE_NOW})", (f"{row.at:%Y-%m-%d %H:%M:%S.%f}"[:-3],)
    elif row.delay:
        due, params = f", {_SQLITE_AFTER}", (f"+{row.delay:.3f} seconds",)
    own.execute(
        f"INSERT INTO {jobs} ({_COLUMNS}, available_at) VALUES (%s, %s, %s, %s, %s, %s{due})"
        " ON CONFLICT (queue, unique_key) DO UPDATE SET queue = excluded.queue RETURNING id",
        [*row.values, *params],
    )
    return int(own.rows()[0][0])


def _check_size(row: NewRow, packet: int, which: str) -> None:
    size = row.size() + _STATEMENT
    if size > packet:
        raise BadInput(
            f"{which}payload: {len(row.payload.encode())} bytes make a statement of up to {size};"
            f" allowed: {packet}, the server's max_allowed_packet"
        )


def _packet(own: CallersCursor) -> int:
    (packet,) = _settings(own, "max_allowed_packet")
    return packet


def _settings(own: CallersCursor, *names: str) -> list[int]:
    own.execute("SELECT " + ", ".join(f"@@session.{name} AS {name}" for name in names))
    return [int(value) for value in own.rows()[0]]


@contextmanager
def _utc(own: CallersCursor, *, needed: bool) -> Iterator[None]:
    """Holds the session's time zone at UTC, where a span added to now means what it says.

    In a local time zone the server adds to the wall clock: around a change of daylight saving time
    that is an hour off, or a time that doesn't exist.
    """
    zone = _zone(own) if needed else "+00:00"
    if zone == "+00:00":
        yield
        return
    own.execute("SET time_zone = '+00:00'")
    try:
        yield
    except BaseException:
        with suppress(Exception):  # the connection may be gone; what happened first is what counts
            own.execute("SET time_zone = %s", (zone,))
        raise
    own.execute("SET time_zone = %s", (zone,))


def _zone(own: CallersCursor) -> str:
    own.execute("SELECT @@session.time_zone AS zone")
    return str(own.rows()[0][0])
