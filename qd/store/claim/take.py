"""Claims rows under SKIP LOCKED, or in SQLite's one write transaction: one statement finds and locks.

One index range per (queue, lane, priority), in the index's own order from the low watermark up, so
that neither a backlog nor dead entries are walked or locked. The rows are ours only once the
transaction has been committed. May import: candidate, dialect, listed, marks, protocol, the pure modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from qd.clock import monotonic
from qd.errors import UnknownError
from qd.store.claim.candidate import Candidate, bury_spent, candidates, reserved, spot_of
from qd.store.claim.marks import Lane, Mark, Watermarks
from qd.store.dialect import Cursor, Dialect
from qd.store.listed import AT_ONCE, joined_ids
from qd.store.protocol import Claim, Spot

BURIED_AT_ONCE = 100
"""Rows without attempts left that one claim moves to the dead letters before it gives up for now."""


@dataclass(slots=True)
class Taken:
    """What a claim's transaction did, to be believed once it is committed."""

    rows: list[Candidate] = field(default_factory=list)
    buried: list[Candidate] = field(default_factory=list)
    lane: Lane = ("", 0)
    begun: Mark = field(default_factory=lambda: Mark(None, 0))
    next: Spot | None = None
    """Where the lane's next claim begins; None: the lane gave less than was asked for."""
    empty: list[Lane] = field(default_factory=list)
    alone: bool = False
    """The row came alone because it had to."""
    begun_at: float = field(default_factory=monotonic)
    """Monotonic, before the claim's first statement, behind those of the ends that it shares a transaction with."""


def take(cursor: Cursor, dialect: Dialect, claim: Claim, marks: Watermarks, limit: int) -> Taken:
    """Takes rows of the first priority that has any.

    Args:
        limit: rows at most, no more than the claim's own.
    """
    taken = Taken()
    for priority in claim.priorities:
        lane, start = (claim.queue, priority), claim.start if priority == claim.priorities[0] else None
        while not taken.rows and len(taken.buried) < BURIED_AT_ONCE:
            begun = marks.begin(lane, start)
            found = candidates(cursor, dialect, claim, priority, begun.spot, limit, dialect.skip_locked)
            if not found:
                taken.empty.append(lane)
                break
            taken.lane, taken.begun = lane, begun
            _take_from(cursor, dialect, claim, found, taken)
            taken.next = _next(found, taken) if len(found) >= limit else None
        if taken.rows:
            break
    return taken


def _take_from(cursor: Cursor, dialect: Dialect, claim: Claim, found: Sequence[Candidate], taken: Taken) -> None:
    """Buries what has no attempt left, reserves the rest: a row that must be alone only if first."""
    spent = [row for row in found if row.attempts >= claim_limit(row, claim)]
    for row in spent:
        if not bury_spent(cursor, dialect, row):
            raise UnknownError(f"claim: job {row.id} has no attempt left, is locked, and yet can't be moved")
    taken.buried += spent
    live = [row for row in found if row.attempts < claim_limit(row, claim)]
    if live and must_be_alone(live[0], claim):
        taken.rows, taken.alone = live[:1], True
    else:
        taken.rows = [row for row in live if not must_be_alone(row, claim)]
    if taken.rows:
        _reserve(cursor, dialect, claim, [row.id for row in taken.rows])


def claim_limit(row: Candidate, claim: Claim) -> int:
    """The attempts that a row may have."""
    return row.max_attempts if row.max_attempts is not None else claim.max_attempts


def must_be_alone(row: Candidate, claim: Claim) -> bool:
    """On its last attempt, or with crashes behind it: only for a thread that starts it at once."""
    return row.crashes > 0 or row.attempts + 1 >= claim_limit(row, claim)


def _next(found: Sequence[Candidate], taken: Taken) -> Spot:
    """The first row that was passed over, else the last one found."""
    gone = {row.id for row in taken.rows} | {row.id for row in taken.buried}
    return next((spot_of(row) for row in found if row.id not in gone), spot_of(found[-1]))


def _reserve(cursor: Cursor, dialect: Dialect, claim: Claim, ids: Sequence[int]) -> None:
    """Marks locked rows as ours; all of them, or it raises."""
    setting, values = reserved(dialect, claim)
    if dialect.name != "mysql" or len(ids) == 1:
        for job_id in ids:
            cursor.execute(f"UPDATE qd_jobs SET {setting} WHERE id = %s", (*values, job_id))
            _check(cursor, 1)
        return
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        cursor.execute(f"UPDATE {joined_ids(some)} SET {setting}", values)
        _check(cursor, len(some))


def _check(cursor: Cursor, wanted: int) -> None:
    if cursor.rowcount != wanted:
        raise UnknownError(f"claim: {cursor.rowcount} rows were reserved where {wanted} are locked")
