"""The engine on every store: jobs of each kind come to their right end, in order, within limits."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

import qd
from qd.clock import monotonic
from qd.config.model import BackoffConfig, Config, HttpConfig, QueueConfig, ShutdownConfig, WorkerConfig
from qd.daemon.engine import Engine
from qd.events import (
    Events,
    JobDeadLettered,
    JobReleased,
    JobSnoozed,
    JobSucceeded,
    LeasesLeft,
    StaleReclaimed,
    WorkerReplaced,
)
from qd.gate import Gate
from qd.registry import Handler, Registry
from tests.contract.bench import Bench
from tests.support.waiting import wait_for

QUICK = QueueConfig(lease=6.0, timeout=30.0, backoff=BackoffConfig(base=0.05, cap=0.2))


class Shop:
    """An engine on a bench, and what its handlers did."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.ran: list[tuple[str, int, int]] = []
        self.registry = Registry()
        self.go = threading.Event()
        self.doors: dict[int, threading.Event] = defaultdict(threading.Event)
        self.engines: list[Engine] = []
        for function in (self.noop, self.boom, self.third, self.snooze, self.reject, self.retry, self.hold, self.deaf):
            self.registry.add(Handler(function.__name__, function))

    def start(
        self, *, gate: Gate | None = None, threads: int = 2, batch: Any = "auto", **queues: QueueConfig
    ) -> Engine:
        """Starts an engine that serves the given queues, the first the first."""
        queues = queues or {"default": QUICK}
        config = Config(
            database=self.bench.config,
            queues=queues,
            workers=(WorkerConfig(queues=tuple(queues), threads=threads),),
            batch=batch,
            http=HttpConfig(listen=None, refresh=1.0),
            shutdown=ShutdownConfig(grace=1.0),
        )
        database = self.bench.again(Events(self.bench.seen.append))
        database.check()
        engine = Engine(config, self.registry, database, Events(self.bench.seen.append), gate)
        self.engines.append(engine)
        engine.start()
        return engine

    def until_empty(self, within: float = 20.0) -> None:
        wait_for(lambda: self.bench.jobs() == 0, within, "all jobs to be settled")

    def close(self) -> None:
        self.go.set()
        for door in list(self.doors.values()):
            door.set()
        for engine in self.engines:
            engine.stop(monotonic() + 2)

    def note(self, job: qd.Job) -> None:
        self.ran.append((job.type, job.id, job.attempt))

    def noop(self, job: qd.Job) -> str:
        self.note(job)
        return "done"

    def boom(self, job: qd.Job) -> None:
        self.note(job)
        raise ValueError("no good")

    def third(self, job: qd.Job) -> None:
        self.note(job)
        if job.attempt < 3:
            raise ValueError("not yet")

    def snooze(self, job: qd.Job) -> None:
        self.note(job)
        if len([run for run in self.ran if run[1] == job.id]) == 1:
            raise qd.Snooze(0.2)

    def reject(self, job: qd.Job) -> None:
        self.note(job)
        raise qd.Reject("no such customer")

    def retry(self, job: qd.Job) -> None:
        self.note(job)
        raise qd.Retry(after=0.1, reason="asked")

    def hold(self, job: qd.Job) -> None:
        self.note(job)
        while not self.go.is_set():
            time.sleep(0.01)

    def deaf(self, job: qd.Job) -> None:
        self.note(job)
        self.doors[job.id].wait(60)


@pytest.fixture
def shop(bench: Bench) -> Iterator[Shop]:
    made = Shop(bench)
    yield made
    made.close()


def dead(bench: Bench) -> dict[int, str]:
    return dict(bench.sql("SELECT job_id, reason FROM qd_failed_jobs"))  # type: ignore[arg-type]


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


def test_jobs_behind_a_long_one_of_the_same_batch_are_handed_to_others(shop: Shop) -> None:
    bench = shop.bench
    bench.add(30)
    shop.start(threads=2)
    shop.until_empty()
    (long,) = bench.add(type="hold", due=-5)
    quick = bench.add(10)
    both = {long, *quick}  # the long one, due so long ago, is found by the full look: every 30 s at the least
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
