"""The values that pass between a database and the rest of qd. Pure.

May import: nothing of qd.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Literal, NamedTuple

STATES = ("ready", "delayed", "reserved", "stale", "blocked")
"""The states of a row of qd_jobs: what `JobRow.state` says and `Filter.state` may ask for."""

POSITION_COUNTED = 10_000
"""How far `AdminStore.position` counts."""

SEEN_WITHIN = 60
"""Seconds since its last word for which a daemon counts as running."""


ANNOUNCE_EVERY = 10.0
"""Seconds between two words of a daemon in qd_daemons."""

SILENT_AFTER = 1.5 * ANNOUNCE_EVERY
"""Seconds since its last word after which a daemon is told as silent: it is dead, stopped, or can't write."""


class ClaimPath(str, Enum):
    """How rows are claimed; the label `claim_path` of qd_build_info."""

    SKIP_LOCKED = "skip_locked"
    CONDITIONAL = "conditional"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Who answers.

    Attributes:
        server: for people, e.g. `MariaDB 10.11.14`.
        connector: `c`, `pure` or `sqlite`.
        claim_path: None while it isn't known yet.
    """

    server: str
    connector: str
    claim_path: ClaimPath | None


class Spot(NamedTuple):
    """A place in a lane's order: the due time as the database writes it, and the row's id."""

    due: str
    id: int


@dataclass(frozen=True, slots=True)
class Look:
    """What one look saw.

    Attributes:
        hits: for each queue the priorities that have a ready row, with the first one's spot.
            Paused queues have none.
        paused: names of the queues that are paused.
        now: the database's now, as it writes a due time.
    """

    hits: Mapping[str, Mapping[int, Spot]]
    paused: frozenset[str]
    now: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What to claim.

    Attributes:
        queue: its name.
        limit: rows at most, >= 1.
        lease: seconds.
        token: written to `reserved_by`; never used before.
        max_attempts: the queue's policy, for rows that have none of their own.
        priorities: those to look at, in order; a hit's keys, or all.
        start: the first ready row that a look saw of the first of them: the claim begins there where the lane has no
            mark, so that it doesn't walk, under locks, what may lie dead below.
    """

    queue: str
    limit: int
    lease: float
    token: str
    max_attempts: int
    priorities: tuple[int, ...] = (0, 1, 2, 3)
    start: Spot | None = None


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease to be renewed: `seconds` from the database's now."""

    job_id: int
    token: str
    seconds: float


class Renewal(Enum):
    """What a renewal found for one lease."""

    RENEWED = "renewed"
    LOCKED = "locked"  # somebody has the row locked; its token is still ours: again later
    LOST = "lost"  # another token, or none
    GONE = "gone"  # no such row


@dataclass(frozen=True, slots=True)
class StaleRow:
    """A reserved row whose lease has run out. Equal values at two looks: nobody touched it."""

    job_id: int
    queue: str
    type: str
    token: str
    due: str
    attempts: int


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Counts of one queue, posts left out."""

    queue: str
    ready: int = 0
    delayed: int = 0
    reserved: int = 0
    stale: int = 0
    failed: int = 0
    blocked: int = 0
    oldest_ready_age: float = 0.0
    """Seconds that the oldest ready row has been due; 0.0 where none is."""
    paused: bool = False

    @property
    def jobs(self) -> int:
        """Rows of qd_jobs: waiting or running, whatever their state."""
        return self.ready + self.delayed + self.reserved + self.stale + self.blocked

    @property
    def waiting(self) -> int:
        """Rows that wait for a thread, now or once they are due."""
        return self.ready + self.delayed + self.stale

    def plus(self, other: QueueDepth) -> QueueDepth:
        """Both, as one under this one's name. The order in which several are put together doesn't matter.

        Together they are paused if one is and no job waits in one that isn't: a paused queue must keep no other
        from being missed. The age is that of what isn't paused, or else of what is: jobs that a person holds back
        must not pass for late, and must not make another's look older than they are.
        """
        held = (self.paused or other.paused) and not any(one.waiting and not one.paused for one in (self, other))
        return QueueDepth(
            self.queue,
            ready=self.ready + other.ready,
            delayed=self.delayed + other.delayed,
            reserved=self.reserved + other.reserved,
            stale=self.stale + other.stale,
            failed=self.failed + other.failed,
            blocked=self.blocked + other.blocked,
            oldest_ready_age=max(one.oldest_ready_age for one in (self, other) if held or not one.paused),
            paused=held,
        )


@dataclass(frozen=True, slots=True)
class Count:
    """The counts of known queues.

    Attributes:
        depths: theirs, and the sum of all others under `_other`.
        others: names of others that have jobs: of each lane the first and the last, so a few of many.
    """

    depths: list[QueueDepth]
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DaemonRow:
    """A row of qd_daemons; `seen_ago`: seconds since its last word, by the database's clock."""

    id: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    started_at: datetime | None = None
    seen_at: datetime | None = None
    seen_ago: float = 0.0

    @property
    def silent(self) -> bool:
        """Whether its next word is overdue."""
        return self.seen_ago > SILENT_AFTER


@dataclass(frozen=True, slots=True)
class JobRow:
    """A row of qd_jobs as people see it. `state`: one of STATES."""

    id: int
    queue: str
    type: str
    payload: str
    priority: int
    state: str
    attempts: int
    crashes: int
    max_attempts: int | None
    available_at: datetime
    reserved_at: datetime | None
    reserved_by: str | None
    unique_key: str | None
    last_error: str | None
    history: list[dict[str, Any]]
    created_at: datetime
    payload_bytes: int = 0
    """The payload's whole size; a list fetches only the beginning of a huge one."""


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A row of qd_failed_jobs as people see it. `id` is the dead letter's, `job_id` the job's."""

    id: int
    job_id: int
    queue: str
    type: str
    payload: str
    priority: int
    attempts: int
    max_attempts: int | None
    unique_key: str | None
    history: list[dict[str, Any]]
    created_at: datetime
    reason: str
    error: str | None
    traceback: str | None
    reserved_by: str | None
    failed_at: datetime
    payload_bytes: int = 0
    """The payload's whole size; a list fetches only the beginning of a huge one."""
    others: int = 0
    """Older dead letters of the same job id (after a restore); only `failed` counts them."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows a verb means; None means any. `after` is the last id of the page before."""

    queue: str | None = None
    type: str | None = None
    state: str | None = None
    reason: str | None = None
    older_than: float | None = None
    """Seconds since failed_at (dead letters only)."""
    after: int | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check looked at.

    Attributes:
        level: `ok`, `warn`, or `FAIL` where qd can't work as it is.
        what: a word or two.
        detail: one line: what is so, and what to do about it.
    """

    level: Literal["ok", "warn", "FAIL"]
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class Demand:
    """What a configuration asks of its server.

    Attributes:
        connections: that one daemon opens at most.
        statement_timeout: seconds that qd waits for an answer.
    """

    connections: int
    statement_timeout: float


@dataclass(frozen=True, slots=True)
class Holder:
    """A thread of a process that holds jobs.

    Attributes:
        name: `host:pid:nonce` of the process, how the tokens of its claims begin.
        jobs: that it holds, begun or not.
        longest: seconds since the claim of the oldest of them.
        thread: its name, that of its worker with a number: `mails-2`.
        queues: of these jobs.
    """

    name: str
    jobs: int
    longest: float
    thread: str = ""
    queues: frozenset[str] = frozenset()


@dataclass(slots=True)
class SchemaState:
    """What `qd_schema` says; version 0: no schema at all."""

    version: int
    compatible_from: int
    pending: list[str] = field(default_factory=list)
