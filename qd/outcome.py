"""How an attempt ended, what a handler may say of it, and what is then done with the row. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from qd.job import ClaimedJob


class Retry(Exception):
    """Raised by a handler: a failed attempt, due again after its own delay.

    Args:
        after: seconds; None takes the queue's back-off.
        reason: one line for the log and the row.
    """

    def __init__(self, after: float | None = None, reason: str = "asked for a retry") -> None:
        super().__init__(reason)
        self.after, self.reason = after, reason


class Reject(Exception):
    """Raised by a handler: no retry can help, to the dead letter at once."""

    def __init__(self, reason: str = "rejected") -> None:
        super().__init__(reason)
        self.reason = reason


class Snooze(Exception):
    """Raised by a handler: back in the queue for `seconds`; this run is not an attempt."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"snoozed for {seconds} s")
        self.seconds = seconds


class JobTimeout(BaseException):
    """Raised inside a handler whose time-out has passed. Not an Exception, so that a handler's
    `except Exception` doesn't swallow it."""


class JobInterrupted(BaseException):
    """Raised inside a handler that still runs when the daemon's grace has ended."""


class OutcomeKind(str, Enum):
    """The label `outcome` of qd_job_attempts_total."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    LOST = "lost"
    REJECTED = "rejected"
    SNOOZED = "snoozed"
    RELEASED = "released"


class Reason(str, Enum):
    """Why a job is a dead letter: `qd_failed_jobs.reason`."""

    ERROR = "error"
    TIMEOUT = "timeout"
    CRASH = "crash"
    LOST = "lost"
    INTERRUPTED = "interrupted"
    REJECTED = "rejected"
    UNKNOWN_TYPE = "unknown_type"
    PAYLOAD = "payload"


@dataclass(slots=True)
class Outcome:
    """How one attempt ended; never changed (but not frozen: thousands a second are made).

    Attributes:
        kind: what is counted.
        reason: the dead letter's reason, should this attempt be the last.
        error: one or more lines of valid text, already cut to what the column takes.
        traceback: the same.
        delay: seconds that the handler asked for (Retry, Snooze), else None.
        result: what the handler returned, to be logged.
        seconds: how long the handler ran.
        signal: the one that killed its process, by name.
        entered: False where it is known that the handler was never entered: no attempt then, whatever the kind.
    """

    kind: OutcomeKind
    reason: Reason = Reason.ERROR
    error: str | None = None
    traceback: str | None = None
    delay: float | None = None
    result: str | None = None
    seconds: float = 0.0
    signal: str | None = None
    entered: bool = True


class Action(Enum):
    """What becomes of the row, each in one fenced transaction."""

    FINISH = "finish"  # the row is deleted
    RETRY = "retry"  # ready again after `delay`, the attempt stays spent
    RELEASE = "release"  # ready again after `delay`, the attempt is given back
    BURY = "bury"  # moved to qd_failed_jobs
    POSTPONE = "postpone"  # unknown type: RELEASE, or BURY once nobody has known it for long


@dataclass(slots=True)
class Settlement:
    """A row's end of claim, to be written by `Store.settle` under the claim's token; never changed, like Outcome.

    Attributes:
        delay: seconds from the database's now until it is due again (RETRY, RELEASE, POSTPONE).
        outcome: how the attempt ended; its error, traceback and seconds go into row and history.
    """

    job: ClaimedJob
    action: Action
    outcome: Outcome
    delay: float = 0.0


class Verdict(Enum):
    """What `Store.settle` found."""

    SETTLED = "settled"
    BURIED = "buried"  # a POSTPONE that became a dead letter
    LOST = "lost"  # the token no longer matched: nothing was written
