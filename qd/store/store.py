"""The store: every method is one transaction of its session, composed from the modules beside it.

May import: everything in this package but the drivers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from qd.errors import StoreError, TransactionFailed, leaves_doubt
from qd.job import PRIORITIES, ClaimedJob
from qd.outcome import Settlement, Verdict
from qd.store import sweep, tending
from qd.store.admin.verbs import AdminVerbs
from qd.store.claim.claimer import Claimer
from qd.store.claim.look import look
from qd.store.depths import count, depths
from qd.store.dialect import Session
from qd.store.posts import ensure_posts
from qd.store.protocol import Claim, ClaimPath, Count, DaemonRow, HeldLease, Look, QueueDepth, Renewal, StaleRow
from qd.store.renew import Renewing, renew, renew_plainly, renew_singly, renew_skipping
from qd.store.settle.settler import Settler, SomeWereLost
from qd.store.shared import Shared


class SqlStore(AdminVerbs):
    """See `qd.store.protocol.Store`; belongs to one thread.

    Args:
        name: the connection's.
        session: its own.
        shared: the Database's.
        fresh: makes another session of that name.
    """

    def __init__(self, name: str, session: Session, shared: Shared, fresh: Callable[[], Session]) -> None:
        self.name = name
        self._session, self._shared, self._fresh = session, shared, fresh
        self._claimer = Claimer(session, shared)
        self._settler = Settler(session, shared.unknown_type_patience)

    def look(self, queues: Sequence[str], *, full: bool) -> Look:
        """See Store."""
        marks, dialect = self._shared.marks, self._session.dialect
        lanes = [(queue, priority) for queue in queues for priority in PRIORITIES.values()]
        begun = {lane: marks.begin_look(lane, full=full) for lane in lanes}
        first, seen = self._session.read(lambda cursor: look(cursor, dialect, begun))
        marks.looked(begun, first, seen.now)
        return seen

    def claim(self, claim: Claim) -> list[ClaimedJob]:
        """See Store."""
        return self._claimer.claim(claim)

    def resolve(self) -> None:
        """See Store."""
        self._claimer.resolve()

    def settle(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        """See Store."""
        return self._settler.settle(settlements)

    def turn_over(
        self, settlements: Sequence[Settlement], claim: Claim
    ) -> tuple[list[Verdict], list[ClaimedJob] | None]:
        """See Store."""
        if not self._claimer.at_once():
            return self.settle(settlements), None
        try:
            jobs = self._claimer.claim_after(claim, lambda cursor: self._settler.write(cursor, settlements))
        except SomeWereLost:
            return self.settle(settlements), None
        except BaseException as error:
            if leaves_doubt(error):
                self._settler.doubt(settlements)
            raise
        return [Verdict.SETTLED] * len(settlements), jobs

    def renew(self, leases: Sequence[HeldLease]) -> list[Renewal]:
        """See Store."""
        if not leases:
            return []
        path = self._shared.path()
        impatient = self._shared.impatient()
        ways: dict[ClaimPath, Renewing] = {
            ClaimPath.SKIP_LOCKED: renew_skipping,
            ClaimPath.SQLITE: renew_plainly,
            ClaimPath.CONDITIONAL: lambda session, some: renew_singly(session, some, impatient),
        }
        return renew(self._session, leases, ways[path])

    def stale(self, queues: Sequence[str], limit: int) -> list[StaleRow]:
        """See Store."""
        if not queues:
            return []
        return self._session.read(lambda cursor: sweep.stale(cursor, self._session.dialect, queues, limit))

    def free(self, rows: Sequence[StaleRow]) -> set[StaleRow]:
        """See Store."""
        path = self._shared.path()
        if not rows or path is ClaimPath.SQLITE:
            return set(rows)
        if path is ClaimPath.SKIP_LOCKED:
            return self._session.transaction(lambda cursor: sweep.free(cursor, rows))
        return {row for row in rows if self._lockable(row)}

    def _lockable(self, row: StaleRow) -> bool:
        dialect, impatient = self._session.dialect, self._shared.impatient()
        try:
            return self._session.transaction(lambda cursor: sweep.lockable(cursor, dialect, row, impatient))
        except TransactionFailed:
            return False

    def reclaim(self, row: StaleRow, max_attempts: int) -> Verdict:
        """See Store."""
        skip = self._shared.path() is not ClaimPath.CONDITIONAL
        impatient = "" if skip else self._shared.impatient()
        dialect = self._session.dialect
        try:
            return self._session.transaction(
                lambda cursor: sweep.reclaim(cursor, dialect, row, max_attempts, skip=skip, impatient=impatient)
            )
        except TransactionFailed:
            if skip:
                raise
            return Verdict.LOST  # somebody has it locked, so he isn't gone

    def depths(self) -> list[QueueDepth]:
        """See Store."""
        return self._session.read(lambda cursor: depths(cursor, self._session.dialect))

    def count(self, known: Collection[str]) -> Count:
        """See Store."""
        return self._session.read(lambda cursor: count(cursor, self._session.dialect, known))

    def ensure_posts(self, queues: Sequence[str]) -> int:
        """See Store."""
        if self._session.dialect.name != "mysql":
            return 0
        return self._session.transaction(lambda cursor: ensure_posts(cursor, queues))

    def announce(self, daemon: DaemonRow, age: float = 0.0) -> None:
        """See Store."""
        dialect = self._session.dialect
        self._session.transaction(lambda cursor: tending.announce(cursor, dialect, daemon, age))
        for gone in self._session.read(lambda cursor: tending.forgotten(cursor, dialect)):
            self.withdraw(gone)

    def withdraw(self, daemon_id: str) -> None:
        """See Store."""
        self._session.transaction(lambda cursor: tending.withdraw(cursor, daemon_id))

    def purge_failed(self, older_than: float, limit: int) -> int:
        """See Store."""
        dialect = self._session.dialect
        ids = self._session.read(lambda cursor: tending.outdated(cursor, dialect, older_than, limit))
        if not ids:
            return 0
        return self._session.transaction(lambda cursor: tending.purge(cursor, dialect, ids, older_than))

    def close(self) -> None:
        """See Store. What an unanswered COMMIT may have claimed is given back first, if that can be done."""
        with suppress(StoreError):  # then its leases run out, and the sweep takes it back
            self._claimer.resolve()
        self._session.close()
