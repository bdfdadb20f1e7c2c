"""After a COMMIT without an answer: did that end stand, or was the lease lost? The rows tell.

A row loses our token in two ways only: by an end of ours, or because it had gone stale and was
taken back. Whoever takes a stale row back writes an entry `lost` with its token into the history,
or a dead letter of reason `lost`. So where the token no longer matches and no such trace is found,
in the row or in the dead letter that it may be by now, our end stood. (A stranger's run that has
finished since would have removed the trace with the row; the job was then done twice, and both ends
are true.) May import: dialect, history, the pure modules.
"""

from __future__ import annotations

from typing import Any

from qd.outcome import Action, Settlement, Verdict
from qd.store.dialect import Cursor
from qd.store.settle.history import LOST, of_token


def stood(cursor: Cursor, settlement: Settlement) -> Verdict:
    """The verdict for an end that may have been written by an earlier, unanswered COMMIT."""
    job, action = settlement.job, settlement.action
    letter = _dead_letter(cursor, job.id)
    if letter is not None and letter[1] == job.token:
        return _of_dead_letter(settlement, str(letter[0]))
    cursor.execute("SELECT history FROM qd_jobs WHERE id = %s", (job.id,))
    row = cursor.fetchone()
    told = of_token(row[0] if row is not None else letter[2] if letter is not None else None, job.token)
    if told == LOST or (action is Action.FINISH and row is not None):
        return Verdict.LOST
    if action is Action.BURY:  # an operator may have brought it back since
        return Verdict.SETTLED if told is not None else Verdict.LOST
    return Verdict.SETTLED


def _of_dead_letter(settlement: Settlement, reason: str) -> Verdict:
    """The row is a dead letter that bears our token: ours, or the sweep's."""
    if settlement.action is Action.POSTPONE:
        return Verdict.BURIED if reason == settlement.outcome.reason.value else Verdict.LOST
    ours = settlement.action is Action.BURY and reason == settlement.outcome.reason.value
    return Verdict.SETTLED if ours else Verdict.LOST


def _dead_letter(cursor: Cursor, job_id: int) -> Any:
    """The newest one: its reason, its last owner, its history."""
    cursor.execute(
        "SELECT reason, reserved_by, history FROM qd_failed_jobs WHERE job_id = %s ORDER BY id DESC LIMIT 1", (job_id,)
    )
    return cursor.fetchone()
