"""What a bench has found, and its stable keys as JSON. Pure, but for the values of the store.

May import: the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

from qd.bench.plan import Plan


@dataclass(frozen=True, slots=True)
class Rate:
    """Jobs a second, by the median of several rounds.

    Attributes:
        jobs: of one round.
        rounds: jobs a second in each, in order.
    """

    jobs: int
    rounds: tuple[float, ...]

    @property
    def rate(self) -> float:
        """The median."""
        return median(self.rounds)

    def as_json(self) -> dict[str, Any]:
        """Its stable keys."""
        return {"rate": round(self.rate, 1), "jobs": self.jobs, "rounds": [round(rate, 1) for rate in self.rounds]}


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from a job's COMMIT to its start.

    Attributes:
        seconds: of each job, in order.
    """

    seconds: tuple[float, ...]

    def at(self, share: float) -> float:
        """That share of all were at most so late, by the nearest rank; seconds."""
        ordered = sorted(self.seconds)
        return ordered[max(0, ceil(share * len(ordered)) - 1)]

    def as_json(self) -> dict[str, Any]:
        """Its stable keys; milliseconds."""
        found = {"p50_ms": self.at(0.5), "p99_ms": self.at(0.99), "max_ms": self.at(1.0)}
        return {"jobs": len(self.seconds), **{name: round(seconds * 1000, 3) for name, seconds in found.items()}}


@dataclass(frozen=True, slots=True)
class Looked:
    """Rows that the server read for one claim, or one look, by the median of several.

    Attributes:
        asked: jobs that were asked for; 0: a look, which takes none.
        claimed: jobs that came.
        rows: rows and index entries that the server read (Handler_read_*).
    """

    asked: int
    claimed: int
    rows: float

    def as_json(self) -> dict[str, Any]:
        """Its stable keys."""
        return {"asked": self.asked, "claimed": self.claimed, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under which all of it was measured.

    Attributes:
        place: where the database is, without secrets.
        local: whether that is this machine, by its address.
        settings: what the database does to keep a commit, and the isolation of qd's sessions, by its own names.
        load: the machine's load averages of 1, 5 and 15 minutes before; empty where it has none.
        jobs_before: jobs that were in the database, in any queue.
        failed_before: dead letters that were.
        poll: least and most seconds between two looks of an idle daemon.
    """

    qd: str
    python: str
    server: str
    connector: str
    claim_path: str
    place: str
    local: bool
    settings: Mapping[str, str]
    cores: int
    load: Sequence[float]
    jobs_before: int
    failed_before: int
    poll: tuple[float, float]

    def as_json(self, plan: Plan) -> dict[str, Any]:
        """Its stable keys, the plan's among them."""
        return {
            "qd": self.qd,
            "python": self.python,
            "server": self.server,
            "connector": self.connector,
            "claim_path": self.claim_path,
            "place": self.place,
            "local": self.local,
            "settings": dict(self.settings),
            "cores": self.cores,
            "load_before": [round(load, 2) for load in self.load],
            "jobs_before": self.jobs_before,
            "failed_before": self.failed_before,
            "daemons": plan.daemons,
            "executor": plan.executor,
            "threads": plan.threads,
            "batch": plan.batch,
            "poll": list(self.poll),
            "jobs": plan.jobs,
            "rounds": plan.rounds,
            "daemon": DAEMON,
        }


DAEMON = "a process of its own with the code of `qd run`; log, metrics, polls and leases as shipped"
"""What has worked, in words."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round took.

    Attributes:
        singly, bulk: jobs a second that were enqueued so.
        drain: jobs a second from the first claim to the end of the last job.
        claims, statements, commits: of all daemons together, for one job.
        peak: bytes of memory that a daemon had at its most; None where that isn't told.
    """

    singly: float
    bulk: float
    drain: float
    claims: float
    statements: float
    commits: float
    peak: int | None


@dataclass(frozen=True, slots=True)
class Result:
    """All that a bench has found.

    Attributes:
        pickup: by how the job was enqueued: `client` wakes the daemon, `insert` is found by its polls.
        looked: rows read by state of the queue; None where the database doesn't tell.
        not_looked: why it doesn't.
    """

    plan: Plan
    conditions: Conditions
    rounds: Sequence[Round]
    pickup: Mapping[str, Latency]
    looked: Mapping[str, Looked] | None
    not_looked: str | None

    def singly(self) -> Rate:
        """Enqueued one by one."""
        return Rate(self.plan.singly, tuple(one.singly for one in self.rounds))

    def bulk(self) -> Rate:
        """Enqueued in bulk."""
        return Rate(self.plan.jobs - self.plan.singly, tuple(one.bulk for one in self.rounds))

    def drain(self) -> Rate:
        """Drained."""
        return Rate(self.plan.jobs, tuple(one.drain for one in self.rounds))

    def per_job(self) -> dict[str, float]:
        """Claims, statements and commits for one job, by the median of the rounds."""
        return {name: median(getattr(one, name) for one in self.rounds) for name in ("claims", "statements", "commits")}

    def peak(self) -> int | None:
        """Bytes that a daemon had at its most, in any round."""
        return max((one.peak for one in self.rounds if one.peak is not None), default=None)

    def as_json(self) -> dict[str, Any]:
        """The stable keys of `qd bench --json`."""
        looked = self.looked
        return {
            "conditions": self.conditions.as_json(self.plan),
            "enqueue": {"single": self.singly().as_json(), "bulk": self.bulk().as_json()},
            "drain": {**self.drain().as_json(), "start_included": False},
            "pickup": {way: latency.as_json() for way, latency in self.pickup.items()},
            "per_job": {name: round(value, 5) for name, value in self.per_job().items()},
            "rows_read": None if looked is None else {state: one.as_json() for state, one in looked.items()},
            "rows_read_missing": self.not_looked,
            "memory": {"daemon_peak_bytes": self.peak()},
        }
