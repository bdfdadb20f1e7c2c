"""What a job is: the row as it was claimed, and the view of it that a handler gets. Pure."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from qd.clock import monotonic
from qd.errors import LeaseLost

PRIORITIES: dict[str, int] = {"urgent": 0, "high": 1, "normal": 2, "low": 3}
"""Names of the priorities; the number is what `qd_jobs.priority` holds, 0 is served first."""

NAME_PATTERN = r"[A-Za-z0-9_.:-]+"
"""What a queue or a type may be named; the schema's CHECKs hold the same."""

OWN_PREFIX = "qd."
"""Types that begin so are qd's own: no user may enqueue one."""


class OwnType(str):
    """The name of a type that is qd's own. Only as one of these it is let in where users' names come in too."""

    __slots__ = ()


def plain(name: str) -> str:
    """The text itself of any kind of `str`: a member of an Enum is one, but shows as `Class.MEMBER`.

    What is no `str` comes back as it is, to be refused by who checks it.
    """
    return str.__str__(name) if isinstance(name, str) else name


class Loss:
    """Whether a lease is lost. An Event is made of it only for who asks for one: few handlers do, and it is dear."""

    __slots__ = ("_event", "_happened")
    _making = threading.Lock()

    def __init__(self) -> None:
        self._happened = False
        self._event: threading.Event | None = None

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._happened

    def set(self) -> None:
        """It has, for good."""
        self._happened = True  # before the look for an event, as `event` looks here after it has made one
        if self._event is not None:
            self._event.set()

    def event(self) -> threading.Event:
        """The Event that is set the moment it happens; the same one each time."""
        with self._making:
            if self._event is None:
                self._event = threading.Event()
                if self._happened:
                    self._event.set()
            return self._event


@dataclass(slots=True)
class ClaimedJob:
    """A row of qd_jobs as a claim took it; never changed (but not frozen: thousands a second are made).

    Attributes:
        attempt: the number of this attempt, from 1; the claim has already spent it.
        max_attempts: the row's own limit, or None where the queue's holds.
        crashes: runs of this job that ended without a word.
        token: the claim's `reserved_by`; no other claim ever has the same.
        waited: seconds between the moment it was due and its claim, by the database's clock.
        claimed_at: monotonic seconds taken BEFORE the claim was sent, so never too late.
        lease: seconds that the claim holds without renewal.
    """

    id: int
    queue: str
    type: str
    payload: str | bytes
    priority: int
    attempt: int
    max_attempts: int | None
    crashes: int
    created_at: datetime
    token: str
    waited: float
    claimed_at: float
    lease: float


@dataclass(slots=True)
class NewJob:
    """A job to be enqueued with `enqueue_many`; the fields are those of `qd.enqueue`.

    Attributes:
        delay: seconds, or a timedelta, from the database's now.
        priority: a name of PRIORITIES or its number.
        max_attempts: None takes the queue's.
    """

    type: str
    payload: Any = None
    queue: str = "default"
    delay: float | timedelta = 0
    priority: str | int = "normal"
    unique_key: str | None = None
    max_attempts: int | None = None


@dataclass(eq=False)
class Job:
    """What a handler is given. Valid only while the handler runs.

    Attributes:
        payload: the decoded JSON value.
        attempt: 1 for the first run.
        max_attempts: the limit that holds for this job.
        enqueued_at: when it was enqueued, UTC.
        token: the claim's `reserved_by`, a fence for effects elsewhere.
    """

    id: int
    queue: str
    type: str
    payload: Any
    attempt: int
    max_attempts: int
    priority: int
    enqueued_at: datetime
    token: str
    deadline: float = field(repr=False)
    finish: Callable[[Any, Job], bool] = field(repr=False)
    loss: Loss = field(default_factory=Loss, repr=False)
    completed: bool = field(default=False, repr=False)

    @property
    def lost(self) -> threading.Event:
        """Set the moment the lease is known to be lost: stop, nothing you do will be settled."""
        return self.loss.event()

    def remaining(self) -> float:
        """Seconds until the job's time-out; 0.0 when it has passed."""
        return max(0.0, self.deadline - monotonic())

    def complete(self, cursor: Any) -> None:
        """Finishes the job inside the handler's own transaction on the same server.

        Effects and completion commit together or not at all. Needs READ COMMITTED, or to be the
        transaction's first statement.

        Args:
            cursor: a DB-API cursor of the transaction; qd neither commits nor rolls back.

        Raises:
            LeaseLost: the job isn't ours any more; roll back.
        """
        if not self.finish(cursor, self):
            raise LeaseLost(f"job {self.id} is no longer ours: roll back, its effects belong to another run")
        self.completed = True
