"""What happens in the daemon, worded once: log, metrics and (later) the console listen. Pure.

An event is a frozen dataclass; `NAME` is its log name (`noun.past_verb`), None for what only the
metrics want; `LEVEL` is the log level. Fields are logged by their own names. Payloads are never
in an event.
"""

from __future__ import annotations

from qd.events.daemon import (
    ChildrenFailing,
    ChildrenRestored,
    ClaimsResumed,
    ClaimsStalled,
    DaemonFailed,
    DaemonReady,
    DaemonStarted,
    DaemonStopped,
    DaemonStopping,
    Problem,
    ReloadApplied,
    ReloadRefused,
    WatchdogWithheld,
    WorkerReplaced,
)
from qd.events.database import (
    ClaimPathChosen,
    DatabaseErrorSeen,
    DatabaseLost,
    DatabaseRestored,
    Reconnected,
    TransactionEnded,
)
from qd.events.jobs import (
    ENDINGS,
    AttemptEnded,
    JobCrashed,
    JobDeadLettered,
    JobFailed,
    JobNotRun,
    JobRejected,
    JobReleased,
    JobsClaimed,
    JobSnoozed,
    JobStarted,
    JobSucceeded,
    JobTimedOut,
    LeaseLostSeen,
    LeasesExtended,
    LeasesLeft,
    StaleReclaimed,
    TypeUnknown,
)
from qd.events.root import (
    Event,
    Events,
    Level,
    Listener,
)

__all__ = [
    "ENDINGS",
    "AttemptEnded",
    "ChildrenFailing",
    "ChildrenRestored",
    "ClaimPathChosen",
    "ClaimsResumed",
    "ClaimsStalled",
    "DaemonFailed",
    "DaemonReady",
    "DaemonStarted",
    "DaemonStopped",
    "DaemonStopping",
    "DatabaseErrorSeen",
    "DatabaseLost",
    "DatabaseRestored",
    "Event",
    "Events",
    "JobCrashed",
    "JobDeadLettered",
    "JobFailed",
    "JobNotRun",
    "JobRejected",
    "JobReleased",
    "JobSnoozed",
    "JobStarted",
    "JobSucceeded",
    "JobTimedOut",
    "JobsClaimed",
    "LeaseLostSeen",
    "LeasesExtended",
    "LeasesLeft",
    "Level",
    "Listener",
    "Problem",
    "Reconnected",
    "ReloadApplied",
    "ReloadRefused",
    "StaleReclaimed",
    "TransactionEnded",
    "TypeUnknown",
    "WatchdogWithheld",
    "WorkerReplaced",
]
