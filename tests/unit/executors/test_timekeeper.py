"""Time-outs, kept for all that runs."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from qd.clock import monotonic
from qd.executors import Attempt, Timekeeper
from qd.executors.timekeeper import IDLE_WAIT, LONGEST_WAIT
from qd.outcome import OutcomeKind
from tests.support.waiting import wait_for
from tests.unit.executors.jobs import Running, attempt, command
from tests.unit.executors.test_interrupting import spin, started


def test_what_is_past_its_deadline_is_interrupted_and_the_rest_is_left_alone() -> None:
    keeper = Timekeeper()
    late, early = started(spin, timeout=100), started(spin, timeout=200)
    for running in (late, early):
        keeper.watch(running.attempt)
    keeper.tick(monotonic() + 150)
    assert late.ended().kind is OutcomeKind.TIMEOUT
    assert early.attempt.interrupted_at is None
    keeper.tick(monotonic() + 250)
    assert early.ended().kind is OutcomeKind.TIMEOUT


def test_it_wants_to_be_called_at_the_next_deadline_and_often_enough_for_new_ones() -> None:
    keeper = Timekeeper()
    run, other = attempt(lambda job: None), attempt(lambda job: None)
    run.deadline, other.deadline = 1000.1, 2000.0
    keeper.watch(other)
    assert keeper.tick(1000.0) == LONGEST_WAIT
    keeper.watch(run)
    assert keeper.tick(1000.0) == pytest.approx(0.1)
    keeper.forget(run)
    keeper.forget(run)
    keeper.forget(other)
    assert keeper.running() == []


def test_while_nothing_runs_it_rests_and_is_woken_by_the_first_that_does() -> None:
    keeper, woken = Timekeeper(), []
    keeper.rest.wake = lambda: woken.append(1)
    assert keeper.tick(1000.0) == IDLE_WAIT
    first, second = attempt(lambda job: None), attempt(lambda job: None)
    keeper.watch(first)
    keeper.watch(second)
    assert woken == [1]
    keeper.tick(1000.0)
    keeper.forget(first)
    keeper.watch(attempt(lambda job: None))
    assert woken == [1], "it looks by itself while something runs"


def test_at_a_stop_what_runs_is_cut_off_and_what_was_on_its_way_is_never_entered() -> None:
    keeper = Timekeeper()
    running, late = started(spin), attempt(lambda job: None)
    keeper.watch(running.attempt)
    keeper.stop()
    assert running.ended().kind is OutcomeKind.RELEASED
    keeper.watch(late)
    outcome = late.run()
    assert (outcome.kind, outcome.entered) == (OutcomeKind.RELEASED, False)


def test_a_stuck_attempt_is_reported_once() -> None:
    gate = threading.Lock()
    gate.acquire()
    reported: list[Attempt] = []
    keeper = Timekeeper(on_stuck=reported.append)
    running = started(lambda job: gate.acquire(), kill_grace=0.01, timeout=0)
    keeper.watch(running.attempt)
    wait_for(lambda: keeper.tick(monotonic()) and reported, 5, "the report")
    for _ in range(3):
        keeper.tick(monotonic() + 10)
    assert reported == [running.attempt] and keeper.running() == [running.attempt]
    gate.release()
    running.ended()


def test_a_program_is_not_stuck_while_it_has_its_time_to_be_killed() -> None:
    run = command("sleep", "300", kill_grace=0.5)
    running = Running(run)
    wait_for(lambda: run.thread_ident is not None, 5, "the attempt to begin")
    run.deadline = monotonic()
    reported: list[Any] = []
    keeper = Timekeeper(on_stuck=reported.append)
    keeper.watch(run)
    wait_for(lambda: keeper.tick(monotonic()) and running.outcome, 10, "the program's end")
    assert reported == []


def test_a_report_that_raises_is_not_repeated() -> None:
    gate = threading.Lock()
    gate.acquire()
    calls: list[Attempt] = []

    def report(attempt: Attempt) -> None:
        calls.append(attempt)
        raise ValueError("in the report")

    running = started(lambda job: gate.acquire(), kill_grace=0.0, timeout=0)
    keeper = Timekeeper(on_stuck=report)
    keeper.watch(running.attempt)

    def tick() -> bool:
        try:
            keeper.tick(monotonic())
        except ValueError:
            return True
        return False

    wait_for(tick, 5, "the report to raise")
    keeper.tick(monotonic())
    assert calls == [running.attempt]
    gate.release()
    running.ended()


def test_watching_and_forgetting_from_many_threads_while_time_is_kept() -> None:
    keeper = Timekeeper()

    def work() -> None:
        for _ in range(2000):
            run = attempt(lambda job: None)
            keeper.watch(run)
            run.run()
            keeper.forget(run)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        keeper.tick(monotonic())
    assert keeper.running() == []
