"""The race between a handler's end and its interruption, at every instruction and at random.

What chance reaches too seldom is brought about here: a thrower that looked at the open window, was
held up, and throws while the attempt is on its way out, at each instruction of that way in turn.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

import qd
from qd.executors import Interruption, function
from qd.executors.function import FunctionRun
from qd.outcome import Outcome, OutcomeKind
from tests.unit.executors.jobs import attempt, job

INSTRUCTIONS = 120
"""More than there are on the way out; behind them the thrower is waited for."""


class HeldUp(FunctionRun):
    """A run whose thrower is under way from the handler's end on, until `release`.

    Args:
        again: whether a second throw follows in the very moment in which the first is noted.
    """

    def __init__(self, function: Callable[[qd.Job], Any], again: bool) -> None:
        super().__init__(job(), function, 5.0)
        self.again = again

    def release(self) -> None:
        """The thrower goes on: it throws, and is done."""
        self._why = Interruption.TIMEOUT
        self._sending = False
        self._throw(Interruption.TIMEOUT)

    def _note(self, hit: BaseException) -> None:
        super()._note(hit)
        if self.again:
            self.again = False
            self._throw(Interruption.STOP)


def run_and_hit(instruction: int, fails: bool, again: bool) -> tuple[Outcome | None, BaseException | None, bool]:
    """Runs a handler and lets the throw hit at an instruction of the way out: outcome, leak, whether it hit."""
    hit = False

    def handler(job: qd.Job) -> str:
        run._sending = True
        sys.settrace(trace)
        if fails:
            raise ValueError("its own")
        return "done"

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal instruction, hit
        frame.f_trace_opcodes = True
        if run._sending and event == "opcode" and frame.f_code.co_filename == function.__file__:
            instruction -= 1
            if instruction == 0:
                hit = True
                run.release()
        return trace

    run = HeldUp(handler, again)
    try:
        outcome = run_traced(run, trace)
        for _ in range(100):  # what is left would hit here
            pass
        return outcome, None, hit
    except BaseException as leak:
        return None, leak, hit
    finally:
        sys.settrace(None)


def run_traced(run: FunctionRun, trace: Any) -> Outcome:
    """Runs it with the frames that lead to the handler traced too: those that it returns through."""
    sys.settrace(lambda frame, event, arg: trace if frame.f_code.co_filename == function.__file__ else None)
    return run.run()


def in_a_thread(act: Callable[[], None]) -> None:
    """Away from whatever traces the test's own thread."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_a_throw_that_hits_at_any_instruction_on_the_way_out_stays_inside(fails: bool, again: bool) -> None:
    results: list[tuple[int, Outcome | None, BaseException | None, bool]] = []

    def try_all() -> None:
        for instruction in range(1, INSTRUCTIONS):
            results.append((instruction, *run_and_hit(instruction, fails, again)))

    in_a_thread(try_all)
    assert len(results) == INSTRUCTIONS - 1
    assert [each for each in results if each[2] is not None] == []
    kinds = {each[1].kind for each in results if each[1] is not None}
    own = OutcomeKind.FAILED if fails else OutcomeKind.SUCCEEDED
    assert kinds <= {own, OutcomeKind.TIMEOUT}
    assert sum(each[3] for each in results) > 50


@pytest.fixture
def hectic() -> Iterator[None]:
    """Threads take turns a thousand times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


class Worker:
    """A thread that runs attempt after attempt and records what leaked out of them."""

    def __init__(self, attempts: int, handlers: list[Any]) -> None:
        self.leaks: list[BaseException] = []
        self.kinds: dict[OutcomeKind, int] = {}
        self.wrong: list[Outcome] = []
        self.current: Any = None
        self._left, self._handlers = attempts, handlers
        self.thread = threading.Thread(target=self._loop, daemon=True)

    def _loop(self) -> None:
        while self._left:
            self._left -= 1
            try:
                self._one(random.choice(self._handlers))
                for _ in range(random.randrange(30)):  # the worker's own work: nothing may hit here
                    pass
            except BaseException as leak:
                self.leaks.append(leak)

    def _one(self, handler: Any) -> None:
        finished: list[int] = []
        run = self.current = attempt(lambda job: handler(finished))
        outcome = run.run()
        self.kinds[outcome.kind] = self.kinds.get(outcome.kind, 0) + 1
        if outcome.kind is OutcomeKind.SUCCEEDED and not finished:
            self.wrong.append(outcome)


def tiny(finished: list[int]) -> None:
    finished.append(1)


def short(finished: list[int]) -> None:
    for _ in range(50):
        pass
    finished.append(1)


def nested(finished: list[int]) -> None:
    try:
        short([])
    finally:
        short(finished)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # hit in a callback of the interpreter
def test_thousands_of_interruptions_at_random_moments_never_leak_out_of_their_attempt(hectic: None) -> None:
    worker = Worker(5_000, [tiny, short, nested])
    worker.thread.start()
    sent = 0
    while worker.thread.is_alive():
        run = worker.current
        if run is not None:
            run.interrupt(random.choice(list(Interruption)))
            if random.random() < 0.3:
                run.interrupt(Interruption.STOP)
            sent += run.interrupted_at is not None
        for _ in range(random.randrange(20)):
            pass
    assert worker.leaks == [] and worker.wrong == []
    assert set(worker.kinds) <= {OutcomeKind.SUCCEEDED, OutcomeKind.TIMEOUT, OutcomeKind.RELEASED}
    assert sum(worker.kinds.values()) == 5_000
    assert sent > 100, "the test has interrupted nothing"
