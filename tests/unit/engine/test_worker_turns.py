"""A worker between two batches: the ends of one and the claim of the next, whatever hits them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from qd.clock import monotonic
from qd.job import ClaimedJob, Job
from qd.outcome import Action, Settlement, Verdict
from qd.setback import LASTING
from qd.store.protocol import Claim, Look, Spot
from tests.support.waiting import wait_for
from tests.unit.engine.fakes import claimed
from tests.unit.engine.test_worker import Bench, ClaimStore

NOW = "2026-01-01 00:00:00.000000"
FINISH, RELEASE = Action.FINISH, Action.RELEASE


class TurningStore(ClaimStore):
    """A store that claims behind ends as scripted."""

    def __init__(self, *claims: list[ClaimedJob] | Exception) -> None:
        super().__init__(*claims)
        self.turns: list[list[ClaimedJob] | BaseException] = []
        self.looking: Exception | None = None

    def look(self, queues: Any, *, full: bool) -> Look:
        if self.looking is not None:
            error, self.looking = self.looking, None
            raise error
        return hits("default") if self.claims or self.turns else hits()

    def turn_over(
        self, settlements: Sequence[Settlement], claim: Claim
    ) -> tuple[list[Verdict], list[ClaimedJob] | None]:
        answer = self.turns.pop(0) if self.turns else None
        if isinstance(answer, BaseException):
            raise answer
        return self.settle(settlements), answer


def hits(*queues: str) -> Look:
    """A look that saw a job in each of these queues."""
    return Look({queue: {2: Spot(NOW, 1)} for queue in queues}, frozenset(), NOW)


NewBench = Callable[[list[list[ClaimedJob] | BaseException]], Bench]


@pytest.fixture
def benches() -> Iterator[NewBench]:
    """Makes benches with job 1 to be claimed, and what is claimed behind it; their workers are ended after the test."""
    made: list[Bench] = []

    def make(turns: list[list[ClaimedJob] | BaseException]) -> Bench:
        store = TurningStore([claimed(1)])
        store.turns = turns
        made.append(Bench(store))
        made[-1].handle("noop", lambda job: None)
        return made[-1]

    yield make
    for bench in made:
        bench.end()


def test_what_is_claimed_behind_a_batch_is_run(benches: NewBench) -> None:
    bench = benches([[claimed(2)], [claimed(3)]])
    bench.worker.start()
    wait_for(lambda: bench.ends() == {1: FINISH, 2: FINISH, 3: FINISH}, 10, "all ends")


def test_a_look_that_breaks_behind_a_batch_costs_none_of_its_ends(benches: NewBench) -> None:
    bench = benches([])

    def outlasts_the_look(job: Job) -> None:
        bench.worker._claimant.forget()
        bench.worker._shop.sights.clear()
        bench.store.looking = KeyError("a bug")  # type: ignore[attr-defined]

    bench.handle("slow", outlasts_the_look)
    job = claimed(1)
    job.type = "slow"
    bench.store.claims = [[job]]
    bench.worker.start()
    wait_for(lambda: bench.ends() == {1: FINISH}, 10, "its end")
    wait_for(lambda: bench.keeper.held() == [], 10, "nothing to be renewed that nobody works on")


def test_what_was_claimed_behind_a_batch_goes_back_where_its_thread_can_not_go_on(benches: NewBench) -> None:
    """Also to the number of jobs that may be run in all."""
    bench = benches([[claimed(2)]])
    bench.gate._left = 2
    tidy = bench.worker.runner.tidy

    def broken() -> None:
        bench.worker.runner.tidy = tidy  # type: ignore[method-assign]
        raise OSError("a bug")

    bench.worker.runner.tidy = broken  # type: ignore[method-assign]
    bench.worker.start()
    wait_for(lambda: bench.ends() == {1: FINISH, 2: RELEASE}, 10, "both ends")
    wait_for(lambda: bench.worker.state == "idle", 10, "it to rest")
    assert bench.gate.take(9) == 1


def test_nothing_is_claimed_for_a_child_that_is_to_be_replaced_first(benches: NewBench) -> None:
    bench = benches([[claimed(2)]])
    bench.worker._home = SimpleNamespace(  # type: ignore[assignment]
        ready=lambda turn, unwanted: True, alive=lambda: True, stays=lambda: False, close=lambda patience: None
    )
    bench.worker.start()
    wait_for(lambda: bench.ends() == {1: FINISH}, 10, "job 1's end")
    wait_for(lambda: bench.worker.state == "idle", 10, "it to rest")
    assert bench.ends() == {1: FINISH}


def test_a_setback_is_over_when_a_claim_behind_a_batch_is_answered(benches: NewBench) -> None:
    bench = benches([[claimed(2)]])
    begun, go = threading.Event(), threading.Event()

    def noop(job: Job) -> None:
        if job.id == 1:
            bench.worker.setback.met("a look that failed beside the job")
        else:
            begun.set()
            go.wait(20)

    bench.registry.remove("noop")
    bench.handle("noop", noop)
    bench.worker.start()
    assert begun.wait(10)
    bench.worker.setback._clock = lambda: monotonic() + LASTING
    assert bench.worker.setback.lasting() is None
    go.set()
