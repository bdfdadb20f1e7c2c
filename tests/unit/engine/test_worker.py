"""A worker's thread: what it owes to the jobs it has claimed when something goes wrong."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from qd.batch import BatchSize, Done
from qd.bell import Bell
from qd.clock import monotonic
from qd.config.model import QueueConfig, WorkerConfig
from qd.errors import ConnectionLost, StoreError, TransactionFailed
from qd.events import JobReleased, JobSucceeded, Problem
from qd.executors import Attempt, Children, Interruption, Timekeeper
from qd.gate import Gate
from qd.identity import Identity
from qd.job import ClaimedJob, Job
from qd.lease import Lease, LeaseKeeper
from qd.outcome import Action
from qd.registry import Handler, Registry
from qd.runner import Shop
from qd.setback import LASTING, Setback
from qd.store.protocol import Claim, HeldLease, Look, Renewal, Spot
from qd.worker import Worker
from tests.support.waiting import wait_for
from tests.unit.engine.fakes import FakeStore, claimed, listening


class ClaimStore(FakeStore):
    """A store that hands out scripted claims, once."""

    def __init__(self, *claims: list[ClaimedJob] | Exception) -> None:
        super().__init__()
        self.claims = list(claims)
        self.resolutions: list[StoreError | None] = []
        self.resolved = 0
        self.turning: BaseException | None = None

    def look(self, queues: Any, *, full: bool) -> Look:
        spots = {"default": {2: Spot("2026-01-01 00:00:00.000000", 1)}} if self.claims else {}
        return Look(spots, frozenset(), "2026-01-01 00:00:00.000000")

    def claim(self, claim: Claim) -> list[ClaimedJob]:
        answer = self.claims.pop(0) if self.claims else []
        if isinstance(answer, Exception):
            raise answer
        return answer

    def turn_over(self, settlements: Any, claim: Claim) -> Any:
        if self.turning is not None:
            raise self.turning
        return super().turn_over(settlements, claim)

    def resolve(self) -> None:
        self.resolved += 1
        error = self.resolutions.pop(0) if self.resolutions else None
        if error is not None:
            raise error


class Interrupting(Timekeeper):
    """Where it is given a reason, it interrupts as soon as it watches: before the handler is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.whys: list[Interruption | None] = []

    def watch(self, attempt: Attempt) -> None:
        super().watch(attempt)
        if self.whys and (why := self.whys.pop(0)) is not None:
            attempt.interrupt(why)


class Bench:
    """One worker, its keeper and what is heard of them."""

    def __init__(self, store: ClaimStore) -> None:
        self.store, self.gate = store, Gate()
        self.events, self.heard = listening()
        self.keeper = LeaseKeeper(cast(Any, store), self.events, 30.0)
        self.registry = Registry()
        self.timekeeper = Interrupting()
        shop = Shop(
            policies={"default": QueueConfig()},
            registry=self.registry,
            events=self.events,
            keeper=self.keeper,
            timekeeper=self.timekeeper,
            bell=Bell(),
            gate=self.gate,
            identity=Identity(),
            sizes={"default": BatchSize(10)},
            patience=5.0,
            finish=lambda cursor, job: True,
            children=Children([], None, self.events, needed=False),
        )
        self.worker = Worker("w-1", WorkerConfig(), cast(Any, store), shop)

    def handle(self, name: str, function: Any) -> None:
        self.registry.add(Handler(name, function))

    def ends(self) -> dict[int, Action]:
        """What was written of which job."""
        return {one.job.id: one.action for settlements in self.store.settled for one in settlements}

    def end(self) -> None:
        self.gate.close()
        self.worker.thread.join(10)
        assert not self.worker.thread.is_alive()


NewBench = Callable[..., Bench]


@pytest.fixture
def benches() -> Iterator[NewBench]:
    """Makes benches whose worker is ended after the test."""
    made: list[Bench] = []

    def make(*claims: list[ClaimedJob] | Exception) -> Bench:
        made.append(Bench(ClaimStore(*claims)))
        return made[-1]

    yield make
    for bench in made:
        bench.end()


def test_a_worker_rests_only_when_it_knows_what_its_unanswered_claim_took(benches: NewBench) -> None:
    bench = benches(ConnectionLost("gone at commit", outcome_unknown=True))
    bench.store.resolutions = [None, ConnectionLost("gone"), ConnectionLost("gone")]
    bench.worker.start()
    wait_for(lambda: bench.store.resolved >= 4, 10, "the claim's outcome to be asked for until it is known")


def test_a_worker_that_ends_gives_back_first_what_its_unanswered_claim_took(benches: NewBench) -> None:
    bench = benches(ConnectionLost("gone at commit", outcome_unknown=True))
    bench.store.resolutions = [None, *[ConnectionLost("gone")] * 6]
    bench.worker.start()
    wait_for(lambda: bench.store.resolved >= 2, 10, "the claim's outcome to be asked for")
    bench.end()
    assert bench.store.resolutions == []
    assert bench.store.closed


def test_a_worker_in_doubt_about_a_claim_asks_again_before_a_sweep_could_have_looked_twice(benches: NewBench) -> None:
    bench = benches(ConnectionLost("gone at commit", outcome_unknown=True))
    bench.store.resolutions = [None, *[ConnectionLost("gone")] * 12]
    pauses: list[float] = []
    waited, bench.gate.wait = bench.gate.wait, lambda seconds: bool(pauses.append(seconds)) or waited(0.0)  # type: ignore[method-assign]
    bench.worker.start()
    wait_for(lambda: not bench.store.resolutions, 10, "the claim's outcome to be known")
    assert max(pauses) < 1.0  # two looks are at least a second apart, however short the lease


def test_a_job_that_could_not_be_renewed_for_half_its_lease_is_run_once_it_can_be(benches: NewBench) -> None:
    job = claimed(lease=1.0)
    bench = benches([replace(job, claimed_at=monotonic() - 0.6)])
    bench.handle("noop", lambda job: None)
    away_until = monotonic() + 0.7

    def renewals(lease: HeldLease) -> Renewal:
        if monotonic() < away_until:
            raise ConnectionLost("away")
        return Renewal.RENEWED

    bench.store.renewals = renewals
    bench.worker.start()
    wait_for(lambda: bench.ends(), 10, "the job's end")
    assert bench.ends() == {1: Action.FINISH}
    wait_for(lambda: bench.keeper.held() == [], 10, "nothing to be renewed that nobody works on")


def test_a_job_whose_row_could_not_be_read_before_the_stops_deadline_stays_held(benches: NewBench) -> None:
    bench = benches([claimed()])

    def completes(job: Job) -> None:
        job.complete(None)
        bench.gate.deadline = 0.0

    bench.handle("noop", completes)
    bench.worker.start()
    wait_for(lambda: bench.store.resolved >= 2, 10, "the next round")
    assert [lease.job.id for lease in bench.keeper.held()] == [1] and not bench.heard.of(JobSucceeded)


def test_a_waiting_job_that_could_not_be_renewed_before_the_stops_deadline_stays_held(benches: NewBench) -> None:
    job = claimed()
    bench = benches([replace(job, claimed_at=monotonic() - 20.0)])  # more than half of its lease is over
    bench.gate.deadline = 0.0
    bench.worker.start()
    wait_for(lambda: bench.store.resolved >= 2, 10, "the next round")
    assert [lease.job.id for lease in bench.keeper.held()] == [1] and not bench.ends()


@pytest.mark.parametrize("why", Interruption)
def test_a_job_that_is_interrupted_before_its_handler_is_entered_is_given_back(benches: Any, why: Interruption) -> None:
    bench = benches([claimed(1, max_attempts=1)])
    bench.handle("noop", lambda job: None)
    bench.timekeeper.whys = [why]
    bench.worker.start()
    wait_for(lambda: bench.ends() == {1: Action.RELEASE}, 10, "the job to be given back")
    wait_for(lambda: bench.heard.of(JobReleased), 10, "it to be told")
    (told,) = bench.heard.of(JobReleased)
    assert (told.reason, told.ran) == ("not started", False)


def test_a_handler_that_can_not_be_entered_is_told_of_once_until_it_was(benches: Any) -> None:
    bench = benches(*([claimed(number)] for number in range(1, 6)))
    bench.handle("noop", lambda job: None)
    bench.timekeeper.whys = [Interruption.TIMEOUT, Interruption.TIMEOUT, None, Interruption.TIMEOUT]
    bench.worker.start()
    wait_for(lambda: len(bench.ends()) == 5, 10, "all jobs' ends")
    assert [bench.ends()[number] for number in (3, 5)] == [Action.FINISH] * 2
    told = bench.heard.of(Problem)
    assert [one.where for one in told] == ["handler noop"] * 2 and "no attempt is spent" in told[0].error


def test_after_a_bug_beside_a_handler_what_had_ended_is_written_and_what_waits_goes_back(benches: NewBench) -> None:
    jobs = [claimed(number) for number in (1, 2, 3)]
    bench = benches(jobs)
    ran: list[int] = []

    def noop(job: Job) -> None:
        ran.append(job.id)

    bench.handle("noop", noop)
    run = bench.worker.runner.run

    def faulty(lease: Lease) -> Done | None:
        if lease.job.id == 2:
            raise KeyError("a bug")
        return run(lease)

    bench.worker.runner.run = faulty  # type: ignore[method-assign]
    bench.worker.start()
    wait_for(lambda: len(bench.ends()) == 2, 10, "both ends")
    assert bench.ends() == {1: Action.FINISH, 3: Action.RELEASE} and ran == [1]
    wait_for(lambda: bench.keeper.held() == [], 10, "nothing to be renewed that nobody works on")
    assert len(bench.heard.of(JobSucceeded)) == 1 and len(bench.heard.of(Problem)) == 1


@pytest.mark.parametrize("stray", [SystemExit, KeyboardInterrupt, ValueError])
def test_what_a_handler_left_behind_to_be_thrown_later_does_not_end_the_thread(benches: Any, stray: Any) -> None:
    bench = benches()
    bench.handle("noop", lambda job: None)
    bench.worker.start()
    ident = ctypes.c_ulong(bench.worker.thread.ident)
    for number in (1, 2):
        wait_for(lambda: bench.worker.state == "idle", 10, "it to rest")
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(stray))
        wait_for(lambda many=number: len(bench.heard.of(Problem)) == many, 10, "it to be told")
    bench.store.claims.append([claimed(7)])
    wait_for(lambda: bench.ends() == {7: Action.FINISH}, 10, "the next job to run")
    assert stray.__name__ in bench.heard.of(Problem)[0].error


@pytest.mark.parametrize("trouble", [ConnectionLost("gone"), ValueError("a bug"), KeyboardInterrupt()])
def test_whatever_becomes_of_the_next_claim_the_ends_before_it_are_written(benches: Any, trouble: Exception) -> None:
    bench = benches([claimed(1)], [claimed(2)])
    bench.handle("noop", lambda job: None)
    bench.store.turning = trouble
    bench.worker.start()
    wait_for(lambda: len(bench.ends()) == 2, 10, "both ends")
    assert [one.action for batch in bench.store.settled for one in batch] == [Action.FINISH, Action.FINISH]
    assert bench.keeper.held() == []


def test_a_setback_is_over_when_a_claim_is_answered_not_when_the_job_is(benches: NewBench) -> None:
    bench, go = benches(TransactionFailed("a deadlock", 1213), [claimed(1)]), threading.Event()
    bench.worker.setback = Setback(lambda: 0.0)
    bench.handle("noop", lambda job: go.wait(20))
    bench.worker.start()
    wait_for(lambda: bench.worker.runner.attempt, 10, "the job to run")
    bench.worker.setback._clock = lambda: LASTING  # as many seconds later
    assert bench.worker.setback.lasting() is None
    go.set()


def test_a_setback_is_over_when_a_look_finds_that_others_have_done_the_work(benches: NewBench) -> None:
    bench = benches(TransactionFailed("a lock on the table", 1205))
    bench.worker.setback = Setback(lambda: 0.0)
    bench.worker.start()
    wait_for(bench.worker._shop.bell.idle, 10, "it to rest")
    bench.worker.setback._clock = lambda: LASTING
    assert bench.worker.setback.lasting() is None


def test_a_look_alone_ends_no_setback_where_what_it_saw_can_not_be_claimed(benches: NewBench) -> None:
    failures = [TransactionFailed("the table is locked for writes", 1205) for _ in range(99)]
    bench = benches(*failures)
    bench.worker.setback = Setback(lambda: 0.0)
    bench.worker.start()
    wait_for(lambda: len(bench.store.claims) < 97, 10, "some claims to fail")
    bench.worker.setback._clock = lambda: LASTING
    assert "the table is locked" in (bench.worker.setback.lasting() or "")
    bench.store.claims = []
