"""Whether rows can be written as qd writes them: tried with rows of qd's own, in a transaction that is undone.

A trigger that refuses, a lost AUTO_INCREMENT, a constraint or column of somebody's: rights and definitions don't tell
(MySQL hides triggers from the daemon's account), the server's answer does. May import: the pure modules, protocol,
dialect, candidate, posts.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from qd.errors import OUT_OF_REACH, StoreError, TransactionFailed
from qd.store.claim.candidate import POST
from qd.store.dialect import Cursor, Session
from qd.store.posts import PROBE_QUEUE
from qd.store.protocol import Finding

DENIED = frozenset({1044, 1142, 1143})
"""What a server says to a statement for which a right is missing."""

TOLD_ELSEWHERE = DENIED | {1665}
"""The same, and a binlog that takes no write: each has a finding of its own."""


class _Undo(Exception):
    """All went well: the transaction is to be undone."""


def tried(session: Session) -> Iterator[Finding]:
    """Puts in, changes and takes out a row of both tables of jobs; the first that is refused is told."""
    doing: list[str] = []
    try:
        session.transaction(lambda cursor: _life(cursor, doing))
    except _Undo:
        return
    except OUT_OF_REACH:
        raise
    except StoreError as error:
        if error.errno not in TOLD_ELSEWHERE and not isinstance(error, TransactionFailed):  # locked: others tell
            yield Finding(
                "FAIL", "writes", f"no job can be {doing[-1]}: {error}. Is it a trigger (SHOW TRIGGERS, as an "
                "administrator), a constraint or a column that isn't qd's? Compare the tables with schema.sql"
            )  # fmt: skip


def _life(cursor: Cursor, doing: list[str]) -> None:
    """A job's, as the store writes it, in a queue of qd's own."""
    doing.append("enqueued")
    cursor.execute(
        "INSERT INTO qd_jobs (queue, type, lane, unique_key) VALUES (%s, %s, 2, %s)",
        (PROBE_QUEUE, POST, f"qd.writes:{secrets.token_hex(8)}"),
    )
    row = (cursor.lastrowid,)
    doing.append("claimed")
    cursor.execute(
        "UPDATE qd_jobs SET lane = 1, reserved_by = 'qd.writes', reserved_at = NOW(6), attempts = attempts + 1, "
        "available_at = NOW(6) + INTERVAL 1 MINUTE WHERE id = %s",
        row,
    )
    doing.append("made a dead letter")
    cursor.execute(f"INSERT INTO qd_failed_jobs (job_id, {_MOVED}, reason) SELECT id, {_MOVED}, 'error' FROM qd_jobs "
                   "WHERE id = %s", row)  # fmt: skip
    doing.append("taken out of the dead letters")
    cursor.execute("DELETE FROM qd_failed_jobs WHERE id = %s", (cursor.lastrowid,))
    doing.append("finished")
    cursor.execute("DELETE FROM qd_jobs WHERE id = %s", row)
    raise _Undo


_MOVED = "queue, type, payload, priority, attempts, max_attempts, unique_key, created_at, reserved_by"
