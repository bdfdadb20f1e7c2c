"""SQL on queues that are qd's own (a bench's): finding them, and removing all that they have.

Whatever state a row is in, posts and dead letters too: nobody but qd has anything in such a queue. Rows
are found by plain reads and deleted by primary key. Each function runs inside a transaction that its
caller (`AdminVerbs`) opens. May import: the pure modules, dialect, listed, tending.
"""

from __future__ import annotations

from collections.abc import Sequence

from qd.errors import Refused
from qd.job import OWN_PREFIX
from qd.store.dialect import Cursor, Dialect
from qd.store.listed import chunks, joined
from qd.store.settle.texts import as_text
from qd.store.tending import names_in

FOUND_AT_ONCE = 10_000
"""Ids that one read brings."""

DELETED_AT_ONCE = 1000
"""Rows that one transaction deletes."""

TABLES = ("qd_jobs", "qd_failed_jobs")


def refuse_foreign(queue: str) -> None:
    """Raises Refused for a queue that isn't qd's own."""
    if not queue.startswith(OWN_PREFIX):
        raise Refused(f"queue {queue!r} isn't qd's own: its rows are left alone")


def own_queues(cursor: Cursor, prefix: str) -> list[str]:
    """Names that begin so and have any row: of a job, a post, a dead letter, or of a daemon that serves it."""
    after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    found: set[str] = set()
    for table in TABLES:
        cursor.execute(f"SELECT DISTINCT queue FROM {table} WHERE queue >= %s AND queue < %s", (prefix, after))
        found.update(as_text(row[0]) for row in cursor.fetchall())
    cursor.execute("SELECT queues FROM qd_daemons")
    found.update(name for row in cursor.fetchall() for name in names_in(row[0]) if name.startswith(prefix))
    return sorted(found)


def found(cursor: Cursor, table: str, queue: str) -> list[int]:
    """Ids of a table's rows in this queue, some at a time."""
    cursor.execute(f"SELECT id FROM {table} WHERE queue = %s LIMIT {FOUND_AT_ONCE}", (queue,))
    return sorted(int(row[0]) for row in cursor.fetchall())


def delete(cursor: Cursor, dialect: Dialect, table: str, queue: str, ids: Sequence[int]) -> None:
    """Deletes those of these rows that are in this queue."""
    if dialect.name != "mysql":
        for row_id in ids:
            cursor.execute(f"DELETE FROM {table} WHERE id = %s AND queue = %s", (row_id, queue))
        return
    for some in chunks(ids):
        cursor.execute(f"DELETE j FROM {joined(len(some), 'id', table=table)} WHERE j.queue = %s", (*some, queue))


def daemons_of(cursor: Cursor, queue: str) -> list[str]:
    """Ids of daemons, alive or not, that serve this queue alone."""
    cursor.execute("SELECT id FROM qd_daemons WHERE queues = %s", (f'["{queue}"]',))
    return [as_text(row[0]) for row in cursor.fetchall()]
