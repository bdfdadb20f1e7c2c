"""The engine on every store: jobs of each kind come to their right end, in order, within limits."""

from __future__ import annotations

from collections import Counter

from qd.clock import monotonic
from qd.events import (
    JobDeadLettered,
    JobReleased,
    JobSnoozed,
    JobSucceeded,
    StaleReclaimed,
)
from qd.gate import Gate
from tests.contract.bench import Bench
from tests.contract.engine_shop import QUICK, Shop, dead
from tests.support.waiting import wait_for


def test_jobs_of_every_kind_come_to_their_right_end(shop: Shop) -> None:
    bench = shop.bench
    done, thrice, boom = bench.add(200), bench.add(5, type="third"), bench.add(3, type="boom")
    (snoozed,), (rejected,), (retried,) = (bench.add(type=t) for t in ("snooze", "reject", "retry"))
    shop.start(threads=4)
    shop.until_empty()
    starts = Counter(job for _, job, _ in shop.ran)
    assert all(starts[job] == 1 for job in [*done, rejected])
    assert all(starts[job] == 3 for job in [*thrice, *boom, retried])
    assert [attempt for _, job, attempt in shop.ran if job == snoozed] == [1, 1]
    assert dead(bench) == {**dict.fromkeys(boom, "error"), rejected: "rejected", retried: "error"}
    assert len(bench.events(JobSucceeded)) == len(done) + len(thrice) + 1
    assert len(bench.events(JobSnoozed)) == 1


def test_a_queue_is_served_before_the_next_and_a_priority_before_the_next(shop: Shop) -> None:
    bench = shop.bench
    low, second = bench.add(5, queue="first", priority=3), bench.add(5, queue="second", priority=0)
    urgent = bench.add(5, queue="first", priority=0)
    shop.start(threads=1, first=QUICK, second=QUICK)
    shop.until_empty()
    assert [job for _, job, _ in shop.ran] == [*urgent, *low, *second]


def test_a_limit_ends_the_threads_and_leaves_the_rest_untouched(shop: Shop) -> None:
    bench = shop.bench
    bench.add(10)
    engine = shop.start(gate=Gate(3, leave_when_empty=True), threads=2)
    wait_for(lambda: engine.wait_for_workers(0.1), 10, "the threads to end")
    assert len(shop.ran) == 3 and bench.jobs() == 7
    assert bench.one("SELECT COUNT(*) FROM qd_jobs WHERE type <> 'qd.post' AND (attempts > 0 OR lane <> 0)") == 0


def test_an_undecodable_payload_is_a_dead_letter_kept_byte_for_byte(shop: Shop) -> None:
    bench = shop.bench
    digits = "[" + "9" * 5000 + "]"
    if bench.server and not bench.one("SELECT JSON_VALID(%s)", digits):  # MySQL refuses it at the door
        bench.sql("ALTER TABLE qd_jobs DROP CHECK qd_jobs_payload_check")
    (bad,) = bench.add(payload=digits)
    (good,) = bench.add()
    shop.start()
    shop.until_empty()
    assert dead(bench) == {bad: "payload"}
    kept = bench.one("SELECT payload FROM qd_failed_jobs WHERE job_id = %s", bad)
    assert kept == digits
    assert [job for _, job, _ in shop.ran] == [good]


def test_a_type_that_nobody_knows_is_put_back_uncounted_and_costs_its_neighbours_nothing(shop: Shop) -> None:
    bench = shop.bench
    (stranger,) = bench.add(type="nobody_knows_me")
    (good,) = bench.add()
    shop.start()
    wait_for(lambda: shop.ran, 10, "the good job to run")
    wait_for(lambda: bench.events(JobReleased), 10, "the stranger to be put back")
    assert bench.row(stranger, "attempts", "lane", "reserved_by") == (0, 0, None)
    assert [job for _, job, _ in shop.ran] == [good]


def test_jobs_behind_a_long_one_of_the_same_batch_are_handed_to_others(shop: Shop) -> None:
    bench = shop.bench
    bench.add(30)
    shop.start(threads=2)
    shop.until_empty()
    (long,) = bench.add(type="hold", due=-5)
    quick = bench.add(10)
    both = {long, *quick}  # the long one, due so long ago, is found by the full look
    wait_for(lambda: {job for _, job, _ in shop.ran} >= both, 45, "the quick ones to run beside the long one")
    wait_for(lambda: bench.jobs() == 1, 10, "their ends to be written while the long one runs")
    shop.go.set()
    shop.until_empty()
    assert Counter(job for _, job, _ in shop.ran).most_common(1)[0][1] == 1


def test_a_stale_row_is_taken_back_and_its_last_attempt_buried(shop: Shop) -> None:
    bench = shop.bench
    (first,), (last,) = bench.add(), bench.add(max_attempts=1)
    for _ in range(2):
        assert bench.claim(1)
    for job in (first, last):
        bench.shift(job, -1)
    shop.start(default=QUICK.model_copy(update={"lease": 3.0, "quarantine": "alone"}))
    shop.until_empty()
    assert [run for run in shop.ran if run[1] == first] == [("noop", first, 2)]
    assert dead(bench) == {last: "lost"}
    assert len(bench.events(StaleReclaimed)) == 2 and len(bench.events(JobDeadLettered)) == 1


def test_a_long_job_keeps_its_lease(shop: Shop) -> None:
    bench = shop.bench
    (job,) = bench.add(type="hold")
    shop.start(default=QUICK.model_copy(update={"lease": 3.0}))
    wait_for(lambda: shop.ran, 10, "it to run")
    begun, least = monotonic(), 99.0
    while monotonic() - begun < 5:
        least = min(least, remaining(bench, job))
    assert least > 0.5
    shop.go.set()
    shop.until_empty()
    assert len(shop.ran) == 1


def remaining(bench: Bench, job: int) -> float:
    """Seconds that a job's lease still runs, by the database's clock."""
    return (bench.store.job(job).available_at - bench.store.now()).total_seconds()


def test_a_paused_queue_is_not_served_until_it_is_resumed(shop: Shop) -> None:
    bench = shop.bench
    bench.store.pause("default")
    bench.add(3)
    engine = shop.start()
    bench.add(1, queue="other")
    shop.start(other=QUICK)
    wait_for(lambda: shop.ran, 10, "the other queue to be served")
    assert engine.running() == 0 and len(shop.ran) == 1
    bench.store.resume("default")
    shop.until_empty()


def test_a_retired_engine_ends_by_itself_while_its_successor_works(shop: Shop) -> None:
    bench = shop.bench
    (held,) = bench.add(type="hold")
    old = shop.start()
    wait_for(lambda: shop.ran, 10, "the old one to work")
    old.retire()
    new = shop.start()
    (job,) = bench.add()
    wait_for(lambda: len(shop.ran) == 2, 10, "the new one to work")
    assert not old.drained() and new.ready() is None
    shop.go.set()
    wait_for(old.drained, 10, "the old one's threads to end")
    shop.until_empty()
    assert [run[1] for run in shop.ran] == [held, job]
