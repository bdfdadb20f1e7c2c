"""Writes the ends of jobs, and says what came of it.

The acknowledgement is retried, the work is not: a deadlock, a lock wait, a lost connection or a
COMMIT of unknown outcome is tried again for as long as the lease may hold, which only the fence
decides. Once a process is stopping, until the gate's deadline.
May import: lease, batch, gate, store protocol, and the pure modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from qd.backoff import Backoff
from qd.batch import Done
from qd.clock import monotonic
from qd.errors import ConnectionLost, DataRefused, StoreError, TransactionFailed
from qd.events import (
    AttemptEnded,
    Event,
    Events,
    JobCrashed,
    JobDeadLettered,
    JobFailed,
    JobRejected,
    JobReleased,
    JobSnoozed,
    JobSucceeded,
    JobTimedOut,
    Problem,
)
from qd.gate import Gate
from qd.job import ClaimedJob
from qd.lease import Lease, LeaseKeeper
from qd.outcome import Action, Outcome, OutcomeKind, Reason, Settlement, Verdict
from qd.setback import Setback
from qd.store.protocol import Claim, HeldLease, Renewal, Store

AGAIN = Backoff(base=0.05, factor=2.0, cap=1.5, jitter=0.5)
"""Between tries to write an end: in an outage each thread calls for its server about once a second."""

IN_DOUBT = Backoff(base=0.02, factor=2.0, cap=0.5, jitter=0.5)
"""The same while a claim's COMMIT is unanswered: nobody renews those leases, and they must be given back before
another daemon's sweep, once the database has returned, has looked twice."""

PATIENT_TRIES = 10
"""Tries, some 7 seconds, after which a log line says what is waited for."""

HELD_UP = (
    "its thread waits for its row, which somebody has locked: a handler that calls job.complete() must "
    "commit or roll back before it returns"
)

Written = tuple[Lease, Settlement, Verdict | None]
"""An end, and what the store found; None: it could not be written."""

Write = Callable[[Sequence[Settlement]], list[Verdict | None]]

FAILURES: dict[OutcomeKind, type[JobFailed]] = {OutcomeKind.TIMEOUT: JobTimedOut}


class Acknowledger:
    """Settles through one thread's store.

    Args:
        turn: called before each try, so that the thread's pulse is kept.
        setback: told of ends that can't be written: the thread claims nothing meanwhile.
    """

    def __init__(
        self,
        store: Store,
        keeper: LeaseKeeper,
        events: Events,
        gate: Gate,
        turn: Callable[[], None],
        setback: Setback | None = None,
    ) -> None:
        self._store, self._keeper, self._events, self._gate, self._turn = store, keeper, events, gate, turn
        self._setback = setback or Setback()

    def settle(self, done: Sequence[Done]) -> None:
        """Writes the ends of these jobs, however long it takes; says each verdict once."""
        try:
            written = self.write(done)
        except BaseException:  # thrown into this thread from outside: what has ended is written all the same
            self.tell(self.write(done))
            raise
        self.tell(written)

    def try_once(self, done: Sequence[Done]) -> bool:
        """Writes the ends of these jobs if it can be done now; says each verdict once.

        Returns:
            False: one of them is locked or, where there are several, refused. Try each alone, and again later.

        Raises:
            StoreError: the database is away; try again later.
        """
        try:
            written = self._written(self._ours(done), self._once)
        except TransactionFailed:
            return False
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, DataRefused):
                raise
            if len(done) == 1:
                self.settle(done)  # which gives up in the end
            return len(done) == 1
        self.tell(written)
        return True

    def _once(self, settlements: Sequence[Settlement]) -> list[Verdict | None]:
        self._turn()
        return list(self._store.settle(settlements))

    def write(self, done: Sequence[Done]) -> list[Written]:
        """Writes the ends of these jobs, however long it takes; what came of them is still to be told."""
        return self._written(self._ours(done), self._until_written)

    def write_and_claim(self, done: Sequence[Done], claim: Claim) -> tuple[list[Written], list[ClaimedJob] | None]:
        """The same, and in the same transaction the next claim; the jobs are None where none was made.

        The ends come first: where the two can't be committed together nothing is claimed.
        """
        claimed: list[ClaimedJob] | None = None

        def together(settlements: Sequence[Settlement]) -> list[Verdict | None]:
            nonlocal claimed
            self._turn()
            try:
                verdicts, claimed = self._store.turn_over(settlements, claim)
                return list(verdicts)
            except StoreError as error:  # said and counted where the connection is
                unknown = isinstance(error, ConnectionLost) and error.outcome_unknown
                return self._until_written(settlements, IN_DOUBT if unknown else AGAIN)
            except Exception as error:  # a bug: said, and as little a reason to run the work again as an outage
                self._events.publish(Problem("claiming behind an end", f"{type(error).__name__}: {error}"))
                return self._until_written(settlements)

        ours = self._ours(done)
        return (self._written(ours, together), claimed) if ours else ([], None)

    def _ours(self, done: Sequence[Done]) -> list[Done]:
        ours = [one for one in done if not one[0].lost.is_set()]
        for lease, _ in ours:
            lease.settling = True
        return ours

    def _written(self, ours: list[Done], write: Write) -> list[Written]:
        if not ours:
            return []
        verdicts = write([settlement for _, settlement in ours])
        return [(*one, verdict) for one, verdict in zip(ours, verdicts, strict=True)]

    def tell(self, written: Sequence[Written]) -> None:
        """Says what came of these ends, and drops their leases."""
        late = self._gate.late()  # what isn't written by then stays held: the stop tells of it
        self._keeper.drop([lease for lease, _, verdict in written if verdict is not None or not late])
        for lease, settlement, verdict in written:
            if verdict is Verdict.LOST:
                lease.lose(self._events, "settle")
            elif verdict is not None:
                self._tell(settlement, verdict)

    def _tell(self, settlement: Settlement, verdict: Verdict) -> None:
        job, outcome = settlement.job, settlement.outcome
        if settlement.action is Action.FINISH:  # nearly all are
            self._events.publish(
                JobSucceeded(job.id, job.queue, job.type, job.attempt, outcome.seconds, outcome.result)
            )
            return
        for event in told(settlement, verdict):
            self._events.publish(event)

    def reconcile(self, lease: Lease, held_up: Callable[[], None] = lambda: None) -> Renewal | None:
        """What has become of the row, read and renewed under the lease's token.

        Args:
            held_up: called once, when the row has been locked by somebody for some seconds.

        Returns:
            RENEWED, LOST or GONE; None if the time for it is over.
        """
        job = lease.job
        failures = 0
        while not self._gate.late():
            self._turn()
            before = monotonic()
            found = self._read(job)
            if found is Renewal.RENEWED:
                lease.renewed_at = before
            if found is not None and found is not Renewal.LOCKED:
                return found
            failures += 1
            if found is Renewal.LOCKED and failures == PATIENT_TRIES:
                self._events.publish(Problem(f"job {job.id}", HELD_UP))
                held_up()
            self._gate.pause(AGAIN.delay(failures))
        return None

    def _read(self, job: ClaimedJob) -> Renewal | None:
        try:
            return self._store.renew([HeldLease(job.id, job.token, job.lease)])[0]
        except StoreError:  # said and counted where the connection is
            return None
        except Exception as error:  # a bug: said; what has become of the row must be known all the same
            self._events.publish(Problem(f"job {job.id}", f"its row wasn't read: {type(error).__name__}: {error}"))
            return None

    def _until_written(self, settlements: Sequence[Settlement], again: Backoff = AGAIN) -> list[Verdict | None]:
        failures = refusals = bugs = 0
        while True:
            self._turn()
            try:
                verdicts = self._store.settle(settlements)
                self._setback.overcome()
                return list(verdicts)
            except DataRefused as error:
                if len(settlements) > 1:
                    return self._one_by_one(settlements)
                refusals += 1
                if refusals > 2:
                    return self._given_up(settlements[0], f"refused: {error}")
                settlements = [self._without_words(settlements[0], error)]
            except TransactionFailed as error:  # somebody has a row locked, perhaps for longer than a lease
                self._setback.met(error)
                self._give_back_in_doubt()
            except StoreError as error:
                self._setback.met(error)
                if failures + 1 == PATIENT_TRIES:
                    self._say_unwritten(settlements[0], failures + 1, str(error))
            except Exception as error:  # a bug: said, and as little a reason to run the work again as an outage
                bugs += 1
                if bugs == 1:
                    self._say_unwritten(settlements[0], failures + 1, f"{type(error).__name__}: {error}")
                if len(settlements) > 1:
                    return self._one_by_one(settlements)
                if bugs == PATIENT_TRIES:
                    return self._given_up(settlements[0], f"given up: {type(error).__name__}: {error}")
            failures += 1
            if self._gate.late():
                return [None] * len(settlements)
            self._gate.pause(again.delay(failures))

    def _give_back_in_doubt(self) -> None:
        """What an unanswered COMMIT may have claimed behind these ends: nobody renews it while they wait."""
        with suppress(StoreError):  # asked again after the next try
            self._store.resolve()

    def _one_by_one(self, settlements: Sequence[Settlement]) -> list[Verdict | None]:
        """What is wrong may be about one row only, which must not hold up the others."""
        return [verdict for one in settlements for verdict in self._until_written([one])]

    def _given_up(self, settlement: Settlement, why: str) -> list[Verdict | None]:
        """It would go wrong for ever, and its thread with it: its lease runs out, the sweep decides."""
        self._events.publish(Problem(f"settling job {settlement.job.id}", why))
        return [None]

    def _say_unwritten(self, settlement: Settlement, tries: int, why: str) -> None:
        where = f"settling job {settlement.job.id}"
        self._events.publish(Problem(where, f"not written after {tries} {'try' if tries == 1 else 'tries'}: {why}"))

    def _without_words(self, settlement: Settlement, error: StoreError) -> Settlement:
        """The same end, its texts replaced by one that every server takes."""
        plain = f"the error text was refused by the database (errno {error.errno}) and left out"
        old = settlement.outcome
        outcome = Outcome(old.kind, old.reason, error=plain, delay=old.delay, seconds=old.seconds, entered=old.entered)
        return Settlement(settlement.job, settlement.action, outcome, settlement.delay)


def told(settlement: Settlement, verdict: Verdict) -> Iterator[Event]:
    """The events of one settled attempt."""
    job, outcome = settlement.job, settlement.outcome
    buried = settlement.action is Action.BURY or verdict is Verdict.BURIED
    yield _ending(settlement, buried)
    if buried:
        yield JobDeadLettered(job.id, job.queue, job.type, job.attempt, outcome.reason.value, outcome.error or "")


def _ending(settlement: Settlement, buried: bool) -> AttemptEnded:
    job, outcome, kind = settlement.job, settlement.outcome, settlement.outcome.kind
    who = (job.id, job.queue, job.type, job.attempt, outcome.seconds)
    if kind is OutcomeKind.SUCCEEDED:
        return JobSucceeded(*who, result=outcome.result)
    if kind is OutcomeKind.SNOOZED:
        return JobSnoozed(*who, delay=settlement.delay)
    if settlement.action is Action.POSTPONE and not buried:
        return JobReleased(*who, reason="no handler for its type here")
    if kind is OutcomeKind.REJECTED:
        return JobRejected(*who)
    if kind is OutcomeKind.RELEASED and not buried:
        return _released(job, outcome)
    retry_in = None if buried else settlement.delay
    error = outcome.error or _cut_off(outcome)
    if kind is OutcomeKind.CRASHED:
        return JobCrashed(*who, error=error, retry_in=retry_in, signal=outcome.signal)
    return FAILURES.get(kind, JobFailed)(*who, error=error, retry_in=retry_in)


def _released(job: ClaimedJob, outcome: Outcome) -> JobReleased:
    reason = "cut off by the stop" if outcome.entered else "not started"
    return JobReleased(job.id, job.queue, job.type, job.attempt, outcome.seconds, reason=reason, ran=outcome.entered)


def _cut_off(outcome: Outcome) -> str:
    return "cut off by the stop" if outcome.reason is Reason.INTERRUPTED else outcome.kind.value
