"""What happens in the daemon, worded once: log, metrics and (later) the console listen. Pure.

An event is a frozen dataclass; `NAME` is its log name (`noun.past_verb`), None for what only the
metrics want; `LEVEL` is the log level. Fields are logged by their own names. Payloads are never
in an event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Event:
    """The root; never published itself."""

    NAME: ClassVar[str | None] = None
    LEVEL: ClassVar[Level] = "info"


@dataclass(frozen=True, slots=True)
class DaemonStarted(Event):
    NAME: ClassVar[str | None] = "daemon.started"
    version: str
    config: str
    connector: str


@dataclass(frozen=True, slots=True)
class DaemonReady(Event):
    NAME: ClassVar[str | None] = "daemon.ready"
    server: str
    claim_path: str
    http: str


@dataclass(frozen=True, slots=True)
class ReloadApplied(Event):
    NAME: ClassVar[str | None] = "daemon.reload_applied"
    changed: str


@dataclass(frozen=True, slots=True)
class ReloadRefused(Event):
    NAME: ClassVar[str | None] = "daemon.reload_refused"
    LEVEL: ClassVar[Level] = "error"
    reason: str


@dataclass(frozen=True, slots=True)
class DaemonFailed(Event):
    """It can't start, or its main loop broke: the line that says why the process ends."""

    NAME: ClassVar[str | None] = "daemon.failed"
    LEVEL: ClassVar[Level] = "error"
    where: str
    error: str


@dataclass(frozen=True, slots=True)
class DaemonStopping(Event):
    NAME: ClassVar[str | None] = "daemon.stopping"
    reason: str
    grace: float
    running: int


@dataclass(frozen=True, slots=True)
class DaemonStopped(Event):
    NAME: ClassVar[str | None] = "daemon.stopped"
    seconds: float


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


@dataclass(frozen=True, slots=True)
class DatabaseLost(Event):
    NAME: ClassVar[str | None] = "database.lost"
    LEVEL: ClassVar[Level] = "warning"
    connection: str
    error: str


@dataclass(frozen=True, slots=True)
class DatabaseRestored(Event):
    NAME: ClassVar[str | None] = "database.restored"
    connection: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DatabaseErrorSeen(Event):
    """Metrics only. kind: the label of qd_database_errors_total."""

    kind: str


@dataclass(frozen=True, slots=True)
class Reconnected(Event):
    """Metrics only. One connection was opened again."""

    connection: str


@dataclass(frozen=True, slots=True)
class ClaimPathChosen(Event):
    NAME: ClassVar[str | None] = "database.claim_path_chosen"
    claim_path: str
    why: str


@dataclass(frozen=True, slots=True)
class WorkerReplaced(Event):
    NAME: ClassVar[str | None] = "worker.replaced"
    LEVEL: ClassVar[Level] = "warning"
    worker: str
    job_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class ChildrenFailing(Event):
    """Child processes for handlers can't be started: said once until they can, or the reason is another."""

    NAME: ClassVar[str | None] = "child.start_failed"
    LEVEL: ClassVar[Level] = "error"
    error: str


@dataclass(frozen=True, slots=True)
class ChildrenRestored(Event):
    """They can be started again."""

    NAME: ClassVar[str | None] = "child.start_restored"
    seconds: float


@dataclass(frozen=True, slots=True)
class WatchdogWithheld(Event):
    NAME: ClassVar[str | None] = "watchdog.withheld"
    LEVEL: ClassVar[Level] = "error"
    loop: str
    overdue: float


@dataclass(frozen=True, slots=True)
class Problem(Event):
    """Something odd that a person may want to know, where no other event fits."""

    NAME: ClassVar[str | None] = "daemon.problem_seen"
    LEVEL: ClassVar[Level] = "warning"
    where: str
    error: str


ENDINGS: tuple[type[AttemptEnded], ...] = (
    JobSucceeded, JobFailed, JobTimedOut, JobCrashed, JobRejected, JobReleased, JobSnoozed,
)  # fmt: skip

Listener = Callable[[Event], None]


class Events:
    """Hands each event to each listener, in the publisher's thread.

    A listener that raises is a bug, but must not cost a job: what it raised goes to
    `on_fault`, and the others are still called.
    """

    def __init__(self, *listeners: Listener, on_fault: Callable[[BaseException], None] | None = None) -> None:
        self._listeners = list(listeners)
        self._on_fault = on_fault

    def listen(self, listener: Listener) -> None:
        """Adds a listener; it sees what is published from now on."""
        self._listeners = [*self._listeners, listener]

    def publish(self, event: Event) -> None:
        """Tells all listeners of one event."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # said to on_fault: see the class
                if self._on_fault is not None:
                    self._on_fault(error)
