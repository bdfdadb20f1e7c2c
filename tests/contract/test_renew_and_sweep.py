"""Renewal and the taking back of stale rows."""

from __future__ import annotations

import pytest

from qd.outcome import Action, Reason, Verdict
from qd.store.protocol import HeldLease, Renewal, StaleRow
from tests.contract.bench import Bench, ended, finished


def test_a_renewal_moves_the_end_of_the_lease_and_nothing_else(bench: Bench) -> None:
    bench.add(2)
    first, second = bench.claim(2, lease=5.0)
    before = bench.row(first.id, "attempts", "reserved_by", "reserved_at", "lane")
    assert bench.store.renew([HeldLease(first.id, first.token, 500.0)]) == [Renewal.RENEWED]
    assert bench.row(first.id, "attempts", "reserved_by", "reserved_at", "lane") == before
    first_end, second_end = (bench.row(job.id, "available_at") for job in (first, second))
    assert first_end > second_end  # type: ignore[operator]


def test_each_lease_is_renewed_for_its_own_time(bench: Bench) -> None:
    bench.add(2)
    short, long = bench.claim(2)
    bench.store.renew([HeldLease(short.id, short.token, 100.0), HeldLease(long.id, long.token, 900.0)])
    ends = dict(bench.sql("SELECT id, available_at FROM qd_jobs"))
    assert ends[short.id] < ends[long.id]


def test_renewing_to_the_value_that_is_there_already_is_a_renewal(bench: Bench) -> None:
    bench.add(1)
    (job,) = bench.claim(1)
    lease = HeldLease(job.id, job.token, 60.0)
    assert [bench.store.renew([lease]) for _ in range(20)] == [[Renewal.RENEWED]] * 20


def test_an_expired_lease_that_nobody_took_is_still_held(bench: Bench) -> None:
    bench.add(1)
    (job,) = bench.claim(1)
    bench.shift(job.id, -3600)
    assert bench.store.renew([HeldLease(job.id, job.token, 60.0)]) == [Renewal.RENEWED]
    assert bench.store.stale(["default"], 10) == []


def test_lost_and_gone_leases_are_told_apart_in_order(bench: Bench) -> None:
    bench.add(4)
    kept, taken, given_back, done = bench.claim(4)
    bench.sql("UPDATE qd_jobs SET reserved_by = 'another' WHERE id = %s", taken.id)
    bench.store.settle([ended(given_back, Action.RETRY, delay=60.0), finished(done)])
    leases = [HeldLease(job.id, job.token, 60.0) for job in (done, given_back, taken, kept)]
    assert bench.store.renew(leases) == [Renewal.GONE, Renewal.LOST, Renewal.LOST, Renewal.RENEWED]


def test_many_leases_are_renewed_in_one_call(bench: Bench) -> None:
    bench.add(450)
    jobs = bench.claim(450)
    leases = [HeldLease(job.id, job.token, 60.0) for job in jobs]
    assert bench.store.renew(leases) == [Renewal.RENEWED] * 450
    assert bench.store.renew([]) == []


def test_stale_shows_what_has_run_out_of_the_asked_queues_only(bench: Bench) -> None:
    bench.add(2)
    bench.add(1, queue="other")
    gone, held = bench.claim(2)
    (foreign,) = bench.claim(1, queue="other")
    for job in (gone, foreign):
        bench.shift(job.id, -5)
    (row,) = bench.store.stale(["default"], 10)
    assert (row.job_id, row.queue, row.type, row.token, row.attempts) == (gone.id, "default", "noop", gone.token, 1)
    assert bench.store.stale(["default"], 10) == [row], "equal at two looks if nobody touched it"
    assert len(bench.store.stale(["default", "other"], 10)) == 2
    assert bench.store.stale([], 10) == []
    assert bench.row(held.id, "reserved_by") == (held.token,)


def test_stale_is_limited_and_shows_the_oldest_first_over_priorities(bench: Bench) -> None:
    for level in (2, 0, 3):
        bench.add(1, priority=level)
    jobs = [bench.claim(1)[0] for _ in range(3)]
    for age, job in zip((100, 300, 200), jobs, strict=True):
        bench.shift(job.id, -age)
    assert [row.job_id for row in bench.store.stale(["default"], 2)] == [jobs[1].id, jobs[2].id]


def _stale(bench: Bench, **columns: object) -> StaleRow:
    bench.add(1, **columns)  # type: ignore[arg-type]
    (job,) = bench.claim(1)
    bench.shift(job.id, -5)
    (row,) = bench.store.stale(["default"], 10)
    return row


def test_a_reclaimed_row_is_ready_again_with_a_crash_more_and_tells_who_lost_it(bench: Bench) -> None:
    row = _stale(bench)
    assert bench.store.reclaim(row, 3) is Verdict.SETTLED
    assert bench.row(row.job_id, "lane", "attempts", "crashes", "reserved_by", "reserved_at") == (0, 1, 1, None, None)
    (entry,) = bench.store.job(row.job_id).history
    assert (entry["outcome"], entry["worker"], entry["attempt"]) == ("lost", row.token, 1)
    (again,) = bench.claim(5)
    assert (again.id, again.attempt, again.crashes) == (row.job_id, 2, 1)


@pytest.mark.parametrize("own_limit", [None, 2])
def test_a_row_that_was_lost_on_its_last_attempt_is_buried(bench: Bench, own_limit: int | None) -> None:
    row = _stale(bench, max_attempts=own_limit, attempts=1)
    assert bench.store.reclaim(row, 2) is Verdict.BURIED
    assert bench.row(row.job_id, "id") is None
    letter = bench.store.failed(row.job_id)
    assert (letter.reason, letter.attempts, letter.reserved_by) == (Reason.LOST.value, 2, row.token)
    assert [entry["outcome"] for entry in letter.history] == ["lost"]


def test_a_row_that_was_renewed_settled_or_retaken_since_the_look_is_left(bench: Bench) -> None:
    renewed, settled, retaken = (_stale_of(bench) for _ in range(3))
    bench.store.renew([HeldLease(renewed.job_id, renewed.token, 60.0)])
    bench.sql("DELETE FROM qd_jobs WHERE id = %s", settled.job_id)
    bench.sql("UPDATE qd_jobs SET reserved_by = 'another' WHERE id = %s", retaken.job_id)
    assert [bench.store.reclaim(row, 3) for row in (renewed, settled, retaken)] == [Verdict.LOST] * 3
    assert bench.row(renewed.job_id, "reserved_by", "crashes") == (renewed.token, 0)
    assert bench.row(retaken.job_id, "reserved_by", "crashes") == ("another", 0)


def test_a_row_whose_lease_ran_out_again_at_another_time_is_left(bench: Bench) -> None:
    row = _stale(bench)
    bench.shift(row.job_id, -1)
    assert bench.store.reclaim(row, 3) is Verdict.LOST


def test_only_one_of_two_sweeps_takes_a_row_back(bench: Bench) -> None:
    row = _stale(bench)
    other = bench.new_store("other")
    assert [bench.store.reclaim(row, 3), other.reclaim(row, 3)] == [Verdict.SETTLED, Verdict.LOST]
    assert bench.row(row.job_id, "crashes") == (1,)


def _stale_of(bench: Bench) -> StaleRow:
    (job_id,) = bench.add(1)
    (job,) = bench.claim(1)
    assert job.id == job_id
    bench.shift(job_id, -5)
    return next(row for row in bench.store.stale(["default"], 10) if row.job_id == job_id)
