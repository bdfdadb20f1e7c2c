"""A handler in a child is interrupted wherever it is, and its process killed where that doesn't help."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from qd.clock import monotonic
from qd.executors import Interruption
from qd.outcome import OutcomeKind, Reason
from tests.support.waiting import wait_for
from tests.unit.executors.children import a_child, attempt_in, is_running, run_in, started
from tests.unit.executors.jobs import Running

HOWS = ["sleep", "read", "lock", "spin"]


@pytest.mark.parametrize(
    ("how", "why", "kind", "reason"),
    [
        *((how, Interruption.TIMEOUT, OutcomeKind.TIMEOUT, Reason.TIMEOUT) for how in HOWS),
        ("sleep", Interruption.STOP, OutcomeKind.RELEASED, Reason.INTERRUPTED),
    ],
)
def test_it_is_cut_off_in_a_blocking_call_and_tidies_up(
    how: str, why: Interruption, kind: OutcomeKind, reason: Reason, tmp_path: Path
) -> None:
    with a_child() as child:
        tidied = tmp_path / "tidied"
        running = started(child, "wait", tmp_path / "in", {"how": how, "tidied": str(tidied)})
        running.attempt.interrupt(why)
        outcome = running.ended()
        assert (outcome.kind, outcome.reason) == (kind, reason) and tidied.read_text() == "tidied"
        assert not child.fit() and not is_running(child.process.pid)


def test_a_coroutine_is_cancelled(tmp_path: Path) -> None:
    with a_child() as child:
        running = started(child, "coroutine", tmp_path / "in", {"seconds": 60})
        running.attempt.interrupt(Interruption.TIMEOUT)
        outcome = running.ended()
        assert outcome.kind is OutcomeKind.TIMEOUT and "CancelledError" in str(outcome.traceback)


@pytest.mark.parametrize("how", ["C", "hog", "deaf"])
def test_what_can_not_be_cut_off_is_killed_after_the_grace(how: str, tmp_path: Path) -> None:
    with a_child() as child:
        running = started(child, "wait", tmp_path / "in", {"how": how}, kill_grace=0.3)
        running.attempt.interrupt(Interruption.TIMEOUT)
        outcome = running.ended()
        assert outcome.kind is OutcomeKind.TIMEOUT and not is_running(child.process.pid)
        assert how == "C" or "had to be killed" in str(outcome.error)  # sleep() in C returns at a signal


def test_a_wait_in_c_that_the_signal_ends_without_a_word_is_no_success(tmp_path: Path) -> None:
    with a_child() as child:
        running = started(child, "wait", tmp_path / "in", {"how": "C"})
        running.attempt.interrupt(Interruption.TIMEOUT)
        assert running.ended().kind is OutcomeKind.TIMEOUT


def test_at_a_stop_it_is_gone_within_the_second_that_the_daemon_has(tmp_path: Path) -> None:
    with a_child() as child:
        running = started(child, "wait", tmp_path / "in", {"how": "hog"}, kill_grace=600.0)
        began = monotonic()
        running.attempt.interrupt(Interruption.STOP)
        assert running.ended().kind is OutcomeKind.RELEASED and not is_running(child.process.pid)
        assert monotonic() - began < 60


def test_a_stop_hurries_what_was_timed_out_before(tmp_path: Path) -> None:
    with a_child() as child:
        running = started(child, "wait", tmp_path / "in", {"how": "hog"}, kill_grace=600.0)
        running.attempt.interrupt(Interruption.TIMEOUT)
        running.attempt.interrupt(Interruption.STOP)
        assert running.ended().kind is OutcomeKind.TIMEOUT  # the first reason decides


def test_an_attempt_interrupted_before_its_start_leaves_the_child_as_it_was(tmp_path: Path) -> None:
    with a_child() as child:
        attempt = attempt_in(child, "wait", {"inside": str(tmp_path / "in"), "how": "sleep"})
        attempt.interrupt(Interruption.STOP)
        assert attempt.run().kind is OutcomeKind.RELEASED
        assert child.fit() and not (tmp_path / "in").exists()


def test_a_stray_sigterm_to_all_of_a_service_cuts_nothing_off(tmp_path: Path) -> None:
    with a_child() as child:
        running = started(child, "wait", tmp_path / "in", {"how": "sleep"})
        for _ in range(20):
            os.kill(child.process.pid, signal.SIGTERM)
        running.attempt.interrupt(Interruption.TIMEOUT)
        assert running.ended().kind is OutcomeKind.TIMEOUT
    with a_child() as child:
        os.kill(child.process.pid, signal.SIGTERM)
        assert run_in(child, "pid").kind is OutcomeKind.SUCCEEDED


def test_a_stopped_child_is_ended_too(tmp_path: Path) -> None:
    with a_child() as child:
        running = started(child, "wait", tmp_path / "in", {"how": "sleep"})
        os.kill(child.process.pid, signal.SIGSTOP)
        running.attempt.interrupt(Interruption.TIMEOUT)
        assert running.ended().kind is OutcomeKind.TIMEOUT


def test_a_child_that_reads_nothing_holds_nobody_up() -> None:
    with a_child() as child:
        os.kill(child.process.pid, signal.SIGSTOP)
        running = Running(attempt_in(child, "echo", "x" * 2_000_000, kill_grace=0.3))
        wait_for(lambda: not child.silent(), 20, "more to be told than the connection holds")
        running.attempt.interrupt(Interruption.TIMEOUT)
        assert running.ended().kind is OutcomeKind.TIMEOUT and not is_running(child.process.pid)


def test_a_child_that_says_more_than_anybody_can_read_is_ended_all_the_same(tmp_path: Path) -> None:
    with a_child() as child:
        running = started(child, "flood", tmp_path / "in", kill_grace=0.3)
        running.attempt.interrupt(Interruption.TIMEOUT)
        assert running.ended(60).kind is OutcomeKind.TIMEOUT and not is_running(child.process.pid)


def test_programs_that_it_started_get_the_signal_too(tmp_path: Path) -> None:
    with a_child() as child:
        run_in(child, "leave_program", {"inside": str(tmp_path / "left")})
        left = int((tmp_path / "left").read_text())
        running = started(child, "wait", tmp_path / "in", {"how": "sleep"})
        running.attempt.interrupt(Interruption.TIMEOUT)
        running.ended()
        assert not is_running(left)


def test_interruptions_at_random_moments_are_never_half_done() -> None:
    for number in range(12):
        with a_child() as child:
            attempt = attempt_in(child, "echo", number)
            timer = threading.Timer(number * 1.5e-4, attempt.interrupt, [Interruption.TIMEOUT])
            timer.start()
            outcome = attempt.run()
            timer.join()
            assert outcome.kind in (OutcomeKind.SUCCEEDED, OutcomeKind.TIMEOUT), outcome
            assert child.fit() or outcome.kind is OutcomeKind.TIMEOUT
