"""One worker thread: looks, claims, runs, settles, for its queues in strict order.

May import: claimant, runner and below. Owns: its store (connection), its pulse, its state, and with
`executor: process` its child process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from qd.acknowledge import IN_DOUBT, Acknowledger, Written
from qd.backoff import Backoff
from qd.batch import Batch, Done
from qd.bell import Waiter
from qd.claimant import Claimant
from qd.clock import monotonic
from qd.config.model import WorkerConfig
from qd.errors import ConnectionLost, StoreError, TransactionFailed
from qd.events import Problem
from qd.executors import Home
from qd.executors.child import POLITE
from qd.failure import class_name
from qd.job import ClaimedJob
from qd.lease import Lease
from qd.policy import unstarted
from qd.pulse import Pulse
from qd.runner import Runner, Shop
from qd.setback import Setback
from qd.store.protocol import Claim, Renewal, Store

IDLE_TURN = 1.0
"""Seconds that an idle thread sleeps at most before it turns over and keeps its pulse."""

BETWEEN_CLAIMS = Backoff(base=0.02, factor=2.0, cap=3.0, jitter=0.5)
"""Between tries to look or claim while the database says no."""


class NoChild(Exception):
    """The child process that jobs run in can't be started."""


class Worker:
    """One thread that works. `state` is idle, busy or backoff.

    Args:
        name: unique among living threads of the process, part of its tokens.
        store: its own.
        setback: told of claims and ends that fail.
    """

    def __init__(
        self, name: str, config: WorkerConfig, store: Store, shop: Shop, setback: Setback | None = None
    ) -> None:
        self.name, self._queues, self._store, self._shop = name, config.queues, store, shop
        self.state = "idle"
        self.idle_since = monotonic()
        self.pulse = Pulse(f"worker {name}", shop.patience)
        self.setback = setback or Setback()
        self.batch: Batch | None = None
        self.dismissed = False
        self._in_doubt = False
        self._waiter = Waiter(self._queues)
        self._next: list[Lease] = []
        self._claimant = Claimant(name, config.queues, store, shop, self._leaving)
        self._acknowledger = Acknowledger(store, shop.keeper, shop.events, shop.gate, self._turn, self.setback)
        self._home = self._own_home(config)
        self.runner = Runner(shop, self._acknowledger, self.pulse, self._home, name)
        self.thread = threading.Thread(target=self._run, name=f"qd {name}", daemon=True)

    def _own_home(self, config: WorkerConfig) -> Home | None:
        children = self._shop.children
        if config.executor == "thread" or not children.needed:
            return None
        return Home(children, self.name, config.max_jobs, config.max_memory)

    def start(self) -> None:
        """Starts the thread."""
        self.pulse.beat(self._shop.patience)
        self.thread.start()

    def dismiss(self) -> None:
        """Lets the thread end once what it runs is settled (it was replaced, or isn't needed)."""
        self.dismissed = True

    # ------------------------------------------------------------------ the loop

    def _run(self) -> None:
        while True:
            try:
                self._rounds()
                self._resolve()
                break
            except BaseException as error:  # thrown in, late, by what a handler left behind: must not end the thread
                self._shop.events.publish(Problem(f"worker {self.name}", f"hit by a stray {class_name(error)}"))
                self._back_off(6)
        if self._home is not None:
            self._home.close(max(0.0, min(POLITE, self._shop.gate.deadline - monotonic())))
        self._store.close()

    def _rounds(self) -> None:
        failures = 0
        while self._next or not self._leaving():
            self._turn()
            try:
                worked = self._round()
                failures = 0
                if not worked:
                    break
            except NoChild:  # said where they are started
                failures += 1
                self._back_off(failures + 3)
            except TransactionFailed as error:  # somebody was in the way: again, soon
                self.setback.met(error)
                failures = min(failures + 1, 4)
                self._back_off(failures)
            except StoreError as error:  # said and counted where the connection is
                self.setback.met(error)
                self._in_doubt = self._in_doubt or (isinstance(error, ConnectionLost) and error.outcome_unknown)
                failures += 1
                self._back_off(failures)
            except Exception as error:  # a bug must not end the thread; said, and the loop goes on
                failures += 1
                self._shop.events.publish(Problem(f"worker {self.name}", f"{type(error).__name__}: {error}"))
                self._back_off(max(failures, 6))

    def _round(self) -> bool:
        """One claim and its work, or one wait; False: there was nothing and no wait is wanted."""
        self._in_doubt = True  # perhaps; where there is no doubt the database isn't asked, and nothing can fail
        self._store.resolve()
        self._in_doubt = False
        if not self._housed(self._leaving):
            self._hand_back(self._take_next())
            if self._leaving() or self._shop.gate.leave_when_empty:  # nobody waits for better times
                return False
            raise NoChild
        claimed = self._take_next() or self._claim()
        if claimed:
            self.state = "busy"
            self._work(claimed)
            self._shop.bell.worked()
            self.idle_since = monotonic()
            return True
        self.state = "idle"
        self._claimant.forget()
        if self._shop.gate.leave_when_empty:
            return False
        self._rest()
        return True

    def _claim(self) -> list[Lease]:
        claimed = self._claimant.claim()
        self.setback.overcome()  # answered, if only by a look that saw nothing: not after the job, which may be long
        return claimed

    def _housed(self, unwanted: Callable[[], bool]) -> bool:
        """Whether there is a child to run jobs in, where they run in one: before any is claimed."""
        return self._home is None or self._home.ready(self._turn, unwanted)

    def _rest(self) -> None:
        """Waits at the bell. Doesn't look by itself: one poller looks for all."""
        while not self._leaving() and (self._home is None or self._home.alive()):
            self._turn()
            if (sight := self._shop.bell.wait(self._waiter, IDLE_TURN)) is not None:
                self._claimant.remember(sight)
                return

    def _leaving(self) -> bool:
        gate = self._shop.gate
        return self.dismissed or gate.closed or gate.spent

    def _closed(self) -> bool:
        return self._shop.gate.closed

    def _turn(self) -> None:
        self.pulse.beat(self._shop.patience + IDLE_TURN)

    def _back_off(self, failures: int) -> None:
        self.state = "backoff"
        self._claimant.forget()
        self._hand_back(self._take_next())  # nobody would work on it meanwhile
        pauses = IN_DOUBT if self._in_doubt else BETWEEN_CLAIMS
        self._shop.gate.wait(pauses.delay(failures))

    def _resolve(self) -> None:
        """Before the thread ends: what an unanswered COMMIT may have claimed, it alone knows of."""
        failures = 0
        while not self._shop.gate.late():
            self._turn()
            try:
                self._store.resolve()
                return
            except StoreError:  # said and counted where the connection is
                failures += 1
                self._shop.gate.pause(IN_DOUBT.delay(failures))

    # ------------------------------------------------------------------ working

    def _work(self, leases: list[Lease]) -> None:
        size = self._shop.sizes[leases[0].job.queue]
        batch = self.batch = Batch(leases, size.start_within)
        if len(leases) > 1:
            self._shop.rest.disturb()
        try:
            self._work_through(batch)
        except BaseException:  # whatever it was: what has ended is still written, what waits goes to others
            left = [*batch.take_unstarted(all_of_it=True), *self._take_next()]
            waiting = [(lease, unstarted(lease.job)) for lease in left]
            self._acknowledger.settle([*batch.take_done(), *waiting])
            self._shop.gate.refund(len(waiting))
            raise
        finally:
            self.batch = None
            self.runner.tidy()

    def _work_through(self, batch: Batch) -> None:
        first = True
        while (lease := batch.next()) is not None:
            if self._shop.gate.closed:
                self._hand_back([lease, *batch.take_unstarted(all_of_it=True)])
            elif not first and (late := batch.take_unstarted()):
                self._hand_back([lease, *late])
            elif not first and not self._housed(self._closed):  # the job before took the child with it
                self._hand_back([lease, *batch.take_unstarted(all_of_it=True)])
            else:
                self._one(lease, batch)
            first = False
        self._turn_over(batch.take_done())

    def _turn_over(self, done: list[Done]) -> None:
        """Writes the last ends of a batch, and claims the next one in the same transaction where it can."""
        written: list[Written] | None = None

        def claiming(claim: Claim) -> list[ClaimedJob] | None:
            nonlocal written
            written, claimed = self._acknowledger.write_and_claim(done, claim)
            if claimed is not None:
                self.setback.overcome()
            return claimed

        try:
            if done and self._starts_at_once():
                self._next = self._claimant.claim_next(claiming)
        finally:  # whatever became of the claim: the ends are ours to write
            if written is None:
                self._acknowledger.settle(done)
            else:
                self._acknowledger.tell(written)

    def _starts_at_once(self) -> bool:
        """Whether what is claimed now would begin now: a child that is to be replaced takes its time."""
        return self._home is None or self._home.stays()

    def _take_next(self) -> list[Lease]:
        """What was claimed behind the batch before."""
        following, self._next = self._next, []
        return following

    def _hand_back(self, leases: list[Lease]) -> None:
        if not leases:
            return
        self._acknowledger.settle([(lease, unstarted(lease.job)) for lease in leases])
        self._shop.gate.refund(len(leases))

    def _one(self, lease: Lease, batch: Batch) -> None:
        """Runs one job, unless its lease is gone; its end waits in the batch."""
        if lease.lost.is_set() or not (lease.fresh() or self._renewed(lease)):
            return
        try:
            done = self.runner.run(lease)
        except BaseException:  # whatever it was: nothing may keep renewing what nobody works on
            self._shop.keeper.drop([lease])
            raise
        if done is not None:
            self._shop.sizes[lease.job.queue].measured(done[1].outcome.seconds)
            if due := batch.add(done):
                self._acknowledger.settle(due)

    def _renewed(self, lease: Lease) -> bool:
        """For a job that waited for half its lease: whether it is still ours, and fresh again."""
        while (found := self._acknowledger.reconcile(lease)) is Renewal.RENEWED:
            if lease.fresh():  # else we stood still since: asked again
                return True
        if found is not None:  # else it stays held: the stop tells of it
            lease.lose(self._shop.events, "renewal")
            self._shop.keeper.drop([lease])
        return False
