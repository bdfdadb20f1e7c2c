"""What the rest of qd asks of a database: the Store and Database protocols.

All SQL lives in this package. A `Store` belongs to one thread and owns one named connection,
which it opens at the first call and again after every loss; each call is one transaction that is
committed or rolled back before the call returns. Every call ends in a bounded time
(`database.statement_timeout` a statement) and raises only `qd.errors.StoreError`.
The values of these calls are those of `qd.store.values`, which are to be had here too.
May import: admin_store, values, the pure modules.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from qd.job import ClaimedJob, Job
from qd.outcome import Settlement, Verdict
from qd.store.admin_store import AdminStore
from qd.store.values import (
    ANNOUNCE_EVERY,
    POSITION_COUNTED,
    SEEN_WITHIN,
    STATES,
    Claim,
    ClaimPath,
    Count,
    DaemonRow,
    Demand,
    FailedRow,
    Filter,
    Finding,
    HeldLease,
    Holder,
    JobRow,
    Look,
    QueueDepth,
    Renewal,
    SchemaState,
    ServerInfo,
    Spot,
    StaleRow,
)

__all__ = [
    "ANNOUNCE_EVERY",
    "POSITION_COUNTED",
    "SEEN_WITHIN",
    "STATES",
    "AdminStore",
    "Claim",
    "ClaimPath",
    "Count",
    "DaemonRow",
    "Database",
    "Demand",
    "FailedRow",
    "Filter",
    "Finding",
    "Finisher",
    "FullStore",
    "HeldLease",
    "Holder",
    "JobRow",
    "Look",
    "QueueDepth",
    "Renewal",
    "SchemaState",
    "ServerInfo",
    "Spot",
    "StaleRow",
    "Store",
]


class Store(Protocol):
    """One thread's way to the rows. See the module for what holds for every call."""

    name: str

    def look(self, queues: Sequence[str], *, full: bool) -> Look:
        """ONE non-locking statement: which lanes of these queues have a ready row, which are paused.

        A quick look begins at each lane's low watermark (never above now - 2 s); a full look has
        no lower bound. Rows found below a mark set it back.
        """
        ...

    def claim(self, claim: Claim) -> list[ClaimedJob]:
        """Takes up to `limit` ready rows of the first priority that has any, committed.

        Each row's attempts are raised, its lease runs. Rows locked by others are passed over.
        A row on its last attempt or with crashes behind it comes alone.
        After a `ConnectionLost` with `outcome_unknown` call `resolve` until it returns.
        """
        ...

    def resolve(self) -> None:
        """Gives back, uncounted, what a claim of unknown outcome may have taken; asks nothing if there is no doubt."""
        ...

    def settle(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        """Ends claims, fenced by each job's token, all in one transaction; verdicts in order.

        After a `ConnectionLost` with `outcome_unknown` call it again with the same settlements:
        what stood already is recognised and answered SETTLED (or BURIED), once.
        """
        ...

    def turn_over(
        self, settlements: Sequence[Settlement], claim: Claim
    ) -> tuple[list[Verdict], list[ClaimedJob] | None]:
        """`settle` and `claim` in one transaction, with one COMMIT; all of it is done or nothing.

        Where they can't be done together (an end isn't ours to write any more, a server whose claims are
        several transactions) the ends alone are written: the jobs are None, and `claim` is to be called.

        Raises:
            StoreError: call `settle` with the same settlements, then `resolve`: an outcome that is unknown is
                found out for both halves, each by its tokens.
        """
        ...

    def renew(self, leases: Sequence[HeldLease]) -> list[Renewal]:
        """Renews what isn't locked by others; results in order. Has no condition on time."""
        ...

    def stale(self, queues: Sequence[str], limit: int) -> list[StaleRow]:
        """Reserved rows of these queues whose lease has run out; non-locking."""
        ...

    def free(self, rows: Sequence[StaleRow]) -> set[StaleRow]:
        """Those of these rows that nobody has locked: where somebody has, their owner can't renew either."""
        ...

    def reclaim(self, row: StaleRow, max_attempts: int) -> Verdict:
        """Takes one stale row back if token and due time are still those of `row`.

        SETTLED: ready again, crashes + 1, history has a `lost` entry. BURIED: it had spent its
        attempts: dead letter with reason `lost`. LOST: changed or locked meanwhile, nothing done.
        """
        ...

    def depths(self) -> list[QueueDepth]:
        """Counts per queue, for every queue that has rows, dead letters or a row in qd_queues."""
        ...

    def count(self, known: Collection[str]) -> Count:
        """The same for these queues; the server adds up all others."""
        ...

    def ensure_posts(self, queues: Sequence[str]) -> int:
        """Puts back missing or moved posts; how many. 0 where the store needs none."""
        ...

    def announce(self, daemon: DaemonRow, age: float = 0.0) -> None:
        """Writes this daemon's row of qd_daemons, seen now; forgets daemons unseen for a day.

        Args:
            age: seconds since its process began; a reload makes another row, and no younger daemon.
        """
        ...

    def withdraw(self, daemon_id: str) -> None:
        """Removes this daemon's row."""
        ...

    def purge_failed(self, older_than: float, limit: int) -> int:
        """Deletes up to `limit` dead letters that failed longer ago than this (seconds); how many."""
        ...

    def close(self) -> None:
        """Closes the connection, in a bounded time; the next call would open a new one."""
        ...


class Finisher(Protocol):
    """The fenced finish inside a handler's own transaction, on a cursor that isn't ours."""

    def __call__(self, cursor: Any, job: Job) -> bool:
        """Deletes the row under the job's token; False: it no longer matches."""
        ...


class FullStore(Store, AdminStore, Protocol):
    """Both: what every store offers."""


class Database(Protocol):
    """The configured database: opens stores, knows the server, keeps what stores share.

    Shared between threads: low watermarks, the claim path, the record of outages.
    """

    def store(self, name: str) -> FullStore:
        """A store with a connection of its own, named for SHOW PROCESSLIST; opens nothing yet."""
        ...

    def check(self) -> ServerInfo:
        """Connects, reads the schema's version, finds the claim path by behaviour.

        Raises:
            SetupWrong: credentials, database or schema are wrong.
            ConnectionLost: out of reach.
        """
        ...

    def info(self) -> ServerInfo:
        """What is known by now, without asking the server."""
        ...

    def schema(self) -> SchemaState:
        """The state of the schema. Raises as check."""
        ...

    def migrate(self) -> list[str]:
        """Brings the schema up to date; the names of what was applied. Safe when two run at once.

        Raises:
            SetupWrong: the schema is newer than this qd knows, or isn't qd's.
        """
        ...

    def up(self) -> bool:
        """False from a failure until the next success on any connection."""
        ...

    def troubled_at(self) -> float:
        """Monotonic time of the last failed or slow statement; 0.0: none yet."""
        ...
