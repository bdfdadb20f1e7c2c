"""Batches: what may be taken from them by whom, and how large the next one is."""

from __future__ import annotations

from qd.batch import MOST, Batch, BatchSize
from qd.lease import Lease
from qd.policy import unstarted
from tests.support.waiting import wait_for
from tests.unit.engine.fakes import claimed


def leases(count: int) -> list[Lease]:
    return [Lease(claimed(i)) for i in range(count)]


def test_what_has_not_started_in_time_can_be_taken_once() -> None:
    batch = Batch(leases(3), start_within=0.0)
    assert batch.next() is not None
    late = wait_for(batch.take_unstarted, 2, "the rest to be overdue")
    assert [lease.job.id for lease in late] == [1, 2]
    assert batch.next() is None and batch.take_unstarted(all_of_it=True) == []


def test_nothing_is_overdue_in_a_batch_of_fixed_size_but_a_stop_takes_all() -> None:
    batch = Batch(leases(2), start_within=None)
    assert batch.take_unstarted() == []
    assert len(batch.take_unstarted(all_of_it=True)) == 2


def test_the_last_ends_of_a_batch_are_left_for_the_claim_of_the_next() -> None:
    batch = Batch(leases(2), start_within=None)
    first, second = batch.next(), batch.next()
    assert first is not None and second is not None
    assert batch.add((first, unstarted(first.job))) == [] == batch.add((second, unstarted(second.job)))
    assert [lease.job.id for lease, _ in batch.take_done()] == [first.job.id, second.job.id]


def test_ends_that_have_waited_long_enough_are_due_while_others_wait_to_start() -> None:
    batch = Batch(leases(50), start_within=None)
    written = []

    def one_more() -> bool:
        lease = batch.next()
        assert lease is not None
        written.extend(batch.add((lease, unstarted(lease.job))))
        return bool(written)

    wait_for(one_more, 5, "the first end to be due")
    assert written[0][0].job.id == 0 and batch.next() is not None


def test_an_end_waits_for_its_batch_but_not_for_long() -> None:
    batch = Batch(leases(2), start_within=None)
    first = batch.next()
    assert first is not None
    batch.add((first, unstarted(first.job)))
    assert len(wait_for(batch.take_late, 2, "the end to be late")) == 1


def test_auto_starts_with_one_and_grows_fourfold_to_its_most() -> None:
    size = BatchSize(None)
    assert size.size() == 1
    size.measured(0.00001)
    assert [size.size() for _ in range(5)] == [4, 16, 64, MOST, MOST]


def test_auto_takes_about_a_tenth_of_a_second_of_work() -> None:
    size = BatchSize(None)
    size.measured(0.02)
    assert [size.size(), size.size()] == [4, 5]


def test_one_slow_job_makes_the_next_batch_small_at_once() -> None:
    size = BatchSize(None)
    for _ in range(50):
        size.measured(0.0001)
        size.size()
    assert size.size() == MOST
    size.measured(2.0)
    assert size.size() == 1


def test_a_configured_number_stays() -> None:
    size = BatchSize(7)
    size.measured(10.0)
    assert size.size() == 7 and size.start_within is None
