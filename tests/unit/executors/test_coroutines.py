"""Handlers that are coroutine functions."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import warnings
from typing import Any

import pytest

import qd
from qd.clock import monotonic
from qd.executors import Interruption, Timekeeper
from qd.log.current import JOB_ID
from qd.outcome import OutcomeKind
from tests.support.waiting import wait_for
from tests.unit.executors.jobs import Running, attempt


def started(handler: Any, **options: Any) -> Running:
    """Runs a coroutine function and waits until it is inside."""
    inside = threading.Event()

    async def telling(job: qd.Job) -> object:
        inside.set()
        return await handler(job)

    running = Running(attempt(telling, **options))
    assert inside.wait(10)
    return running


async def sleeps(job: qd.Job) -> None:
    await asyncio.sleep(1000)


def test_a_coroutine_runs_to_its_end_and_its_text_is_kept() -> None:
    async def handler(job: qd.Job) -> str:
        await asyncio.sleep(0)
        return f"sent to {job.payload['to']} by job {JOB_ID.get()}"

    outcome = attempt(handler).run()
    assert (outcome.kind, outcome.result) == (OutcomeKind.SUCCEEDED, "sent to 7 by job 7")


def test_what_a_coroutine_raises_is_the_attempts_outcome() -> None:
    async def fails(job: qd.Job) -> None:
        raise ValueError("x")

    async def snoozes(job: qd.Job) -> None:
        raise qd.Snooze(5)

    async def exits(job: qd.Job) -> None:
        raise SystemExit(1)

    assert attempt(fails).run().error == "ValueError: x"
    assert attempt(snoozes).run().kind is OutcomeKind.SNOOZED
    assert attempt(exits).run().error == "SystemExit: 1"


def test_a_function_that_returns_a_coroutine_is_awaited_too() -> None:
    async def inner() -> str:
        return "inner"

    assert attempt(lambda job: inner()).run().result == "inner"


@pytest.mark.parametrize("why", list(Interruption))
def test_a_coroutine_that_waits_is_cancelled_and_may_clean_up(why: Interruption) -> None:
    cleaned: list[str] = []

    async def handler(job: qd.Job) -> None:
        try:
            await sleeps(job)
        finally:
            await asyncio.sleep(0)
            cleaned.append("yes")

    running = started(handler)
    running.attempt.interrupt(why)
    outcome = running.ended(5)
    assert outcome.kind is (OutcomeKind.TIMEOUT if why is Interruption.TIMEOUT else OutcomeKind.RELEASED)
    assert cleaned == ["yes"]
    assert outcome.error is not None and "CancelledError" not in outcome.error
    assert outcome.traceback is not None and "in sleeps" in outcome.traceback


def test_a_coroutine_that_swallows_its_cancellation_is_timed_out_all_the_same() -> None:
    async def handler(job: qd.Job) -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await sleeps(job)
        return "as if nothing had been"

    running = started(handler)
    running.attempt.interrupt(Interruption.TIMEOUT)
    assert running.ended(5).kind is OutcomeKind.TIMEOUT


def keep_time(running: Running, keeper: Timekeeper) -> None:
    """Ticks until the attempt has ended."""
    keeper.watch(running.attempt)
    running.attempt.deadline = monotonic()

    def tick() -> bool:
        keeper.tick(monotonic())
        return running.outcome is not None

    wait_for(tick, 10, "the attempt to end")


def test_a_coroutine_that_never_awaits_is_ended_by_insisting() -> None:
    async def handler(job: qd.Job) -> None:
        while True:
            pass

    running = started(handler, kill_grace=0.2)
    keep_time(running, Timekeeper())
    assert running.ended().kind is OutcomeKind.TIMEOUT


def test_a_coroutine_that_never_lets_itself_be_cancelled_is_stuck_until_it_ends() -> None:
    release = threading.Event()

    async def handler(job: qd.Job) -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    running = started(handler, kill_grace=0.1)
    stuck: list[Any] = []
    keeper = Timekeeper(on_stuck=stuck.append)
    running.attempt.deadline = monotonic()
    keeper.watch(running.attempt)
    wait_for(lambda: keeper.tick(monotonic()) and stuck, 10, "the attempt to count as stuck")
    release.set()
    assert running.ended().kind is OutcomeKind.TIMEOUT


def test_interruptions_at_random_moments_leave_neither_a_loop_nor_a_warning() -> None:
    async def handler(job: qd.Job) -> None:
        await asyncio.sleep(0)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kinds = set()
        for number in range(150):
            run = attempt(handler)
            timer = threading.Timer(number * 1e-5, run.interrupt, [Interruption.TIMEOUT])
            timer.start()
            kinds.add(run.run().kind)
            timer.join()
    assert kinds <= {OutcomeKind.SUCCEEDED, OutcomeKind.TIMEOUT}
    assert not [each for each in caught if "never awaited" in str(each.message)]
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
