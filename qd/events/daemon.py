"""What happens to the daemon, its threads and its children. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qd.events.root import Event, Level


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
class ClaimsStalled(Event):
    """Nothing can be claimed though the database answers: said once until claims go on."""

    NAME: ClassVar[str | None] = "claims.stalled"
    LEVEL: ClassVar[Level] = "warning"
    error: str


@dataclass(frozen=True, slots=True)
class ClaimsResumed(Event):
    """They go on."""

    NAME: ClassVar[str | None] = "claims.resumed"
    seconds: float


@dataclass(frozen=True, slots=True)
class LooksCutShort(Event):
    """A full look, which finds what was committed late, didn't end within its time limit: said once until one does."""

    NAME: ClassVar[str | None] = "looks.cut_short"
    LEVEL: ClassVar[Level] = "warning"
    seconds: float
    error: str


@dataclass(frozen=True, slots=True)
class LooksRestored(Event):
    """One does."""

    NAME: ClassVar[str | None] = "looks.restored"
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
