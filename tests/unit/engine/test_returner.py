"""What waits beside a long job is handed back or written, whatever befalls one row of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import pytest

from qd.acknowledge import Acknowledger
from qd.batch import Batch
from qd.clock import monotonic
from qd.errors import ConnectionLost, DataRefused, LockWait, StoreError
from qd.events import JobReleased, JobSucceeded, LeaseLostSeen, LeasesExtended
from qd.gate import Gate
from qd.lease import Lease, LeaseKeeper
from qd.maintenance.returner import EVERY, IDLE, Returner
from qd.maintenance.service import ServiceThread
from qd.outcome import Action, Outcome, OutcomeKind, Settlement, Verdict
from qd.rest import Rest
from tests.support.waiting import wait_for
from tests.unit.engine.fakes import FakeStore, claimed, listening


class Locking(FakeStore):
    """A store in which strangers have some rows locked."""

    def __init__(self) -> None:
        super().__init__()
        self.held: set[int] = set()
        self.away: StoreError | None = None
        self.refused: set[int] = set()
        self.written: list[int] = []

    def settle(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        jobs = [one.job.id for one in settlements]
        if self.away is not None:
            raise self.away
        if self.held.intersection(jobs):
            raise LockWait("no lock within 3 s", 1205)
        if self.refused.intersection(jobs) and any(one.outcome.result for one in settlements):
            raise DataRefused("a text", 1366)
        self.written += jobs
        return [Verdict.SETTLED] * len(jobs)


class Bench:
    """A returner, and batches that begin with a job which runs on and on."""

    def __init__(self) -> None:
        self.store, self.gate, self.batches = Locking(), Gate(), cast("list[Batch]", [])
        self.events, self.heard = listening()
        self.keeper = LeaseKeeper(cast(Any, self.store), self.events, 30.0)
        writer = Acknowledger(cast(Any, self.store), self.keeper, self.events, self.gate, lambda: None)
        self.returner = Returner(lambda: self.batches, writer, self.gate, self.store.close, Rest())

    def batch(self, *jobs: int, ended: Sequence[int] = ()) -> Batch:
        """One that has been claimed long ago: these jobs haven't started, those wait to be written."""
        made = Batch(self.keeper.hold([claimed(job) for job in (*ended, 0, *jobs)]), start_within=0.0)
        for _ in ended:
            made.add(self._done(cast(Lease, made.next())))
        made.next()
        made._done_since = -1.0
        self.batches.append(made)
        return made

    def _done(self, lease: Lease) -> tuple[Lease, Settlement]:
        return lease, Settlement(lease.job, Action.FINISH, Outcome(OutcomeKind.SUCCEEDED, result="done"))

    def waiting(self) -> set[int]:
        """Jobs whose leases are held, but for those that run."""
        return {lease.job.id for lease in self.keeper.held()} - {0}

    def rounds(self, number: int) -> None:
        for _ in range(number):
            with suppress(StoreError):  # what its thread does
                self.returner.run_once()


def test_a_locked_row_keeps_no_other_waiting_neither_of_its_batch_nor_of_another() -> None:
    bench = Bench()
    bench.store.held = {1}
    bench.batch(2, 3, ended=[1, 4])
    bench.batch(10, 11)
    bench.rounds(2)
    assert sorted(bench.store.written) == [2, 3, 4, 10, 11]
    assert bench.waiting() == {1}
    bench.batch(20)
    bench.rounds(1)
    assert 20 in bench.store.written


def test_what_nobody_has_started_goes_first() -> None:
    bench = Bench()
    bench.batch(ended=[1])
    bench.batch(10, 11)
    bench.rounds(1)
    assert bench.store.written == [10, 11, 1]


def test_several_locked_rows_are_tried_in_turn() -> None:
    bench = Bench()
    bench.store.held = {1, 2, 3}
    bench.batch(ended=[1, 2, 3, 4])
    bench.rounds(4)
    assert bench.waiting() == {1, 2, 3}
    bench.store.held = {1, 2}
    bench.rounds(3)
    assert bench.waiting() == {1, 2}


def test_what_was_locked_is_written_once_it_is_free_and_said_once() -> None:
    bench = Bench()
    bench.store.held = {1}
    bench.batch(5, ended=[1])
    bench.rounds(5)
    bench.store.held = set()
    assert bench.returner.run_once() == EVERY
    assert bench.waiting() == set() and sorted(bench.store.written) == [1, 5]
    assert len(bench.heard.of(JobSucceeded)) == len(bench.heard.of(JobReleased)) == 1


def test_what_waits_stays_held_and_is_renewed() -> None:
    bench = Bench()
    bench.store.held = {1}
    bench.batch(ended=[1])
    bench.rounds(3)
    (lease,) = [held for held in bench.keeper.held() if held.job.id == 1]
    lease.renewed_at = monotonic() - 20.0
    bench.keeper.run_once()
    assert monotonic() - lease.renewed_at < 10.0 and bench.heard.of(LeasesExtended)


def test_what_waits_and_is_lost_is_forgotten() -> None:
    bench = Bench()
    bench.store.held = {1}
    bench.batch(ended=[1])
    bench.rounds(2)
    (lease,) = [held for held in bench.keeper.held() if held.job.id == 1]
    lease.lose(bench.events, "renewal")
    bench.batches.clear()
    bench.rounds(1)
    assert bench.returner.run_once() == IDLE
    assert bench.store.written == [] and len(bench.heard.of(LeaseLostSeen)) == 1


@pytest.mark.parametrize("error", [ConnectionLost("away", 2003), ConnectionLost("cut", 2013, outcome_unknown=True)])
def test_an_outage_loses_nothing(error: StoreError) -> None:
    bench = Bench()
    bench.store.away = error
    bench.batch(10, ended=[1])
    with pytest.raises(ConnectionLost):
        bench.returner.run_once()
    bench.rounds(3)
    assert bench.waiting() == {1, 10}
    bench.store.away = None
    bench.rounds(1)
    assert sorted(bench.store.written) == [1, 10] and bench.waiting() == set()


def test_a_row_whose_text_is_refused_holds_up_no_other_and_is_written_without() -> None:
    bench = Bench()
    bench.store.refused = {1}
    bench.batch(10, ended=[1, 2])
    bench.rounds(1)
    assert sorted(bench.store.written) == [1, 2, 10] and bench.waiting() == set()


def test_at_its_end_it_writes_what_waits_for_as_long_as_it_takes() -> None:
    bench = Bench()
    bench.store.held = {1}
    bench.batch(ended=[1, 2])
    thread = ServiceThread(bench.returner, bench.events, patience=5.0)
    thread.start()
    wait_for(lambda: bench.store.written == [2], 5, "the row beside it to be written")
    thread.stop()
    assert not thread.join(0.3) and not bench.store.closed
    bench.store.held = set()
    assert thread.join(5) and bench.store.closed
    assert bench.store.written == [2, 1] and bench.waiting() == set()


def test_a_stop_ends_it_at_its_deadline_and_what_could_not_be_written_stays_held() -> None:
    bench = Bench()
    bench.store.held = {1}
    bench.batch(ended=[1])
    bench.rounds(1)
    bench.gate.deadline = monotonic() + 0.2
    bench.returner.close()
    assert bench.store.closed and bench.waiting() == {1}
