"""The rows are counted rarely, and what is odd about them is said rarely."""

from __future__ import annotations

import random
import time
from collections.abc import Collection

import pytest

from qd.clock import monotonic
from qd.config.model import DatabaseConfig
from qd.errors import ConnectionLost, LockWait, NotFound, StoreError, TransactionFailed
from qd.events import Event, Events, Problem
from qd.maintenance.sampler import Sampler
from qd.maintenance.service import ServiceThread
from qd.store.mysql.limits import Limits
from qd.store.protocol import Count, DaemonRow, QueueDepth
from qd.stretch import SLOW
from tests.support.waiting import wait_for

TIMED_OUT = ConnectionLost("no answer within 20 s", 2013, timed_out=True)


class Clock:
    """A monotonic clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class MemoryCounts:
    """A store whose counts cost what the test says, in the clock's seconds."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.rows: list[QueueDepth] = []
        self.other_queues: dict[str, int] = {}
        self.cost = 0.001
        self.error: StoreError | None = None
        self.away = self.locked = False
        self.others: list[DaemonRow] = []
        self.counts = self.asked = 0
        self.dear = 0.0
        self.refusal: StoreError | None = None
        self.closed = False

    def count(self, known: Collection[str]) -> Count:
        self.counts += 1
        self.clock.now += self.cost
        if self.error is not None:
            raise self.error
        strange = {queue: jobs for queue, jobs in self.other_queues.items() if queue not in known}
        told = [QueueDepth(queue, ready=jobs) for queue, jobs in self.other_queues.items() if queue in known]
        others = QueueDepth("_other", ready=sum(strange.values()))
        return Count([*(row for row in self.rows if row.queue in known), *told, others], tuple(sorted(strange)[:6]))

    def daemons(self) -> list[DaemonRow]:
        self.asked += 1
        self.clock.now += self.dear
        if self.refusal is not None:
            raise self.refusal
        return self.others

    def job(self, job_id: int) -> object:
        if self.away:
            raise ConnectionLost("no answer", 2003)
        raise NotFound(f"no job {job_id}")

    def failed(self, job_id: int) -> object:
        if self.locked:
            raise LockWait("no lock within 16 s", 1205)
        raise NotFound(f"no dead letter {job_id}")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counts(clock: Clock) -> MemoryCounts:
    return MemoryCounts(clock)


@pytest.fixture
def said() -> list[Event]:
    return []


@pytest.fixture
def sampler(counts: MemoryCounts, said: list[Event], clock: Clock) -> Sampler:
    return Sampler(counts, 5.0, ("default", "mails"), Events(said.append), clock)


def test_before_the_first_count_there_is_a_snapshot_that_says_so(sampler: Sampler) -> None:
    snapshot = sampler.snapshot()
    assert (snapshot.stamp, snapshot.interval, snapshot.rows) == (0.0, 5.0, ())
    assert not snapshot.fresh()


def test_a_cheap_count_is_made_at_every_refresh(sampler: Sampler, counts: MemoryCounts) -> None:
    counts.rows = [QueueDepth("mails", ready=3)]
    before = time.time()
    assert sampler.run_once() == 5.0
    snapshot = sampler.snapshot()
    assert snapshot.rows == (QueueDepth("default"), QueueDepth("mails", ready=3), QueueDepth("_other"))
    assert before <= snapshot.stamp <= time.time()


def test_a_dear_count_is_made_so_rarely_that_it_costs_2_percent_of_the_time(
    sampler: Sampler, counts: MemoryCounts
) -> None:
    counts.cost = 0.4
    assert sampler.run_once() == pytest.approx(20)
    assert sampler.snapshot().interval == pytest.approx(20)
    counts.cost = 3.0
    sampler.run_once()
    assert sampler.run_once() == pytest.approx(150)


def test_counts_that_vary_cost_no_more_than_2_percent_of_the_time_either(
    sampler: Sampler, counts: MemoryCounts, clock: Clock
) -> None:
    chance, spent = random.Random(7), 0.0
    sampler.run_once()
    begun = clock.now
    for _ in range(500):
        counts.cost = chance.choice((1.0, 1.3, 2.0, 2.9))
        clock.now += sampler.run_once()
        spent += counts.cost
    assert 0.01 < spent / (clock.now - begun) <= 0.02


def test_the_first_count_alone_stretches_the_interval_to_a_minute_at_most(
    sampler: Sampler, counts: MemoryCounts
) -> None:
    counts.cost = 12.0
    assert sampler.run_once() == 60
    assert sampler.run_once() == pytest.approx(600)


def test_one_dear_count_among_cheap_ones_changes_nothing(sampler: Sampler, counts: MemoryCounts) -> None:
    sampler.run_once()
    counts.cost = 16.0
    assert sampler.run_once() == 5.0
    counts.cost = 0.001
    assert sampler.run_once() == 5.0


def test_what_is_kept_are_the_configured_queues_and_all_others_together(sampler: Sampler, counts: MemoryCounts) -> None:
    counts.rows = [QueueDepth("mails", failed=2)]
    counts.other_queues = {f"random{number}": 1 for number in range(2000)}
    sampler.run_once()
    assert sampler.snapshot().rows == (
        QueueDepth("default"), QueueDepth("mails", failed=2), QueueDepth("_other", ready=2000)
    )  # fmt: skip


def test_the_age_of_the_numbers_counts_from_before_they_were_read(
    sampler: Sampler, counts: MemoryCounts, clock: Clock
) -> None:
    begun, counts.cost = clock.now, 0.05
    sampler.run_once()
    assert sampler.snapshot().taken == begun


def test_a_database_that_is_away_raises_and_the_last_numbers_grow_old(sampler: Sampler, counts: MemoryCounts) -> None:
    sampler.run_once()
    before = sampler.snapshot()
    counts.error = ConnectionLost("server has gone away", 2006)
    with pytest.raises(ConnectionLost):
        sampler.run_once()
    counts.error, counts.cost, counts.away = TIMED_OUT, 20.0, True
    with pytest.raises(ConnectionLost, match="no answer"):
        sampler.run_once()
    assert sampler.snapshot() is before


def test_a_count_that_its_time_limit_ends_is_made_rarely_and_said_once(
    sampler: Sampler, counts: MemoryCounts, said: list[Event]
) -> None:
    sampler.run_once()
    before = sampler.snapshot()
    counts.error, counts.cost = TIMED_OUT, 20.0
    assert sampler.run_once() == 5.0, "the first may be a server that stood still"
    assert sampler.run_once() == pytest.approx(1000)
    assert sampler.snapshot() is before, "the numbers grow old by the interval that held for them"
    assert [type(event) for event in said] == [Problem]
    assert "counting the rows was given up after 20.0 s" in said[0].error  # type: ignore[attr-defined]


def test_a_count_that_waited_for_a_locked_table_is_not_taken_for_a_dear_one(
    sampler: Sampler, counts: MemoryCounts, said: list[Event]
) -> None:
    sampler.run_once()
    counts.error, counts.cost, counts.locked = LockWait("no lock within 16 s", 1205), 16.0, True
    for _ in range(3):
        with pytest.raises(LockWait):
            sampler.run_once()
    counts.error, counts.cost, counts.locked = None, 0.001, False
    assert sampler.run_once() == 5.0
    assert said == []


def test_the_least_time_limit_is_long_enough_to_tell_a_dear_count_by_it() -> None:
    least = Limits.of(DatabaseConfig(statement_timeout=1.0))
    assert least.server > SLOW


def test_waiting_jobs_in_unknown_queues_are_counted_and_up_to_3_of_their_names_are_told(
    sampler: Sampler, counts: MemoryCounts, said: list[Event]
) -> None:
    counts.rows = [QueueDepth("default", ready=9)]
    counts.other_queues = {"mial": 11, "c": 2, "d": 1, "bad\n\x1b[31m'" + "x" * 500: 5}
    sampler.run_once()
    (event,) = said
    assert isinstance(event, Problem)
    assert event.error.startswith("19 jobs wait in queues that neither") and event.error.endswith(", 'c', 'd'")
    assert event.error.isprintable()
    assert len(event.error) < 300


def test_where_no_job_waits_in_an_unknown_queue_nobody_is_asked_for_its_name(
    sampler: Sampler, counts: MemoryCounts, said: list[Event]
) -> None:
    counts.rows = [QueueDepth("default", ready=9)]
    sampler.run_once()
    assert (said, counts.asked) == ([], 0)


def test_the_warning_of_unknown_queues_comes_once_in_10_minutes(
    sampler: Sampler, counts: MemoryCounts, said: list[Event], clock: Clock
) -> None:
    for number in range(100):
        counts.other_queues = {f"mial{number}": 1}
        sampler.run_once()
        clock.now += 5
    assert len(said) == 1
    clock.now += 600
    sampler.run_once()
    assert len(said) == 2


def test_queues_that_another_running_daemon_serves_are_no_reason_to_warn(
    sampler: Sampler, counts: MemoryCounts, said: list[Event], clock: Clock
) -> None:
    counts.other_queues = {"reports": 1}
    counts.others = [DaemonRow("x", "host", 1, "1.0.0", ("reports",), ())]
    for _ in range(5):
        sampler.run_once()
    assert (said, counts.asked) == ([], 1)
    assert sampler.snapshot().rows[-1] == QueueDepth("_other", ready=1), "it is none of ours all the same"
    clock.now += 60
    counts.others = []
    sampler.run_once()
    sampler.run_once()
    assert len(said) == 1


def share_of_an_hour(sampler: Sampler, counts: MemoryCounts, clock: Clock) -> float:
    """Which part of the time was spent in the database, jobs of an unknown queue waiting."""
    counts.other_queues, counts.cost = {"mial": 1}, 0.1
    for _ in range(2):
        clock.now += sampler.run_once()
    begun, counted, asked = clock.now, counts.counts, counts.asked
    while clock.now < begun + 3600:
        clock.now += sampler.run_once()
    spent = counts.cost * (counts.counts - counted) + counts.dear * (counts.asked - asked)
    return spent / (clock.now - begun)


@pytest.mark.parametrize("seconds", [0.001, 0.5, 3.0, 16.0])
@pytest.mark.parametrize("served", [(), ("mial",)])
def test_asking_who_serves_unknown_queues_stays_within_the_2_percent_too(
    sampler: Sampler, counts: MemoryCounts, clock: Clock, seconds: float, served: tuple[str, ...]
) -> None:
    counts.dear, counts.others = seconds, [DaemonRow("x", "host", 1, "1.0.0", served, ())]
    assert share_of_an_hour(sampler, counts, clock) <= 0.0201
    assert sampler.snapshot().interval >= 5.0


@pytest.mark.parametrize("refusal", [LockWait("no lock", 1205), TransactionFailed("too long", 1969), TIMED_OUT])
def test_who_serves_unknown_queues_is_asked_rarely_where_it_cannot_be_told_and_the_gauges_stay(
    sampler: Sampler, counts: MemoryCounts, clock: Clock, said: list[Event], refusal: StoreError
) -> None:
    counts.dear, counts.refusal = 16.0, refusal
    assert share_of_an_hour(sampler, counts, clock) <= 0.0401, "each of both within its 2 %"
    assert sampler.snapshot().interval == pytest.approx(5)
    assert said == [], "whether a daemon serves them isn't known"
    counts.dear, counts.refusal = 0.001, None
    clock.now += 800
    sampler.run_once()
    assert len(said) == 1


def test_however_many_look_only_one_count_is_made_per_interval() -> None:
    clock = Clock()
    counts = MemoryCounts(clock)
    service = Sampler(counts, 3600.0, ("default",), Events())
    thread = ServiceThread(service, Events(), patience=5.0)
    thread.start()
    wait_for(lambda: service.snapshot().stamp, 5, "the first count")
    assert len({id(service.snapshot()) for _ in range(1000)}) == 1
    assert service.snapshot().fresh()
    assert service.snapshot().taken <= monotonic()
    thread.stop()
    assert thread.join(5)
    assert counts.counts == 1
    assert counts.closed
