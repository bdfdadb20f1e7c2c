"""What happens to jobs and to the leases on them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qd.events.root import Event, Level


@dataclass(frozen=True, slots=True)
class JobsClaimed(Event):
    """Metrics only. One claim, also an empty one (jobs=0), and how long it took."""

    queue: str
    jobs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class JobStarted(Event):
    NAME: ClassVar[str | None] = "job.started"
    job_id: int
    queue: str
    type: str
    attempt: int
    wait: float
    """Seconds from due to start."""


@dataclass(frozen=True, slots=True)
class AttemptEnded(Event):
    """A settled attempt. Subclasses only differ by name, level and outcome."""

    OUTCOME: ClassVar[str] = ""
    job_id: int
    queue: str
    type: str
    attempt: int
    seconds: float


@dataclass(frozen=True, slots=True)
class JobSucceeded(AttemptEnded):
    NAME: ClassVar[str | None] = "job.succeeded"
    OUTCOME: ClassVar[str] = "succeeded"
    result: str | None = None


@dataclass(frozen=True, slots=True)
class JobFailed(AttemptEnded):
    NAME: ClassVar[str | None] = "job.failed"
    LEVEL: ClassVar[Level] = "warning"
    OUTCOME: ClassVar[str] = "failed"
    error: str = ""
    retry_in: float | None = None
    """Seconds to the next attempt; None: there is none."""


@dataclass(frozen=True, slots=True)
class JobTimedOut(JobFailed):
    NAME: ClassVar[str | None] = "job.timed_out"
    OUTCOME: ClassVar[str] = "timeout"


@dataclass(frozen=True, slots=True)
class JobCrashed(JobFailed):
    NAME: ClassVar[str | None] = "job.crashed"
    OUTCOME: ClassVar[str] = "crashed"
    signal: str | None = None
    """The one that killed it, by name; None: it ended by itself."""


@dataclass(frozen=True, slots=True)
class JobRejected(AttemptEnded):
    """Metrics only: its log line is the job.dead_lettered that follows."""

    OUTCOME: ClassVar[str] = "rejected"


@dataclass(frozen=True, slots=True)
class JobReleased(AttemptEnded):
    """Given back with its attempt: a stop, a batch that waited too long, an unknown type.

    `ran` is False where the handler never started.
    """

    NAME: ClassVar[str | None] = "job.released"
    OUTCOME: ClassVar[str] = "released"
    reason: str = ""
    ran: bool = False


@dataclass(frozen=True, slots=True)
class JobSnoozed(AttemptEnded):
    NAME: ClassVar[str | None] = "job.snoozed"
    OUTCOME: ClassVar[str] = "snoozed"
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class JobDeadLettered(Event):
    NAME: ClassVar[str | None] = "job.dead_lettered"
    LEVEL: ClassVar[Level] = "error"
    job_id: int
    queue: str
    type: str
    attempt: int
    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class JobNotRun(Event):
    """For who waits for it: a claimed job is handed back, since its handler can't be entered here and now."""

    job_id: int
    why: str


@dataclass(frozen=True, slots=True)
class TypeUnknown(Event):
    """Nobody here has a handler; one line a minute for each queue and type."""

    NAME: ClassVar[str | None] = "job.type_unknown"
    LEVEL: ClassVar[Level] = "warning"
    job_id: int
    queue: str
    type: str
    hint: str


@dataclass(frozen=True, slots=True)
class LeaseLostSeen(Event):
    """Our lease on a job went to another: said once, nothing of it is settled."""

    NAME: ClassVar[str | None] = "lease.lost"
    LEVEL: ClassVar[Level] = "warning"
    job_id: int
    queue: str
    type: str
    attempt: int
    token: str
    seen_by: str
    """`renewal` or `settle`."""


@dataclass(frozen=True, slots=True)
class LeasesLeft(Event):
    """A stop ended with jobs whose end or hand-back could not be written, for want of a database."""

    NAME: ClassVar[str | None] = "lease.left_behind"
    LEVEL: ClassVar[Level] = "warning"
    jobs: int
    hint: str


@dataclass(frozen=True, slots=True)
class LeasesExtended(Event):
    """Metrics only. One renewal; result is ok, lost or error."""

    result: str
    leases: int


@dataclass(frozen=True, slots=True)
class StaleReclaimed(Event):
    """A stale row was taken back from an owner that is gone."""

    NAME: ClassVar[str | None] = "stale.reclaimed"
    LEVEL: ClassVar[Level] = "warning"
    job_id: int
    queue: str
    type: str
    attempt: int
    owner: str
    dead_lettered: bool


ENDINGS: tuple[type[AttemptEnded], ...] = (
    JobSucceeded, JobFailed, JobTimedOut, JobCrashed, JobRejected, JobReleased, JobSnoozed,
)  # fmt: skip
