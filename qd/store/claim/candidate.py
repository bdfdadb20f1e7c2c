"""The rows that a claim may take: how they are found, and what a claim writes into them.

May import: bury, dialect, moments, protocol, the pure modules.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, NamedTuple

from qd.job import ClaimedJob
from qd.outcome import Reason
from qd.store.dialect import Cursor, Dialect
from qd.store.moments import seconds_between, written
from qd.store.protocol import Claim, Spot
from qd.store.settle.bury import bury

POST = "qd.post"
"""The type of qd's own rows: never claimed, never shown."""


class Candidate(NamedTuple):
    """A ready row as a claim sees it, before it is taken; `now` is the database's. In the order of its SELECT."""

    id: int
    type: str
    payload: str | bytes
    priority: int
    attempts: int
    max_attempts: int | None
    crashes: int
    created_at: Any
    due: Any
    now: Any

    def now_written(self) -> str:
        """The database's now at the claim, as text."""
        return written(self.now)

    def claimed(self, claim: Claim, dialect: Dialect, claimed_at: float) -> ClaimedJob:
        """The job that it is once it has been taken."""
        created_at = dialect.moment(self.created_at) or datetime.fromtimestamp(0, timezone.utc)
        return ClaimedJob(
            self.id, claim.queue, self.type, self.payload, self.priority, self.attempts + 1, self.max_attempts,
            self.crashes, created_at, claim.token, seconds_between(self.due, self.now), claimed_at, claim.lease,
        )  # fmt: skip


def candidates(
    cursor: Cursor, dialect: Dialect, claim: Claim, priority: int, low: Spot | None, limit: int, lock: str
) -> list[Candidate]:
    """Ready rows of one lane in order, from `low` up, locked as `lock` says."""
    bound, values = above(dialect, low)
    cursor.execute(
        "SELECT id, type, payload, priority, attempts, max_attempts, crashes, created_at, available_at, "
        f"{dialect.now} FROM qd_jobs{dialect.by_lane} WHERE queue = %s AND lane = 0 AND priority = %s "
        f"AND available_at <= {dialect.now}{bound} AND type <> '{POST}' "
        f"ORDER BY priority, available_at, id LIMIT %s{lock}",
        (claim.queue, priority, *values, limit),
    )
    return [_candidate(row) for row in cursor.fetchall()]


def above(dialect: Dialect, low: Spot | None) -> tuple[str, tuple[Any, ...]]:
    """SQL and values of a low bound that carries the id: rows of one INSERT share their due time."""
    if low is None:
        return "", ()
    if dialect.name == "mysql":
        bound = " AND (available_at > %s OR (available_at = %s AND id >= %s))"
        return bound, (low.due, low.due, low.id)
    return " AND (available_at, id) >= (%s, %s)", (low.due, low.id)


def reserved(dialect: Dialect, claim: Claim) -> tuple[str, tuple[Any, ...]]:
    """SET list and values that make a row ours: the attempt is spent, the lease runs."""
    setting = (
        f"lane = 1, reserved_by = %s, reserved_at = {dialect.now}, attempts = attempts + 1, "
        f"available_at = {dialect.after}"
    )
    return setting, (claim.token, dialect.span(claim.lease))


def spot_of(row: Candidate) -> Spot:
    """Its place in the lane."""
    return Spot(written(row.due), row.id)


SPENT = "it had no attempt left: the number of attempts that it may have was lowered"


def bury_spent(cursor: Cursor, dialect: Dialect, row: Candidate) -> bool:
    """Moves a waiting row whose attempts are all spent to the dead letters."""
    cursor.execute("SELECT last_error, history FROM qd_jobs WHERE id = %s AND lane = 0", (row.id,))
    found = cursor.fetchone()
    if found is None:
        return False
    words = {"reason": Reason.ERROR, "error": found[0] or SPENT, "traceback": None, "history": found[1]}
    return bury(cursor, dialect, row.id, "lane = 0 AND attempts = %s", (row.attempts,), **words)


def _candidate(row: Any) -> Candidate:
    found = Candidate._make(row)
    if type(found.type) is str and type(found.payload) is str:
        return found
    return found._replace(type=str(found.type), payload=_raw(found.payload))


def _raw(payload: Any) -> str | bytes:
    """What a column that strangers have altered may give (NULL, a number) is no JSON, and must not stop the queue."""
    return bytes(payload) if isinstance(payload, bytes | bytearray | memoryview) else str(payload)
