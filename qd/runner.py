"""One job's run on a worker's thread: from the claimed row to the settlement that its end wants.

Also decides where a handler runs: in the thread, in the thread's own child process, or, where an
earlier run took its process down, in a child process that is started for it alone (quarantine).

May import: acknowledge, batch, bell, lease, sight, executors, registry, config, store protocol and the pure modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from qd.acknowledge import Acknowledger
from qd.batch import BatchSize, Done
from qd.bell import Bell
from qd.clock import monotonic
from qd.config.model import QueueConfig
from qd.errors import BadInput
from qd.events import Events, JobNotRun, JobStarted, JobSucceeded, Problem, TypeUnknown
from qd.executors import Attempt, Child, Children, Home, Place, Timekeeper
from qd.gate import Gate
from qd.identity import Identity
from qd.job import ClaimedJob, Job
from qd.lease import Lease, LeaseKeeper
from qd.outcome import Outcome, OutcomeKind, Reason, Settlement
from qd.payload import decode
from qd.policy import NO_CHILD_DELAY, limit, settlement, unknown_type, unstarted
from qd.pulse import Pulse
from qd.registry import Handler, Registry
from qd.rest import Rest
from qd.sight import Sight
from qd.store.protocol import Finisher, Renewal

NOT_IN_CHILD = (
    "a child process doesn't know it, though the daemon does: no module of handlers.modules registers it any more "
    "(after a deploy restart qd), or only the main program does (move it into a module that can be imported, or let "
    "a worker with executor: thread serve its queue); its jobs are handed back"
)

LEFT_OPEN = (
    "called job.complete() and left its transaction open: its child process was ended, which rolled it back; "
    "commit or roll back before the handler returns"
)


@dataclass(frozen=True, slots=True)
class Shop:
    """What all workers of one engine share.

    Attributes:
        patience: seconds that a round of statements may take at its worst.
        finish: how `job.complete` ends a job inside the handler's transaction.
        children: starts child processes for handlers.
        sights: the last look at each list of queues, of whichever thread.
        rest: of who looks after batches whose thread is busy.
    """

    policies: Mapping[str, QueueConfig]
    registry: Registry
    events: Events
    keeper: LeaseKeeper
    timekeeper: Timekeeper
    bell: Bell
    gate: Gate
    identity: Identity
    sizes: Mapping[str, BatchSize]
    patience: float
    finish: Finisher
    children: Children
    sights: dict[tuple[str, ...], Sight] = field(default_factory=dict)
    rest: Rest = field(default_factory=Rest)


class Runner:
    """Runs the jobs of one thread, one after the other.

    Args:
        home: the thread's own child process, or None: handlers run in the thread.
        label: the thread's name.

    Attributes:
        attempt: the run that is going on, or None.
        lease: its lease.
    """

    def __init__(
        self, shop: Shop, acknowledger: Acknowledger, pulse: Pulse, home: Home | None = None, label: str = ""
    ) -> None:
        self._shop, self._acknowledger, self._pulse = shop, acknowledger, pulse
        self._home, self._label = home, label
        self._guest: Child | None = None
        self._unknown: set[str] = set()
        self._unentered: set[str] = set()
        self.attempt: Attempt | None = None
        self.lease: Lease | None = None

    def tidy(self) -> None:
        """Ends the child that was started for one job alone; to be called once that job's end is written."""
        guest, self._guest = self._guest, None
        if guest is not None:
            guest.retire()

    def run(self, lease: Lease) -> Done | None:
        """Runs one claimed job; its end, or None where there is nothing to settle: it settled itself, was lost,
        or could not be started and was handed back."""
        claimed, shop = lease.job, self._shop
        handler = shop.registry.get(claimed.type)
        if handler is None:
            hint = f"handlers here: {', '.join(shop.registry.names()[:10]) or 'none'}"
            shop.events.publish(TypeUnknown(claimed.id, claimed.queue, claimed.type, hint))
            return lease, unknown_type(claimed, hint)
        try:
            payload = decode(claimed.payload)
        except BadInput as error:
            return lease, self._decided(claimed, Outcome(OutcomeKind.REJECTED, Reason.PAYLOAD, error=str(error)))
        if handler.argv is not None or (self._home is None and not self._in_quarantine(claimed)):
            return self._run_handler(lease, handler, payload, None)
        return self._run_in_child(lease, handler)

    def _in_quarantine(self, claimed: ClaimedJob) -> bool:
        """Whether it must run in a child of its own: an earlier run took its process down."""
        return claimed.crashes > 0 and self._shop.policies[claimed.queue].quarantine == "child"

    def _run_in_child(self, lease: Lease, handler: Handler) -> Done | None:
        """In the thread's own child, or one that is started for it and ended with it."""
        child = self._own_child() if not self._in_quarantine(lease.job) else self._start_alone(lease.job)
        if child is None:
            return self._handed_back(lease, self._shop.children.problem or "its child process had ended before")
        if not self._is_known(handler.name, child):
            return self._handed_back(lease, f"handler {handler.name}: {NOT_IN_CHILD}")
        memory = self._shop.policies[lease.job.queue].memory
        return self._run_handler(lease, handler, None, Place(child, lease.job.lease, memory))

    def _own_child(self) -> Child | None:
        return self._home.child if self._home is not None and self._home.alive() else None

    def _is_known(self, type_: str, child: Child) -> bool:
        if type_ in child.types:
            self._unknown.discard(type_)
            return True
        if type_ not in self._unknown:
            self._unknown.add(type_)
            self._shop.events.publish(Problem(f"handler {type_}", NOT_IN_CHILD))
        if self._home is not None and child is self._home.child:
            self._home.lacks()
        return False

    def _start_alone(self, claimed: ClaimedJob) -> Child | None:
        def turn() -> None:
            self._pulse.beat(self._shop.patience)

        gate = self._shop.gate
        self._guest = self._shop.children.start(f"{self._label} job {claimed.id}", turn, lambda: gate.closed)
        return self._guest

    def _handed_back(self, lease: Lease, why: str) -> Done | None:
        """Never started, so no attempt is spent."""
        stopping = self._shop.gate.closed
        if not stopping:
            self._shop.events.publish(JobNotRun(lease.job.id, why))
        delay = 0.0 if stopping else NO_CHILD_DELAY
        self._acknowledger.settle([(lease, unstarted(lease.job, delay))])
        self._shop.gate.refund(1)
        return None

    def _run_handler(self, lease: Lease, handler: Handler, payload: object, place: Place | None) -> Done | None:
        claimed, shop = lease.job, self._shop
        policy = shop.policies[claimed.queue]
        job = self._view(lease, payload, policy)
        attempt = Attempt(job, handler, claimed.payload, place=place)
        lease.view, self.lease, self.attempt = job, lease, attempt
        self._pulse.beat(policy.timeout + attempt.kill_grace + shop.patience)
        wait = claimed.waited + (monotonic() - claimed.claimed_at)
        shop.events.publish(JobStarted(claimed.id, claimed.queue, claimed.type, claimed.attempt, wait))
        shop.timekeeper.watch(attempt)
        try:
            outcome = attempt.run()
        finally:
            shop.timekeeper.forget(attempt)
            self.attempt = self.lease = None
        self._pulse.beat(shop.patience)
        if job.completed:
            return self._completed(lease, outcome, place)
        if self._unentered or not outcome.entered:
            self._note_entry(claimed, outcome)
        return lease, self._decided(claimed, outcome)

    def _note_entry(self, job: ClaimedJob, outcome: Outcome) -> None:
        """Where the handler was never entered the attempt is given back, which may happen each time: said once."""
        if outcome.entered:
            self._unentered.discard(job.type)
            return
        self._shop.gate.refund(1)
        if outcome.kind is OutcomeKind.RELEASED:  # the stop's doing
            return
        where, told = f"handler {job.type}", f"{outcome.error}; not started, so no attempt is spent"
        self._shop.events.publish(JobNotRun(job.id, f"{where}: {told}"))
        if job.type not in self._unentered:
            self._unentered.add(job.type)
            self._shop.events.publish(Problem(where, told))

    def _view(self, lease: Lease, payload: object, policy: QueueConfig) -> Job:
        claimed = lease.job
        return Job(
            id=claimed.id,
            queue=claimed.queue,
            type=claimed.type,
            payload=payload,
            attempt=claimed.attempt,
            max_attempts=limit(claimed, policy.max_attempts),
            priority=claimed.priority,
            enqueued_at=claimed.created_at,
            token=claimed.token,
            deadline=monotonic() + policy.timeout,
            finish=self._shop.finish,
            loss=lease.lost,
        )

    def _decided(self, claimed: ClaimedJob, outcome: Outcome) -> Settlement:
        policy = self._shop.policies[claimed.queue]
        return settlement(claimed, outcome, policy.max_attempts, policy.backoff.backoff())

    def _completed(self, lease: Lease, outcome: Outcome, place: Place | None) -> Done | None:
        """The handler called job.complete(): the row says whether its transaction was committed.

        One that it left open holds the row, and this thread, for as long as its connection lives: in a
        child process that is no longer than we want. What it did is undone then, so it has failed.
        """
        left_open = False

        def end_child() -> None:
            nonlocal left_open
            if place is not None:
                left_open = True
                place.child.kill()

        found = self._acknowledger.reconcile(lease, end_child)
        if found is Renewal.RENEWED:
            if left_open:
                outcome = Outcome(OutcomeKind.FAILED, error=LEFT_OPEN, seconds=outcome.seconds)
            return lease, self._decided(lease.job, outcome)
        if found is not None:  # else it stays held: the stop tells of it
            self._shop.keeper.drop([lease])
        if found is Renewal.LOST:
            lease.lose(self._shop.events, "settle")
        elif found is Renewal.GONE:
            self._say_completed(lease.job, outcome)
        return None

    def _say_completed(self, job: ClaimedJob, outcome: Outcome) -> None:
        events = self._shop.events
        if outcome.kind is not OutcomeKind.SUCCEEDED:
            said = outcome.error or outcome.kind.value
            events.publish(Problem(f"job {job.id}", f"raised after it had completed itself: {said}"))
        events.publish(JobSucceeded(job.id, job.queue, job.type, job.attempt, outcome.seconds, result=outcome.result))
