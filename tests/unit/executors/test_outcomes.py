"""What a handler does, and the outcome that this gives its attempt."""

from __future__ import annotations

import _thread
import ctypes
import sys
import threading
from decimal import Decimal, getcontext
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qd
from qd.executors.endings import LONGEST_DELAY
from qd.outcome import OutcomeKind, Reason
from qd.policy import settlement
from tests.unit.executors.jobs import attempt


def raising(error: BaseException) -> Any:
    def handler(job: qd.Job) -> NoReturn:
        raise error

    return handler


def throw_at_oneself(job: qd.Job) -> None:
    ident = ctypes.c_ulong(threading.get_ident())
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(LookupError))
    for _ in range(1000):
        pass


def test_a_handler_that_returns_has_succeeded_and_its_text_is_kept() -> None:
    outcome = attempt(lambda job: f"sent to {job.payload['to']}").run()
    assert (outcome.kind, outcome.result, outcome.error) == (OutcomeKind.SUCCEEDED, "sent to 7", None)
    assert outcome.seconds > 0
    assert attempt(lambda job: None).run().result is None


def test_a_result_is_cut_to_4_kib_and_one_that_is_no_text_is_only_named() -> None:
    result = attempt(lambda job: "é\udcff" * 5000).run().result
    assert result is not None and 4000 < len(result.encode()) <= 4096
    assert attempt(lambda job: {"secret": "payload"}).run().result == "(not text: dict)"


def test_an_exception_is_a_failed_attempt_with_its_text_and_traceback() -> None:
    outcome = attempt(lambda job: job.payload["nobody"]).run()
    assert (outcome.kind, outcome.reason, outcome.error) == (OutcomeKind.FAILED, Reason.ERROR, "KeyError: 'nobody'")
    assert outcome.traceback is not None and "test_outcomes.py" in outcome.traceback
    assert "function.py" not in outcome.traceback


@pytest.mark.parametrize(
    ("handler", "name"),
    [
        (lambda job: sys.exit(0), "SystemExit: 0"),
        (lambda job: _thread.exit(), "SystemExit"),
        (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
        (raising(GeneratorExit()), "GeneratorExit"),
        (raising(type("Private", (BaseException,), {"__module__": "shop"})("x")), "shop.Private: x"),
        (raising(MemoryError()), "MemoryError"),
        (throw_at_oneself, "LookupError"),
        (raising(qd.LeaseLost("job 7 is no longer ours")), "LeaseLost"),
    ],
)
def test_what_ends_a_thread_elsewhere_is_a_failed_attempt_here(handler: Any, name: str) -> None:
    outcome = attempt(handler).run()
    assert outcome.kind is OutcomeKind.FAILED
    assert outcome.error is not None and name in outcome.error


def test_retry_is_a_failed_attempt_with_its_own_delay_and_reason() -> None:
    outcome = attempt(raising(qd.Retry(after=90, reason="bank is closed"))).run()
    assert (outcome.kind, outcome.delay, outcome.error) == (OutcomeKind.FAILED, 90.0, "bank is closed")
    assert attempt(raising(qd.Retry())).run().delay is None


def test_reject_is_a_dead_letter_at_once() -> None:
    outcome = attempt(raising(qd.Reject("no such customer"))).run()
    assert (outcome.kind, outcome.reason, outcome.error) == (
        OutcomeKind.REJECTED,
        Reason.REJECTED,
        "no such customer",
    )


def test_snooze_is_not_an_attempt() -> None:
    outcome = attempt(raising(qd.Snooze(30))).run()
    assert (outcome.kind, outcome.delay, outcome.error) == (OutcomeKind.SNOOZED, 30.0, None)


class Shifty(qd.Snooze):
    """One that has never been initialised as it should be."""

    def __init__(self) -> None:
        BaseException.__init__(self)


class Treacherous(qd.Retry):
    @property
    def after(self) -> float:
        raise SystemExit(1)

    @after.setter
    def after(self, value: object) -> None:
        pass


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, -0.001, LONGEST_DELAY * 2, 10**400, "5", True, [1]])
def test_a_delay_that_is_none_is_a_failed_attempt_that_says_so(value: Any) -> None:
    for error in (qd.Snooze(1), qd.Retry(1, "because")):
        for name in ("seconds", "after"):
            setattr(error, name, value)
        outcome = attempt(raising(error)).run()
        assert outcome.kind is OutcomeKind.FAILED and outcome.delay is None
        assert outcome.error is not None and "must be a number of seconds from 0 to 31536000" in outcome.error


@pytest.mark.parametrize("error", [Shifty(), Treacherous()])
def test_a_subclass_that_breaks_its_root_is_a_failed_attempt(error: BaseException) -> None:
    assert attempt(raising(error)).run().kind is OutcomeKind.FAILED


@pytest.mark.parametrize("seconds", ["soon", None, [5]])
def test_snoozing_for_what_is_no_number_fails_the_attempt(seconds: Any) -> None:
    def handler(job: qd.Job) -> None:
        raise qd.Snooze(seconds)

    outcome = attempt(handler).run()
    assert outcome.kind is OutcomeKind.FAILED
    assert outcome.error is not None and "Snooze: " in outcome.error


@given(st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans()))
def test_whatever_a_retry_asks_for_the_row_gets_a_delay_that_the_database_takes(value: Any) -> None:
    from qd.backoff import Backoff
    from qd.job import ClaimedJob

    error = qd.Retry()
    error.after = value
    row = ClaimedJob(1, "q", "t", "{}", 2, 1, 3, 0, None, "token", 0.0, 0.0, 90.0)  # type: ignore[arg-type]
    delay = settlement(row, attempt(raising(error)).run(), 3, Backoff()).delay
    assert 0 <= delay <= LONGEST_DELAY


def test_a_generator_is_told_that_a_handler_returns() -> None:
    def handler(job: qd.Job) -> Any:
        yield "never run"

    async def another(job: qd.Job) -> Any:
        yield "never run"

    for each in (handler, another):
        outcome = attempt(each).run()
        assert outcome.kind is OutcomeKind.FAILED
        assert outcome.error is not None and "must return, not yield" in outcome.error


def test_a_job_that_completed_itself_is_reported_as_it_ended() -> None:
    def handler(job: qd.Job) -> None:
        job.complete(None)
        raise ValueError("after its commit")

    run = attempt(handler)
    assert run.run().kind is OutcomeKind.FAILED
    assert run.job.completed


def test_context_variables_of_one_handler_do_not_reach_the_next() -> None:
    def handler(job: qd.Job) -> str:
        before = str(Decimal(1) / Decimal(3))
        getcontext().prec = 3
        return before

    assert attempt(handler).run().result == attempt(handler).run().result


def test_a_hostile_destructor_and_a_hostile_exception_leave_the_thread_sane() -> None:
    class Hostile(BaseException):
        def __str__(self) -> str:
            raise SystemExit(1)

        def __bool__(self) -> bool:
            raise SystemExit(2)

        def __eq__(self, other: object) -> bool:
            raise SystemExit(3)

        __class__ = property(lambda self: sys.exit(4))

    outcome = attempt(raising(Hostile())).run()
    assert outcome.kind is OutcomeKind.FAILED
    assert outcome.error is not None and "Hostile" in outcome.error


def test_no_exception_or_result_outlives_its_attempt() -> None:
    import weakref

    class Large(str):
        __slots__ = ("__weakref__",)

    kept: list[weakref.ref[Any]] = []

    def returns(job: qd.Job) -> str:
        value = Large("x")
        kept.append(weakref.ref(value))
        return value

    def raises(job: qd.Job) -> NoReturn:
        local = Large("y")
        kept.append(weakref.ref(local))
        raise ValueError("x")

    runs = [attempt(returns), attempt(raises)]
    for run in runs:
        run.run()
    assert [ref() for ref in kept] == [None, None]
