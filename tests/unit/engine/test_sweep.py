"""The stale sweep: two looks, far enough apart, no trouble between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import pytest

from qd.clock import monotonic
from qd.config.model import QueueConfig
from qd.errors import ConnectionLost, DataRefused, LockWait, StoreError, TransactionFailed, UnknownError
from qd.events import JobDeadLettered, Problem, StaleReclaimed
from qd.lease import LeaseKeeper
from qd.maintenance.sweep import StaleSweep
from qd.outcome import Verdict
from qd.store.protocol import StaleRow
from tests.support.waiting import wait_for
from tests.unit.engine.fakes import FakeStore, Heard, claimed, listening

ROW = StaleRow(1, "default", "noop", "host:1:a:w:1", "2026-01-01 00:00:00.000000", 1)


class Bench:
    def __init__(self) -> None:
        self.store, self.trouble, self.clock = FakeStore(), 0.0, monotonic
        events, self.heard = listening()
        policies = {"default": QueueConfig(lease=3.0)}
        self.write: Callable[[], object] = lambda: None
        self.sweep = StaleSweep(
            cast(Any, self.store), policies, events, lambda: self.trouble, lambda: self.write(), lambda: self.clock()
        )

    def until_taken(self) -> float:
        """Sweeps until a row is taken; seconds that it took."""
        started = monotonic()
        wait_for(lambda: self.sweep.run_once() and self.store.reclaims, 5, "the row to be taken back")
        return monotonic() - started


def test_a_row_is_taken_back_only_at_a_second_look_far_enough_from_the_first() -> None:
    bench = Bench()
    bench.store.stale_rows = [ROW]
    assert bench.until_taken() >= 1.0
    assert bench.heard.of(StaleReclaimed) and not bench.heard.of(JobDeadLettered)


@pytest.mark.parametrize("lease", [3.0, 6.0, 90.0, 3600.0])
def test_a_healthy_keeper_renews_between_the_two_looks_whenever_it_did_so_last(lease: float) -> None:
    events, _ = listening()
    store = cast(Any, FakeStore())
    sweep = StaleSweep(store, {"default": QueueConfig(lease=lease)}, events, lambda: 0.0, lambda: None)
    keeper = LeaseKeeper(store, events, lease)
    (held,) = keeper.hold([claimed(lease=lease)])
    held.renewed_at = monotonic()
    latest_renewal = held.due() - held.renewed_at + keeper.run_once()
    assert sweep.apart("default") >= latest_renewal


def test_trouble_at_the_database_begins_the_wait_anew() -> None:
    bench = Bench()
    bench.store.stale_rows = [ROW]
    bench.sweep.run_once()
    bench.trouble = monotonic() + 0.5
    started = monotonic()
    wait_for(lambda: bench.sweep.run_once() and bench.store.reclaims, 5, "the row to be taken back")
    assert monotonic() - started >= 1.5


class Commits:
    """A clock that only the test moves, and commits that take a time of their own."""

    def __init__(self, bench: Bench) -> None:
        self.now, self.take, self.fail = 1000.0, 0.0, False
        bench.clock, bench.write = (lambda: self.now), self.write

    def write(self) -> None:
        self.now += self.take
        if self.fail:
            raise LockWait("no commit", 1205)


@pytest.mark.parametrize("fails", [True, False], ids=["not at all", "late"])
def test_where_reads_are_answered_but_commits_are_not_a_row_is_not_seen_until_they_are(fails: bool) -> None:
    """Its owner can't renew it either, and has the whole time once he can."""
    bench = Bench()
    commits = Commits(bench)
    bench.store.stale_rows = [ROW]
    bench.sweep.run_once()
    commits.now, commits.take, commits.fail = commits.now + 1.4, 20.0, fails
    with suppress(LockWait):  # what its thread does
        bench.sweep.run_once()
    commits.take, commits.fail = 0.0, False
    bench.sweep.run_once()
    commits.now += 1.4
    bench.sweep.run_once()
    assert bench.store.reclaims == []
    commits.now += 0.2
    bench.sweep.run_once()
    assert bench.store.reclaims == [ROW]


def test_a_row_that_could_not_be_taken_back_for_want_of_a_lock_is_left_to_its_owner_again() -> None:
    bench = Bench()
    commits = Commits(bench)
    bench.store.stale_rows, bench.store.reclaim_errors = [ROW], {ROW.job_id: LockWait("the table", 1205)}
    bench.sweep.run_once()
    commits.now += 1.6
    with pytest.raises(LockWait):
        bench.sweep.run_once()
    bench.store.reclaim_errors = {}
    bench.sweep.run_once()
    assert bench.store.reclaims == []


def test_rows_that_need_no_dead_letter_are_not_held_up_by_those_that_do() -> None:
    bench = Bench()
    commits = Commits(bench)
    dying = [replace(ROW, job_id=number, attempts=3) for number in (2, 3)]
    locked = dict.fromkeys((2, 3), LockWait("the dead letters", 1205))
    bench.store.stale_rows, bench.store.reclaim_errors = [*dying, ROW], dict(locked)
    bench.sweep.run_once()
    commits.now += 1.6
    with pytest.raises(LockWait):
        bench.sweep.run_once()
    assert bench.store.reclaims == [ROW]


def test_a_row_that_somebody_has_locked_leaves_its_owner_the_whole_time_once_it_is_free() -> None:
    bench = Bench()
    bench.store.stale_rows, bench.store.locked = [ROW], {ROW}
    locked_until = monotonic() + 1.6  # at the round after it two looks lie far enough apart
    wait_for(lambda: bench.sweep.run_once() and monotonic() > locked_until, 5, "the lock to have lasted")
    bench.store.locked = set()
    assert bench.store.reclaims == []
    assert bench.until_taken() >= 1.0


def test_a_row_that_was_renewed_between_the_looks_is_left_alone() -> None:
    bench = Bench()
    bench.store.stale_rows = [ROW]
    bench.sweep.run_once()
    first = monotonic()
    bench.store.stale_rows = [StaleRow(1, "default", "noop", ROW.token, "2026-01-01 00:00:09.000000", 1)]
    wait_for(lambda: bench.sweep.run_once() and monotonic() - first > 0.9, 3, "most of the time between looks")
    assert bench.store.reclaims == []


@pytest.mark.parametrize(("verdict", "said"), [(Verdict.LOST, 0), (Verdict.BURIED, 2), (Verdict.SETTLED, 1)])
def test_what_the_database_decides_is_what_is_said(verdict: Verdict, said: int) -> None:
    bench = Bench()
    bench.store.stale_rows, bench.store.reclaim_verdict = [ROW], verdict
    bench.until_taken()
    assert len(bench.heard) == said, Heard(bench.heard)


@pytest.mark.parametrize(("error", "said"), [(DataRefused("no such letter", 1366), 1), (UnknownError("odd", 1), 0)])
def test_a_row_that_can_not_be_taken_back_holds_up_no_other(error: StoreError, said: int) -> None:
    bench = Bench()
    others = [replace(ROW, job_id=number) for number in (2, 3)]
    bench.store.stale_rows, bench.store.reclaim_errors = [ROW, *others], {1: error}

    def taken() -> bool:
        with suppress(UnknownError):  # what its thread does
            bench.sweep.run_once()
        return bench.store.reclaims == others

    wait_for(taken, 5, "the others to be taken back")
    with suppress(UnknownError):
        bench.sweep.run_once()
    assert len(bench.heard.of(Problem)) == said


class DearLooks:
    """Looks that take so many of the clock's seconds, and then fail or not."""

    def __init__(self, bench: Bench) -> None:
        self.clock, self.look = Commits(bench), bench.store.stale
        self.take, self.error = 0.001, cast("StoreError | None", None)
        bench.store.stale = self.stale  # type: ignore[method-assign]
        bench.sweep.run_once()

    def stale(self, queues: Sequence[str], limit: int) -> list[StaleRow]:
        self.clock.now += self.take
        if self.error is not None:
            raise self.error
        return self.look(queues, limit)


TOO_DEAR = TransactionFailed("max_statement_time exceeded", 1969)


@pytest.mark.parametrize("error", [TOO_DEAR, None], ids=["that its time limit ends", "that succeeds"])
def test_a_dear_look_is_made_so_rarely_that_it_takes_2_percent_of_the_time(error: StoreError | None) -> None:
    bench = Bench()
    looks = DearLooks(bench)
    looks.take, looks.error = 1.1, error
    bench.sweep.run_once()
    assert [bench.sweep.run_once() for _ in range(3)] == pytest.approx([55.0] * 3)


@pytest.mark.parametrize("error", [TOO_DEAR, ConnectionLost("cut", 2013)], ids=["locked", "lost"])
def test_after_tables_were_out_of_reach_looks_are_quick_again(error: StoreError) -> None:
    bench = Bench()
    looks = DearLooks(bench)
    bench.store.unreachable = LockWait("no lock within 16 s", 1205)
    looks.take, looks.error = 16.0, error
    for _ in range(3):
        with pytest.raises(StoreError):
            bench.sweep.run_once()
    looks.take, looks.error = 0.001, None
    assert bench.sweep.run_once() <= 1.0


def test_a_look_that_was_too_dear_has_seen_nothing() -> None:
    """While it ran the owners may have been kept from renewing."""
    bench = Bench()
    looks = DearLooks(bench)
    bench.store.stale_rows = [ROW]
    bench.sweep.run_once()
    looks.take, looks.error = 4.0, TOO_DEAR
    bench.sweep.run_once()
    looks.take, looks.error = 0.001, None
    bench.sweep.run_once()
    assert bench.store.reclaims == []
