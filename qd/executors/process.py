"""Runs a Python handler in a child process: one attempt, attended by the worker's thread.

The thread never waits for the child alone: it also keeps the time, the memory limit and the lease, and
any end of the child, however wild, is an outcome. May import: child, endings, interruption, wire,
children, failure, clock, job, outcome.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qd.clock import monotonic
from qd.executors.child import Child
from qd.executors.children import log_settings
from qd.executors.endings import interrupted
from qd.executors.interruption import KILL_MARGIN, Countdown, Interruption
from qd.executors.wire import BadMessage, Message, unpacked
from qd.failure import ERROR_LIMIT, TRACEBACK_LIMIT, cut
from qd.job import Job
from qd.outcome import Outcome, OutcomeKind, Reason

BEAT = 1.0
"""Seconds between two signs of life to the child; a sixth of the lease where that is less."""

MEASURE = 0.1
"""Seconds between two looks at the child's memory, where its queue has a limit."""

TURN = 0.25
"""Seconds within which a handler hears that its lease is lost."""


class ProcessRun:
    """One run in a child (see `interruption.Run`).

    Args:
        payload: as the row has it.
        lease: seconds of the claim.
        memory: bytes that the child may occupy, or None.
    """

    ends_with_us = False

    def __init__(
        self, job: Job, child: Child, payload: str | bytes, kill_grace: float, lease: float, memory: int | None = None
    ) -> None:
        self._job, self._child, self._lease, self._memory = job, child, lease, memory
        self._payload = payload if isinstance(payload, str) else payload.decode()
        self.patience = kill_grace + KILL_MARGIN
        self._countdown = Countdown(kill_grace)
        self._whys: list[Interruption] = []
        self._insisting = self._insisted = self._told_lost = False
        self._told = 0
        self._began = self._beat_at = self._measure_at = 0.0
        self._asked = self._heard_begin = False
        self._answer: Message | None = None
        self._too_big: int | None = None

    @property
    def entered(self) -> bool:
        """See `Run`. The child says so before it enters the handler: what has said nothing of it never did."""
        return self._heard_begin or (self._asked and self._child.garbled)

    # ------------------------------------------------------------------ from any thread

    def interrupt(self, why: Interruption) -> None:
        """See `Run`. The worker's thread is woken and does the rest."""
        self._countdown.begin(why)
        self._whys.append(why)
        self._child.ring()

    def insist(self) -> None:
        """See `Run`."""
        self._insisting = True
        self._child.ring()

    # ------------------------------------------------------------------ the worker's thread

    def run(self) -> Outcome:
        """Runs the handler to its end. Unless it succeeded nothing of the child's group runs any more,
        but for the child itself where it is alone and can be used again."""
        self._began = monotonic()
        if self._whys:
            return replace(interrupted(self._whys[0], None, 0.0, __file__), entered=False)
        try:
            self._asked = not self._child.closed
            self._child.say("run", **self._task())
            self._attend()
        except BaseException:  # a fault in here: no child may go on unattended
            self._kill()
            raise
        return self._end()

    def _task(self) -> dict[str, Any]:
        job = self._job
        return {
            "id": job.id, "queue": job.queue, "type": job.type, "payload": self._payload, "attempt": job.attempt,
            "max_attempts": job.max_attempts, "priority": job.priority, "enqueued_at": job.enqueued_at.isoformat(),
            "token": job.token, "deadline": job.deadline, "lost": job.loss.is_set(), "lease": self._lease,
            "log": log_settings(), "at": monotonic(),
        }  # fmt: skip

    def _attend(self) -> None:
        """Until it has answered, or can't any more."""
        child = self._child
        self._beat_at = self._began + self._beat()
        while True:
            gone = child.gone() or child.closed
            for message in child.heard():
                self._hear(message)
            if gone or self._answer is not None:
                return
            now = monotonic()
            self._pass_on()
            if self._countdown.left() == 0 or self._grown_too_big(now):
                return
            self._keep_in_touch(now)
            child.wait(self._patience(now))

    def _hear(self, message: Message) -> None:
        """What bears another job's token, from a thread that one has left behind, say, means nothing here."""
        ours = message.get("token") == self._job.token
        if not ours:
            return
        if message.get("entered") is not False:
            self._heard_begin = True
        if message["say"] == "completing":
            if not self._job.completed:
                self._child.say("noted", token=self._job.token)
            self._job.completed = True
        elif message["say"] == "ended" and self._answer is None:
            self._answer = message

    def _pass_on(self) -> None:
        """Tells the child of interruptions, then wakes its whole group."""
        whys = self._whys[self._told :]
        for why in whys:
            self._told += 1
            self._child.say("interrupt", why=why.value)
        if self._insisting and not self._insisted:
            self._insisted = True
            self._child.say("insist")
        if whys:
            self._child.interrupt()

    def _keep_in_touch(self, now: float) -> None:
        if self._job.loss.is_set() and not self._told_lost:
            self._told_lost = True
            self._child.say("lost")
        if now >= self._beat_at:
            self._beat_at = now + self._beat()
            if self._child.silent():  # else it doesn't read: more of it would only be kept here
                self._child.say("beat", at=now)

    def _beat(self) -> float:
        return min(BEAT, self._lease / 6)

    def _grown_too_big(self, now: float) -> bool:
        if self._memory is None or now < self._measure_at or not self.entered:
            return False
        self._measure_at = now + MEASURE
        size = self._child.memory()
        if size is not None and size > self._memory:
            self._too_big = size
        return self._too_big is not None

    def _patience(self, now: float) -> float:
        until = min(self._beat_at, now + TURN)
        if self._memory is not None:
            until = min(until, self._measure_at)
        kill_in = self._countdown.left()
        return min(until - now, kill_in) if kill_in is not None else until - now

    # ------------------------------------------------------------------ its end

    def _end(self) -> Outcome:
        child, seconds = self._child, monotonic() - self._began
        child.jobs += 1
        outcome = self._answered(seconds)
        if outcome is None:
            self._kill()
            return replace(self._unanswered(seconds), entered=self.entered)
        if self._told or not child.fit():
            child.kill()  # it was cut off somewhere: nobody knows in what state
        elif outcome.kind is not OutcomeKind.SUCCEEDED and not child.process.alone():
            child.kill()  # what it has started must end, and it with that: its next jobs may count on it, as on a pool
        return outcome

    def _kill(self) -> None:
        """What it has said up to its end tells whether the handler was entered."""
        self._child.kill()
        answer = self._answer
        for message in self._child.heard():
            self._hear(message)
        self._answer = answer  # too late: it was to be killed

    def _answered(self, seconds: float) -> Outcome | None:
        """What the child has said of the handler's end, if it can be true."""
        if self._answer is None:
            return None
        try:
            outcome = unpacked(self._answer, seconds)
        except BadMessage as error:
            self._child.wrong = f"wrote into its connection to the daemon ({error})"
            return None
        if outcome.kind is OutcomeKind.RELEASED and not self._told:
            self._child.wrong = "wrote into its connection to the daemon (no stop was asked for)"
            return None
        self._job.completed = self._answer.get("completed") is True
        return self._cut_off(outcome) if self._told else replace(outcome, entered=self.entered)

    def _cut_off(self, outcome: Outcome) -> Outcome:
        """The signal may have ended a wait in C without a word, so what the handler then did doesn't count."""
        wanted = interrupted(self._whys[0], None, outcome.seconds, __file__)
        wanted = replace(wanted, entered=outcome.entered)
        if outcome.kind is wanted.kind:
            return outcome
        if outcome.error is None:
            return wanted
        error = cut(f"{wanted.error}; its end: {outcome.error}", ERROR_LIMIT)
        return replace(wanted, error=error, traceback=outcome.traceback)

    def _unanswered(self, seconds: float) -> Outcome:
        child = self._child
        if self._told:
            outcome = interrupted(self._whys[0], None, seconds, __file__)
            return replace(outcome, error=f"{outcome.error}; it had to be killed")
        words = child.last_words()
        if self._too_big is not None:
            error = f"used {self._too_big >> 20} MiB of memory, more than the queue's memory: {self._limit()}; killed"
        else:
            error = f"{child.died()} {'in the middle of the job' if self.entered else 'before the job began'}"
        traceback = cut(words, TRACEBACK_LIMIT) or None
        signal = child.signal() if not child.wrong else None
        return Outcome(OutcomeKind.CRASHED, Reason.CRASH, error, traceback, seconds=seconds, signal=signal)

    def _limit(self) -> str:
        assert self._memory is not None
        return f"{self._memory >> 20}MiB"
