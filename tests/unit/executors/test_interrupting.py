"""Interrupting Python handlers: inside the handler, and nowhere else."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import qd
from qd.clock import monotonic
from qd.executors import Interruption
from qd.outcome import OutcomeKind, Reason
from tests.support.waiting import wait_for
from tests.unit.executors.jobs import Running, attempt


def spin(job: qd.Job) -> None:
    while True:
        time.sleep(0.001)


def started(handler: Any, **options: Any) -> Running:
    """Runs a handler and waits until it is inside."""
    inside = threading.Event()

    def telling(job: qd.Job) -> object:
        inside.set()
        return handler(job)

    running = Running(attempt(telling, **options))
    assert inside.wait(10)
    return running


@pytest.mark.parametrize(
    ("why", "kind", "reason", "text"),
    [
        (Interruption.TIMEOUT, OutcomeKind.TIMEOUT, Reason.TIMEOUT, "timed out; it ended after "),
        (Interruption.STOP, OutcomeKind.RELEASED, Reason.INTERRUPTED, "interrupted by a stop; it ended after "),
    ],
)
def test_a_running_handler_is_interrupted(why: Any, kind: Any, reason: Any, text: str) -> None:
    running = started(spin)
    running.attempt.interrupt(why)
    outcome = running.ended()
    assert (outcome.kind, outcome.reason) == (kind, reason)
    assert outcome.error is not None and outcome.error.startswith(text)
    assert outcome.traceback is not None and "in spin" in outcome.traceback


def test_except_exception_does_not_swallow_a_time_out() -> None:
    def stubborn(job: qd.Job) -> None:
        while True:
            try:
                spin(job)
            except Exception:
                continue

    running = started(stubborn)
    running.attempt.interrupt(Interruption.TIMEOUT)
    assert running.ended().kind is OutcomeKind.TIMEOUT


@pytest.mark.parametrize("after", ["return", "raise", "snooze", "complete"])
@pytest.mark.parametrize("why", list(Interruption))
def test_whatever_a_handler_does_after_it_swallowed_an_interruption_it_stays_interrupted(
    after: str, why: Interruption
) -> None:
    def swallowing(job: qd.Job) -> str:
        try:
            spin(job)
        except BaseException:
            if after == "raise":
                raise ValueError("in the cleaning up") from None
            if after == "snooze":
                raise qd.Snooze(5) from None
        return "as if nothing had been"

    running = started(swallowing)
    running.attempt.interrupt(why)
    outcome = running.ended()
    assert outcome.kind is (OutcomeKind.TIMEOUT if why is Interruption.TIMEOUT else OutcomeKind.RELEASED)
    if after == "raise":
        assert outcome.error is not None and "its end: ValueError: in the cleaning up" in outcome.error


def test_a_handler_gets_the_time_to_clean_up() -> None:
    cleaned: list[str] = []

    def tidy(job: qd.Job) -> None:
        try:
            spin(job)
        finally:
            cleaned.append("yes")

    running = started(tidy)
    running.attempt.interrupt(Interruption.TIMEOUT)
    assert running.ended().kind is OutcomeKind.TIMEOUT and cleaned == ["yes"]


def test_a_stop_reaches_a_handler_that_swallowed_its_time_out_and_the_first_reason_counts() -> None:
    swallowed = threading.Event()

    def deaf_once(job: qd.Job) -> None:
        try:
            spin(job)
        except qd.JobTimeout:
            swallowed.set()
            spin(job)

    running = started(deaf_once)
    running.attempt.interrupt(Interruption.TIMEOUT)
    assert swallowed.wait(10)
    running.attempt.interrupt(Interruption.TIMEOUT)  # no second of the same
    running.attempt.interrupt(Interruption.STOP)
    outcome = running.ended()
    assert outcome.kind is OutcomeKind.TIMEOUT
    assert outcome.traceback is not None and "JobInterrupted" in outcome.traceback


def test_nothing_follows_a_stop() -> None:
    cleaning, release = threading.Event(), threading.Event()

    def cleans_up_long(job: qd.Job) -> None:
        try:
            spin(job)
        finally:
            cleaning.set()
            assert release.wait(10)

    running = started(cleans_up_long)
    running.attempt.interrupt(Interruption.STOP)
    assert cleaning.wait(10)
    running.attempt.interrupt(Interruption.TIMEOUT)
    release.set()
    assert running.ended().kind is OutcomeKind.RELEASED


def test_an_attempt_interrupted_before_its_start_never_starts() -> None:
    ran: list[int] = []
    run = attempt(lambda job: ran.append(1))
    run.interrupt(Interruption.STOP)
    assert run.run().kind is OutcomeKind.RELEASED and ran == []


def test_interrupting_after_the_end_does_nothing() -> None:
    run = attempt(lambda job: "done")
    assert run.run().kind is OutcomeKind.SUCCEEDED
    run.interrupt(Interruption.TIMEOUT)
    assert run.interrupted_at is None
    assert sum(range(10_000)) == 49_995_000


def test_a_handler_in_a_call_that_can_not_be_interrupted_is_stuck_until_it_ends() -> None:
    gate = threading.Lock()
    gate.acquire()
    running = started(lambda job: gate.acquire(), kill_grace=0.05)
    assert running.attempt.thread_ident is not None
    running.attempt.interrupt(Interruption.TIMEOUT)
    assert not running.attempt.stuck(monotonic() - 1)
    wait_for(lambda: running.attempt.stuck(monotonic()), 5, "the attempt to count as stuck")
    gate.release()
    assert running.ended().kind is OutcomeKind.TIMEOUT
    assert not running.attempt.stuck(monotonic() + 60)


def test_a_handler_may_raise_the_exceptions_of_an_interruption_itself() -> None:
    def gives_up(job: qd.Job) -> None:
        raise qd.JobTimeout

    assert attempt(gives_up).run().kind is OutcomeKind.TIMEOUT
