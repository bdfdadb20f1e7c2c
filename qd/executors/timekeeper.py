"""Keeps the time of what is running: interrupts at the deadline, insists, and names what is stuck.

Owns no thread: the engine runs its service, which calls `tick`. Watching and forgetting are single dict
operations, which the interpreter does in one step, so the workers that run thousands of short jobs a second
share no lock.
May import: attempt, interruption, rest, clock.
"""

from __future__ import annotations

from collections.abc import Callable

from qd.clock import monotonic
from qd.executors.attempt import Attempt
from qd.executors.interruption import Interruption
from qd.rest import Rest

LONGEST_WAIT = 0.25
"""Seconds between two ticks at most: an attempt may begin with a deadline before all others."""


IDLE_WAIT = 1.0
"""Seconds between two ticks at most while nothing runs; `rest` ends it."""

TICK = 0.1
"""Seconds between looks at the running handlers: so late may a time-out be noticed."""


class Timekeeper:
    """The clock over all running attempts of a process.

    Args:
        on_stuck: told once of each attempt that didn't end after its interruption.

    Attributes:
        rest: woken when something begins to run while nothing did.
    """

    def __init__(self, on_stuck: Callable[[Attempt], None] = lambda attempt: None) -> None:
        self._on_stuck = on_stuck
        self._stopped = False
        self.rest = Rest()
        self._attempts: dict[Attempt, None] = {}
        self._insisted: set[Attempt] = set()
        self._reported: set[Attempt] = set()

    def watch(self, attempt: Attempt) -> None:
        """Begins to keep the time of an attempt."""
        self._attempts[attempt] = None
        self.rest.disturb()
        if self._stopped:  # looked at after it was added, as `stop` sets it before it looks
            attempt.interrupt(Interruption.STOP)

    def stop(self) -> None:
        """The grace has ended: interrupts what runs, and what is on its way to from now on."""
        self._stopped = True
        for attempt in self.running():
            attempt.interrupt(Interruption.STOP)

    def forget(self, attempt: Attempt) -> None:
        """Ends it; no error where it wasn't watched."""
        self._attempts.pop(attempt, None)

    def running(self) -> list[Attempt]:
        """What is being watched."""
        return list(self._attempts)

    def tick(self, now: float) -> float:
        """Interrupts what is past its deadline; seconds until it wants to be called again.

        Args:
            now: monotonic seconds.
        """
        self.rest.lie_down()
        attempts = self.running()
        if not attempts:
            return IDLE_WAIT
        self.rest.get_up()
        wait = LONGEST_WAIT
        for attempt in attempts:
            if attempt.interrupted_at is None:
                if now >= attempt.deadline:
                    attempt.interrupt(Interruption.TIMEOUT)
                else:
                    wait = min(wait, attempt.deadline - now)
            elif attempt not in self._insisted and now - attempt.interrupted_at > attempt.kill_grace / 2:
                self._insisted.add(attempt)
                attempt.insist()
        self._insisted.intersection_update(attempts)
        self._report([attempt for attempt in attempts if attempt.stuck(now)])
        return wait

    def _report(self, stuck: list[Attempt]) -> None:
        new = [attempt for attempt in stuck if attempt not in self._reported]
        self._reported = set(stuck)
        for attempt in new:
            self._on_stuck(attempt)


class TimekeeperService:
    """Gives the timekeeper its turns."""

    name = "timekeeper"

    def __init__(self, timekeeper: Timekeeper) -> None:
        self._timekeeper = timekeeper

    def run_once(self) -> float:
        """Interrupts what is past its time-out."""
        wait = self._timekeeper.tick(monotonic())
        return wait if wait == IDLE_WAIT else max(0.005, min(TICK, wait))

    def close(self) -> None:
        """Nothing to do."""
