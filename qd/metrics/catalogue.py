"""Every metric of qd: its name, type, labels and help, in one place.

The page `docs/metrics.md` is compared with this table by a test; so are the alert rules and the
dashboard. A metric that isn't here doesn't exist. `OTHER` stands for every queue and type that the
configuration and the registry don't know. May import: config (which refuses that name), outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from qd.config.limits import OTHER as OTHER
from qd.outcome import OutcomeKind, Reason

OUTCOMES = tuple(kind.value for kind in OutcomeKind)
REASONS = tuple(reason.value for reason in Reason)
STATES = ("ready", "delayed", "reserved", "stale", "failed")
WORKER_STATES = ("idle", "busy", "backoff")
DAEMON_STATES = ("ready", "unready", "stopping")
RENEWALS = ("ok", "lost", "error")
ERROR_KINDS = ("lost", "timeout", "deadlock", "lock_wait", "read_only", "refused", "other")

EXEMPLAR = "job_id"
"""The label of exemplars: who sees a slow bucket can look at a job that was in it."""

DURATIONS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0,
)  # fmt: skip
"""Bucket bounds in seconds: a job of two hours is told from one of ten seconds."""

WAITS = (*DURATIONS, 21600.0, 86400.0)
"""A backlog of six hours is told from one of four, and may be a day old."""

CLAIMS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
ATTEMPTS = (1.0, 2.0, 3.0, 5.0, 10.0, 25.0)


@dataclass(frozen=True, slots=True)
class Spec:
    """One metric.

    Attributes:
        shared: the same from every daemon, for it is read from the rows: use `max`, not `sum`.
        buckets: the bounds of a histogram.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    shared: bool = False
    buckets: tuple[float, ...] = ()


QUEUE_JOBS = Spec(
    "qd_queue_jobs", "gauge", ("queue", "state"), "Rows by state, as the database's clock sees them", shared=True
)
OLDEST_READY = Spec(
    "qd_queue_oldest_ready_age_seconds", "gauge", ("queue",),
    "Seconds that the oldest ready job has been due; 0 where none is", shared=True,
)  # fmt: skip
PAUSED = Spec("qd_queue_paused", "gauge", ("queue",), "1 while the queue is paused", shared=True)
LAST_REFRESH = Spec(
    "qd_queue_stats_last_refresh_timestamp_seconds", "gauge", (),
    "Unix time at which this daemon last counted the rows; 0: never",
)  # fmt: skip
REFRESH_INTERVAL = Spec(
    "qd_queue_stats_refresh_interval_seconds", "gauge", (),
    "Seconds between two counts of the rows, stretched so that they cost at most 2 % of the time",
)  # fmt: skip

CLAIMED = Spec("qd_jobs_claimed_total", "counter", ("queue",), "Jobs claimed")
JOB_ATTEMPTS = Spec(
    "qd_job_attempts_total", "counter", ("queue", "job_type", "outcome"), "Attempts that ended, by how they ended"
)
DEAD_LETTERED = Spec(
    "qd_jobs_dead_lettered_total", "counter", ("queue", "reason"), "Jobs moved to the dead letters, by reason"
)
RECLAIMED = Spec("qd_jobs_reclaimed_total", "counter", ("queue",), "Stale rows taken back from an owner that is gone")
DURATION = Spec(
    "qd_job_duration_seconds", "histogram", ("job_type",), "Seconds that a handler ran, however it ended",
    buckets=DURATIONS,
)  # fmt: skip
WAIT = Spec(
    "qd_job_wait_seconds", "histogram", ("queue",), "Seconds from the moment a job was due to its start",
    buckets=WAITS,
)  # fmt: skip
ATTEMPTS_PER_JOB = Spec(
    "qd_attempts_per_job", "histogram", ("queue",), "Attempts that a finished job took", buckets=ATTEMPTS
)
CLAIM_DURATION = Spec(
    "qd_claim_duration_seconds", "histogram", ("queue",),
    "Seconds that one claim took, an empty one too; with the ends that share its transaction", buckets=CLAIMS,
)  # fmt: skip
EXTENSIONS = Spec("qd_lease_extensions_total", "counter", ("result",), "Lease renewals, one for each lease, by result")
WORKERS = Spec("qd_workers", "gauge", ("worker", "state"), "Threads of a worker by what they do")
QUEUE_WORKERS = Spec("qd_queue_workers", "gauge", ("queue",), "Threads that serve the queue")
DAEMON_STATE = Spec(
    "qd_daemon_state", "gauge", ("state",),
    "1 at what the daemon is, as /readyz says: ready, unready (it can't claim) or stopping",
)  # fmt: skip
DATABASE_UP = Spec("qd_database_up", "gauge", (), "1 while the database answers")
DATABASE_ERRORS = Spec("qd_database_errors_total", "counter", ("kind",), "Errors of the database by kind")
RECONNECTS = Spec("qd_database_reconnects_total", "counter", (), "Connections that were opened again")
STATEMENTS = Spec("qd_database_statements_total", "counter", (), "Statements that were sent, COMMITs counted")
COMMITS = Spec("qd_database_commits_total", "counter", (), "Transactions that were committed")
OLDEST_RUNNING = Spec(
    "qd_oldest_running_job_seconds", "gauge", ("queue",), "Seconds that the longest running job runs; 0 where none does"
)
RELOAD_OK = Spec(
    "qd_config_last_reload_successful", "gauge", (), "1 unless the last reload of the configuration was refused"
)
BUILD_INFO = Spec(
    "qd_build_info", "gauge", ("version", "python", "connector", "claim_path", "server"),
    "Always 1; what runs here is in the labels",
)  # fmt: skip

CATALOGUE: tuple[Spec, ...] = (
    QUEUE_JOBS, OLDEST_READY, PAUSED, LAST_REFRESH, REFRESH_INTERVAL,
    CLAIMED, JOB_ATTEMPTS, DEAD_LETTERED, RECLAIMED, DURATION, WAIT, ATTEMPTS_PER_JOB, CLAIM_DURATION,
    EXTENSIONS, WORKERS, QUEUE_WORKERS, DAEMON_STATE, DATABASE_UP, DATABASE_ERRORS, RECONNECTS, STATEMENTS,
    COMMITS, OLDEST_RUNNING,
    RELOAD_OK, BUILD_INFO,
)  # fmt: skip
"""All of them, in the order of the page."""
