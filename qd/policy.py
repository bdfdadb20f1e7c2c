"""What is done with a row, given how its attempt ended: the one place where that is decided. Pure."""

from __future__ import annotations

from dataclasses import replace

from qd.backoff import Backoff
from qd.job import ClaimedJob
from qd.outcome import Action, Outcome, OutcomeKind, Reason, Settlement

HAND_BACK_DELAY = 1.0
"""Seconds until a job is due that ran until a stop cut it off (DESIGN: no second run while the
first may still act)."""

NO_CHILD_DELAY = 10.0
"""Seconds until a job is due again that could not be started: its child process, say, can't be, or ended before
the handler was entered. It may be so each time, and no attempt is spent that would end it."""

UNKNOWN_TYPE_DELAY = 5.0
"""Seconds until a job of unknown type is looked at again."""


def settlement(job: ClaimedJob, outcome: Outcome, max_attempts: int, backoff: Backoff) -> Settlement:
    """Decides for an attempt that has ended.

    Args:
        max_attempts: the queue's, for rows without their own.
        backoff: the queue's.
    """
    kind = outcome.kind
    if not outcome.entered:
        return unstarted(job, 0.0 if kind is OutcomeKind.RELEASED else NO_CHILD_DELAY)
    if kind is OutcomeKind.SUCCEEDED:
        return Settlement(job, Action.FINISH, outcome)
    if kind is OutcomeKind.REJECTED:
        return Settlement(job, Action.BURY, outcome)
    if kind is OutcomeKind.SNOOZED:
        return Settlement(job, Action.RELEASE, outcome, delay=max(0.0, outcome.delay or 0.0))
    if kind is OutcomeKind.RELEASED:
        return hand_back(job, outcome, max_attempts, delay=HAND_BACK_DELAY)
    if job.attempt >= limit(job, max_attempts):
        return Settlement(job, Action.BURY, outcome)
    delay = outcome.delay if outcome.delay is not None else backoff.delay(job.attempt)
    return Settlement(job, Action.RETRY, outcome, delay=max(0.0, delay))


def limit(job: ClaimedJob, max_attempts: int) -> int:
    """The number of attempts that this job may have."""
    return job.max_attempts if job.max_attempts is not None else max_attempts


def hand_back(job: ClaimedJob, outcome: Outcome, max_attempts: int, delay: float = 0.0) -> Settlement:
    """For a job whose run was cut off by a stop: given back uncounted, unless one start is all it may have."""
    if limit(job, max_attempts) == 1:
        return Settlement(job, Action.BURY, replace(outcome, reason=Reason.INTERRUPTED))
    return Settlement(job, Action.RELEASE, outcome, delay=delay)


def abandoned(job: ClaimedJob, outcome: Outcome, max_attempts: int, backoff: Backoff) -> Settlement:
    """For a job whose handler could not be ended: as its outcome wants, but not due before the process has ended."""
    wanted = settlement(job, outcome, max_attempts, backoff)
    return replace(wanted, delay=max(wanted.delay, HAND_BACK_DELAY))


def unstarted(job: ClaimedJob, delay: float = 0.0) -> Settlement:
    """For a job that was claimed but never started: given back uncounted, due after so many seconds."""
    return Settlement(job, Action.RELEASE, Outcome(OutcomeKind.RELEASED, entered=False), delay=delay)


def unknown_type(job: ClaimedJob, known: str) -> Settlement:
    """For a type that nobody here handles.

    Args:
        known: what the error says of the types that are known.
    """
    error = f"no handler for type {job.type!r}; {known}"
    outcome = Outcome(OutcomeKind.REJECTED, Reason.UNKNOWN_TYPE, error=error)
    return Settlement(job, Action.POSTPONE, outcome, delay=UNKNOWN_TYPE_DELAY)
