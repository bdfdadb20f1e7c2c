"""One attempt at one job: run in the worker's thread, interrupted from others.

A Python handler runs in this thread, or in a child process where one is given.
May import: the other executors, job, registry, outcome, failure, clock.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from qd.clock import monotonic
from qd.executors.child import Child
from qd.executors.command import CommandRun
from qd.executors.endings import interrupted
from qd.executors.function import FunctionRun
from qd.executors.interruption import Interruption, Run
from qd.executors.process import ProcessRun
from qd.failure import describe
from qd.job import Job
from qd.outcome import Outcome, OutcomeKind
from qd.registry import Handler

KILL_GRACE = 5.0
"""Seconds from the interruption to harder means: SIGKILL for a program, `stuck` for a thread."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a Python handler runs that doesn't run in this process.

    Attributes:
        lease: seconds of the claim: a child that doesn't hear of us for most of it ends itself.
        memory: bytes that the child may occupy, or None.
    """

    child: Child
    lease: float
    memory: int | None = None


class Attempt:
    """One attempt. `run` is called once, by the worker; everything else from any thread.

    Args:
        raw_payload: the payload as the row has it: what a program reads.
        kill_grace: see KILL_GRACE.
        place: the child process for a Python handler; None: this thread.

    Attributes:
        started_at: monotonic seconds.
        deadline: monotonic seconds at which the job's time is up.
        interrupted_at: monotonic seconds of the first interruption, or None.
        why: the first interruption's reason, which decides the outcome, or None.
        thread_ident: the thread that runs it, or None before.
    """

    __slots__ = (
        "_ended", "_lock", "_run", "_said",
        "deadline", "handler", "interrupted_at", "job", "kill_grace", "started_at", "thread_ident", "why",
    )  # fmt: skip

    def __init__(
        self, job: Job, handler: Handler, raw_payload: str | bytes = b"", *, kill_grace: float = KILL_GRACE,
        place: Place | None = None,
    ) -> None:  # fmt: skip
        self.job, self.handler, self.kill_grace = job, handler, kill_grace
        self.started_at, self.deadline = monotonic(), job.deadline
        self.interrupted_at: float | None = None
        self.why: Interruption | None = None
        self.thread_ident: int | None = None
        self._lock = threading.Lock()
        self._said: set[Interruption] | None = None
        self._ended = False
        self._run: Run
        if handler.argv is not None:
            self._run = CommandRun(job, handler.argv, raw_payload, kill_grace)
        elif place is not None:
            self._run = ProcessRun(job, place.child, raw_payload, kill_grace, place.lease, place.memory)
        else:
            self._run = FunctionRun(job, handler.function, kill_grace)

    def run(self) -> Outcome:
        """Runs the handler to its end and says how it ended. Never raises, whatever the handler does.

        In a child process that the handler has forked it doesn't return: the child ends.
        """
        self.thread_ident = threading.get_ident()
        self.started_at = monotonic()
        try:
            return self._run.run()
        except BaseException as error:  # a fault in here, or no memory left: the worker goes on
            text, traceback = describe(error)
            seconds, entered = monotonic() - self.started_at, self._run.entered
            return Outcome(OutcomeKind.FAILED, error=text, traceback=traceback, seconds=seconds, entered=entered)
        finally:
            self._ended = True

    @property
    def ended(self) -> bool:
        """Whether run() is over."""
        return self._ended

    def interrupt(self, why: Interruption) -> None:
        """Tells the handler to end: JobTimeout or JobInterrupted is raised inside a function (a
        coroutine is cancelled), a program gets SIGTERM, and SIGKILL after `kill_grace`.

        The first reason decides the outcome. The same reason again, and anything after STOP, does
        nothing.
        """
        with self._lock:
            if self._ended or (self._said and (why in self._said or Interruption.STOP in self._said)):
                return
            if self._said is None:
                self._said, self.interrupted_at, self.why = set(), monotonic(), why
            self._said.add(why)
            self._run.interrupt(why)

    @property
    def ends_with_us(self) -> bool:
        """Whether the handler's end is sure once this process has ended: a thread's, not a process's."""
        return self._run.ends_with_us

    def insist(self) -> None:
        """A harder word for a handler that was interrupted and hasn't ended since."""
        with self._lock:
            if self._said and not self._ended:
                self._run.insist()

    def abandoned(self) -> Outcome:
        """How it ended, for one that still runs while the process is about to end: as it was interrupted first."""
        outcome = interrupted(self.why or Interruption.STOP, None, monotonic() - self.started_at, __file__)
        entered = self._run.entered or self.why is None  # once interrupted it isn't entered any more
        return replace(outcome, error=f"{outcome.error}, and could not be ended but with the daemon", entered=entered)

    def stuck(self, now: float) -> bool:
        """Whether it was interrupted longer ago than it may take to end, and still runs."""
        return self.interrupted_at is not None and not self._ended and now - self.interrupted_at > self._run.patience
