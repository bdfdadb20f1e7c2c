"""One store's claims: the path that the server allows, the marks, and claims of unknown outcome.

A claim whose COMMIT had no answer may stand: its rows are looked for by id and token, and given back
uncounted. Whoever claims must not rest before that is done: nobody would run them, and the sweep would
count a crash, or make a dead letter of what never ran.
May import: take, conditional, candidate, release, marks, lag, shared, dialect, protocol, the pure modules.
"""

from __future__ import annotations

from collections.abc import Callable

from qd.errors import SetupWrong, StoreError, leaves_doubt
from qd.events import JobDeadLettered
from qd.job import ClaimedJob
from qd.outcome import Reason
from qd.store.claim.candidate import SPENT, Candidate
from qd.store.claim.conditional import ConditionalClaim
from qd.store.claim.marks import Lane
from qd.store.claim.take import Taken, take
from qd.store.dialect import Cursor, Session
from qd.store.lag import caught_up
from qd.store.protocol import Claim, ClaimPath
from qd.store.settle.release import give_back
from qd.store.shared import Shared

SYNTAX = 1064
"""What a server says to SQL that it doesn't know."""


class Claimer:
    """Belongs to one store, so to one thread."""

    def __init__(self, session: Session, shared: Shared) -> None:
        self._session, self._shared = session, shared
        self._lonely: set[Lane] = set()
        self._doubtful: list[ClaimedJob] = []

    def claim(self, claim: Claim) -> list[ClaimedJob]:
        """See Store.claim."""
        self.resolve()
        try:
            return self._claim(claim)
        except StoreError:
            self._drop_marks(claim)
            raise

    def claim_after(self, claim: Claim, before: Callable[[Cursor], None]) -> list[ClaimedJob]:
        """A claim in one transaction with what `before` does, ahead of it; all of that is done or nothing.

        Only for servers whose claim is one transaction (`at_once`).

        Raises:
            StoreError: nothing is known to be done; see `claim` for an outcome that is unknown.
            Exception: what `before` raised.
        """
        self.resolve()
        try:
            return self._noted(claim, self._at_once(claim, before))
        except StoreError:
            self._drop_marks(claim)
            raise

    def at_once(self) -> bool:
        """Whether a claim is one transaction here."""
        return self._shared.path() is not ClaimPath.CONDITIONAL

    def resolve(self) -> None:
        """See Store.resolve."""
        if not self._doubtful:
            return
        doubtful = self._doubtful

        def work(cursor: Cursor) -> None:
            for job in doubtful:
                if self._holds(cursor, job):
                    give_back(cursor, self._session.dialect, job.id, job.token, 0.0)

        caught_up(self._session)  # a node that lags doesn't know a claim yet that stands
        self._session.transaction(work)
        self._doubtful = []
        self._session.urgent = False

    def _claim(self, claim: Claim) -> list[ClaimedJob]:
        path = self._shared.path()
        if path is ClaimPath.CONDITIONAL:
            return self._noted(claim, self._conditional(claim))
        try:
            taken = self._at_once(claim)
        except SetupWrong as error:
            if error.errno != SYNTAX or path is not ClaimPath.SKIP_LOCKED:
                raise
            self._shared.give_up_skip_locked(str(error))
            taken = self._conditional(claim)
        return self._noted(claim, taken)

    def _drop_marks(self, claim: Claim) -> None:
        for priority in claim.priorities:
            self._shared.marks.drop((claim.queue, priority))

    def _at_once(self, claim: Claim, before: Callable[[Cursor], None] = lambda cursor: None) -> Taken:
        done = Taken()
        limit = 1 if (claim.queue, claim.priorities[0]) in self._lonely else claim.limit

        def work(cursor: Cursor) -> Taken:
            nonlocal done
            done = Taken()
            before(cursor)
            done = take(cursor, self._session.dialect, claim, self._shared.marks, limit)
            return done

        try:
            return self._session.transaction(work)
        except BaseException as error:
            if leaves_doubt(error):
                self._doubt(claim, done)
            raise

    def _conditional(self, claim: Claim) -> Taken:
        def doubt(row: Candidate) -> None:
            self._doubt(claim, Taken([row]))

        shared = self._shared
        return ConditionalClaim(self._session, claim, shared.marks, shared.impatient(), doubt).take()

    def _doubt(self, claim: Claim, taken: Taken) -> None:
        self._doubtful += self._jobs(claim, taken)
        self._session.urgent = bool(self._doubtful)

    def _noted(self, claim: Claim, taken: Taken) -> list[ClaimedJob]:
        """Moves the marks, tells of the buried, and makes the jobs."""
        self._mark(taken)
        for row in taken.buried:
            who = (row.id, claim.queue, row.type, row.attempts)
            self._shared.events.publish(JobDeadLettered(*who, reason=Reason.ERROR.value, error=SPENT))
        return self._jobs(claim, taken)

    def _mark(self, taken: Taken) -> None:
        marks = self._shared.marks
        for lane in taken.empty:
            self._lonely.discard(lane)
        if not taken.rows:
            return
        now = taken.rows[0].now_written()
        if taken.next is not None:
            marks.claimed(taken.lane, taken.begun, taken.next, now)
        else:
            marks.passed(now)
        self._remember_lonely(taken)

    def _remember_lonely(self, taken: Taken) -> None:
        """After a row that had to be alone the next is likely one too: then one row is locked, not many."""
        if taken.alone:
            self._lonely.add(taken.lane)
        else:
            self._lonely.discard(taken.lane)

    def _jobs(self, claim: Claim, taken: Taken) -> list[ClaimedJob]:
        return [row.claimed(claim, self._session.dialect, taken.begun_at) for row in taken.rows]

    def _holds(self, cursor: Cursor, job: ClaimedJob) -> bool:
        lock = self._session.dialect.lock
        cursor.execute(f"SELECT id FROM qd_jobs WHERE id = %s AND reserved_by = %s{lock}", (job.id, job.token))
        return cursor.fetchone() is not None
