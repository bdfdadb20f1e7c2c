"""Finishing a job inside its handler's own transaction, fenced by the claim's token.

Only the handler's cursor is used; nothing here commits, rolls back or connects. On a Galera cluster
the handler's node may not know the claim yet that another node has just committed: waited for, which
under REPEATABLE READ can end with 1213 when the claim arrives.
May import: the pure modules and this package.
"""

from __future__ import annotations

import time
from typing import Any

from qd.clock import monotonic
from qd.errors import QdError
from qd.store.callers.cursor import CallersCursor, errno, table

LAG = 5.0
"""Seconds that a claim may take from the daemon's node to the handler's."""

_SNAPSHOT_CHANGED = 1020  # MariaDB 11.6 and newer under REPEATABLE READ: "Record has changed since last read"


def complete(cursor: Any, job_id: int, token: str, *, database: str | None = None) -> bool:
    """Deletes the job's row if the claim with this token still holds it.

    Args:
        cursor: of MySQL Connector, PyMySQL, mysqlclient or sqlite3, in the handler's transaction.
        job_id: the job's id.
        token: the claim's `reserved_by`.
        database: where qd's tables are, if not in the connection's own database.

    Returns:
        False: the job isn't ours any more; the handler must roll back.

    Raises:
        QdError: the transaction's snapshot is older than the lease's last renewal; says what to do.
        Exception: the driver's own errors, untouched.
    """
    own = CallersCursor(cursor)
    jobs = table("qd_jobs", database)
    if _deleted(own, jobs, job_id, token):
        return True
    if own.sqlite or not _may_lag(own):
        return False
    until = monotonic() + LAG
    while monotonic() < until:
        time.sleep(0.02)
        if _deleted(own, jobs, job_id, token):
            return True
    return False


def _may_lag(own: CallersCursor) -> bool:
    own.execute("SHOW SESSION VARIABLES LIKE 'wsrep_on'")
    return [str(row[1]).upper() for row in own.rows()] == ["ON"]


def _deleted(own: CallersCursor, jobs: str, job_id: int, token: str) -> bool:
    try:
        own.execute(f"DELETE FROM {jobs} WHERE id = %s AND reserved_by = %s", (job_id, token))
    except Exception as error:
        if errno(error) != _SNAPSHOT_CHANGED:
            raise
        raise QdError(
            f"job {job_id} was not completed: job.complete() needs READ COMMITTED, or to be the transaction's first"
            " statement (the server answered 1020: the row has changed since the transaction's snapshot)"
        ) from error
    return own.rowcount == 1
