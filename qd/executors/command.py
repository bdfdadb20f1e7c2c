"""Runs a program as a handler: payload on its stdin, its end read from its exit status.

The worker's thread does all of it: writing, reading, waiting, signalling. Others only wake it. What
a program writes is read to its end but only the last of it kept, so none can fill our memory, and
none blocks because it doesn't read or because a child of its own keeps its output open.

May import: endings, environment, interruption, pipes, ring, spawn, failure, clock, job, outcome.
"""

from __future__ import annotations

import errno
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from qd.clock import monotonic
from qd.executors.endings import interrupted
from qd.executors.environment import for_command
from qd.executors.interruption import KILL_MARGIN, Countdown, Interruption
from qd.executors.pipes import Pipes
from qd.executors.ring import Ring
from qd.executors.spawn import Program, spawn
from qd.failure import ERROR_LIMIT, cut
from qd.job import Job
from qd.outcome import Outcome, OutcomeKind, Reason

SNOOZE_STATUS = 75
"""Back in the queue for SNOOZE_SECONDS, not an attempt (EX_TEMPFAIL)."""

REJECT_STATUSES = (65, 100)
"""To the dead letter at once (EX_DATAERR; qmail's permanent failure)."""

SNOOZE_SECONDS = 60.0

SHORT_OF = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""Where a program can't be started for want of these, it is no fault of the job's, and no attempt."""

LINGER = 0.25
"""Seconds that the output is still read after the program's exit, if a child of it holds it open."""


class CommandRun:
    """One run of a program (see `interruption.Run`)."""

    ends_with_us = False

    def __init__(
        self, job: Job, argv: Sequence[str], payload: str | bytes, kill_grace: float, *, use_pidfd: bool = True
    ) -> None:
        self._job, self._argv, self._kill_grace, self._use_pidfd = job, argv, kill_grace, use_pidfd
        self._payload = payload.encode(errors="surrogatepass") if isinstance(payload, str) else payload
        self.patience = kill_grace + KILL_MARGIN
        self._why: Interruption | None = None
        self._countdown = Countdown(kill_grace)
        self._ring: Ring | None = None
        self._terminated = self.entered = False

    def interrupt(self, why: Interruption) -> None:
        """See `Run`. The worker's thread is woken and does the rest."""
        self._countdown.begin(why)
        self._why = self._why or why
        if self._ring is not None:
            self._ring.ring()

    def insist(self) -> None:
        """Nothing: SIGKILL follows by itself."""

    def run(self) -> Outcome:
        """Runs the program to its end; its process group is gone too unless it succeeded."""
        began = monotonic()
        if self._why is not None:
            return replace(interrupted(self._why, None, 0.0, __file__), entered=False)
        try:
            program = spawn(self._argv, for_command(self._job), use_pidfd=self._use_pidfd)
        except (OSError, ValueError) as error:
            failed = Outcome(OutcomeKind.FAILED, error=self._not_started(error), seconds=monotonic() - began)
            return replace(failed, entered=getattr(error, "errno", None) not in SHORT_OF)
        self.entered = True
        try:
            output, errors, status = self._attend(program)
        finally:
            program.close()
        return self._outcome(status, output, errors, monotonic() - began)

    # ------------------------------------------------------------------ while it runs

    def _attend(self, program: Program) -> tuple[str, str, int | None]:
        try:
            with self._woken_by() as wake:
                pipes = Pipes(program, self._payload, wake)
                self._until_exit(program, pipes)
                if self._countdown.hurried:  # no time to wait for what it has left behind
                    program.signal_group(signal.SIGKILL)
                pipes.drain(LINGER)
        except BaseException:  # a fault in here: no program may go on unattended
            program.signal_group(signal.SIGKILL)
            program.reap()
            raise
        return pipes.output.text(), pipes.errors.text(), self._end(program)

    def _until_exit(self, program: Program, pipes: Pipes) -> None:
        killed = False
        while not program.exited():
            if self._why is not None and not self._terminated:
                self._terminate(program)
            if not killed and self._countdown.left() == 0:
                program.signal_group(signal.SIGKILL)
                killed = True
            pipes.attend(None if killed else self._countdown.left())

    def _terminate(self, program: Program) -> None:
        self._terminated = True
        program.signal_group(signal.SIGTERM)
        program.signal_group(signal.SIGCONT)  # a stopped process would keep SIGTERM for later

    def _end(self, program: Program) -> int | None:
        """Reaps it. Unless it succeeded, what is left of its group is killed: the job may run again."""
        if program.status == 0 and not self._terminated:
            program.reap()
        else:
            program.end_group()
        return program.status

    @contextmanager
    def _woken_by(self) -> Iterator[Ring]:
        ring = self._ring = Ring()
        try:
            yield ring
        finally:
            ring.close()

    # ------------------------------------------------------------------ its end

    def _outcome(self, status: int | None, output: str, errors: str, seconds: float) -> Outcome:
        if self._terminated and self._why is not None:
            return self._interrupted(self._why, errors, seconds)
        if status == 0:
            return Outcome(OutcomeKind.SUCCEEDED, result=output or None, seconds=seconds)
        if status == SNOOZE_STATUS:
            return Outcome(OutcomeKind.SNOOZED, delay=SNOOZE_SECONDS, seconds=seconds)
        text = cut(f"{_spell(status)}: {errors}" if errors else _spell(status), ERROR_LIMIT)
        if status in REJECT_STATUSES:
            return Outcome(OutcomeKind.REJECTED, Reason.REJECTED, text, seconds=seconds)
        return Outcome(OutcomeKind.FAILED, error=text, seconds=seconds)

    def _interrupted(self, why: Interruption, errors: str, seconds: float) -> Outcome:
        outcome = interrupted(why, None, seconds, __file__)
        text = cut(f"{outcome.error}: {errors}", ERROR_LIMIT) if errors else outcome.error
        return Outcome(outcome.kind, outcome.reason, text, seconds=seconds)

    def _not_started(self, error: OSError | ValueError) -> str:
        name = cut(self._argv[0], 1000)
        if isinstance(error, FileNotFoundError):
            return f"program {name!r} not found (nor, if it is a script, the interpreter that it names)"
        if isinstance(error, PermissionError):
            return f"program {name!r} is not executable for this user"
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return cut(f"program {name!r} can't be started: {reason}", ERROR_LIMIT)


def _spell(status: int | None) -> str:
    if status is None:
        return "its exit status was taken by somebody else (a handler that waits for any child, or ignores SIGCHLD?)"
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"killed by signal {-status}"
