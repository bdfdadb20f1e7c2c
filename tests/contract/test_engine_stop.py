"""The engine on every store: a stop, its grace, and handlers that don't end."""

from __future__ import annotations

import threading

from qd.clock import monotonic
from qd.config.model import BackoffConfig, QueueConfig
from qd.events import (
    JobDeadLettered,
    LeasesLeft,
    WorkerReplaced,
)
from tests.contract.engine_shop import QUICK, Shop, dead
from tests.support.waiting import wait_for


def test_a_stop_lets_the_running_job_end_and_gives_the_waiting_ones_back(shop: Shop) -> None:
    bench = shop.bench
    (running,) = bench.add(type="hold")
    waiting = bench.add(5)
    engine = shop.start(threads=1, batch=6)
    wait_for(lambda: shop.ran, 10, "the first to run")
    stop = threading.Thread(target=engine.stop, args=(monotonic() + 20,))
    stop.start()
    wait_for(lambda: bench.one("SELECT COUNT(*) FROM qd_jobs WHERE lane = 1") == 1, 5, "the waiting to be given back")
    shop.go.set()
    stop.join(10)
    assert not stop.is_alive() and engine.drained() and not engine.stuck()
    assert bench.row(running, "id") is None
    assert all(bench.row(job, "attempts", "lane") == (0, 0) for job in waiting)
    assert [job for _, job, _ in shop.ran] == [running]


def test_after_the_grace_a_running_job_is_cut_off_and_given_back(shop: Shop) -> None:
    bench = shop.bench
    (cut,) = bench.add(type="hold")
    (once,) = bench.add(type="hold", max_attempts=1)
    engine = shop.start()
    wait_for(lambda: len(shop.ran) == 2, 10, "both to run")
    engine.stop(monotonic() + 0.2)
    assert bench.row(cut, "attempts", "lane", "reserved_by") == (0, 0, None)
    assert dead(bench) == {once: "interrupted"}
    assert not engine.stuck()


def test_a_stop_says_what_it_could_not_write(shop: Shop) -> None:
    bench = shop.bench
    bench.add(type="hold")
    engine = shop.start(threads=1)
    wait_for(lambda: shop.ran, 10, "it to run")
    bench.sql("ALTER TABLE qd_jobs RENAME TO qd_away")
    engine.stop(monotonic() + 0.1)
    if engine.stuck():  # on a machine too busy to interrupt it in time
        engine.last_act()
    bench.sql("ALTER TABLE qd_away RENAME TO qd_jobs")
    (left,) = bench.events(LeasesLeft)
    assert left.jobs == bench.jobs() == 1


def test_a_handler_that_cannot_be_stopped_keeps_its_lease_until_the_last_act(shop: Shop) -> None:
    bench = shop.bench
    (stuck,) = bench.add(type="deaf")
    engine = shop.start()
    wait_for(lambda: shop.ran, 10, "it to run")
    engine.stop(monotonic() + 0.1)
    assert engine.stuck() and bench.row(stuck, "lane") == (1,)
    engine.last_act()
    assert bench.row(stuck, "attempts", "lane") == (0, 0)


def test_a_handler_that_hangs_past_its_time_out_until_the_stop_has_spent_its_attempt(shop: Shop) -> None:
    bench = shop.bench
    (stuck,) = bench.add(type="deaf")
    (last,) = bench.add(type="deaf", max_attempts=1)
    engine = shop.start(default=QueueConfig(lease=6.0, timeout=0.2, backoff=BackoffConfig(base=0.0)))
    wait_for(
        lambda: len(shop.ran) == 2 and all(a.why for a in engine._timekeeper.running()), 20, "both to be timed out"
    )
    engine.stop(monotonic())
    engine.last_act()
    assert bench.row(stuck, "attempts", "lane") == (1, 0)
    assert bench.row(stuck, "last_error")[0].startswith("timed out; it ended after")
    (dead,) = bench.events(JobDeadLettered)
    assert (dead.job_id, dead.reason) == (last, "timeout") and "timed out; it ended after" in dead.error


def test_a_thread_that_is_stuck_past_its_time_out_is_replaced_and_keeps_its_lease(shop: Shop) -> None:
    bench = shop.bench
    (stuck,) = bench.add(type="deaf")
    engine = shop.start(threads=1, default=QUICK.model_copy(update={"timeout": 0.2}))
    wait_for(lambda: bench.events(WorkerReplaced), 15, "the thread to be replaced")
    (good,) = bench.add()
    wait_for(lambda: good in [job for _, job, _ in shop.ran], 10, "a job behind it to run")
    assert bench.row(stuck, "lane", "attempts") == (1, 1)
    assert engine.oldest_running()["default"] > 0.2
    assert engine.queue_workers()["default"] == 1  # the stuck one serves nothing
    assert all(pulse.overdue() == 0 for pulse in engine.pulses())
    shop.doors[stuck].set()
    wait_for(lambda: bench.row(stuck, "lane") in ((0,), None), 10, "its end to be settled as a time-out")


def test_a_stuck_thread_that_there_was_no_room_to_replace_is_replaced_once_there_is(shop: Shop) -> None:
    bench = shop.bench
    first, second = bench.add(2, type="deaf")
    shop.start(threads=1, default=QUICK.model_copy(update={"timeout": 0.2}))
    wait_for(lambda: len(bench.events(WorkerReplaced)) == 1, 15, "the first to be replaced")
    wait_for(lambda: second in [job for _, job, _ in shop.ran], 10, "the second to run")
    stuck = bench.one("SELECT COUNT(*) FROM qd_jobs WHERE lane = 1")
    assert stuck == 2
    shop.doors[first].set()
    wait_for(lambda: bench.row(first, "lane") != (1,), 10, "the first to end")
    wait_for(lambda: len(bench.events(WorkerReplaced)) == 2, 20, "the second to be replaced")


def test_while_the_last_job_drains_the_rows_are_counted_and_no_thread_serves_its_queue(shop: Shop) -> None:
    bench = shop.bench
    bench.add(type="hold")
    engine = shop.start()
    wait_for(lambda: shop.ran, 10, "it to run")
    stop = threading.Thread(target=engine.stop, args=(monotonic() + 30,))
    stop.start()
    wait_for(lambda: engine.ready() == "stopping", 10, "the drain")
    assert engine.queue_workers() == {"default": 0}
    bench.add(3)
    wait_for(lambda: sum(row.ready for row in engine.sampler.snapshot().rows) == 3, 20, "a count of what waits now")
    assert "sampler" in {pulse.name for pulse in engine.pulses()} and stop.is_alive()
    shop.go.set()
    stop.join(20)
    assert not stop.is_alive() and engine.drained()


def test_who_has_handed_over_counts_no_more_while_its_last_job_drains(shop: Shop) -> None:
    bench = shop.bench
    bench.add(type="hold")
    engine = shop.start()
    wait_for(lambda: shop.ran, 10, "it to run")
    engine.hand_over()
    wait_for(lambda: not engine._counting.alive(), 20, "its sampler to end")
    assert engine.running() == 1 and "sampler" not in {pulse.name for pulse in engine.pulses()}
    shop.go.set()
    wait_for(engine.drained, 20, "its other threads to end")
