"""The proof that every loop keeps its own deadline, and the WATCHDOG=1 that rests on it.

`Proof` is asked by the watchdog (main loop) and by /livez (HTTP threads). The main loop sends
WATCHDOG=1 itself, so that a main loop that stands still is noticed too.
May import: events, pulse, clock, daemon.notify.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from qd.clock import monotonic
from qd.daemon.notify import Notifier
from qd.events import Events, WatchdogWithheld
from qd.pulse import Pulse

UNWATCHED = 1.0
"""Seconds between two judgements where systemd doesn't wait for any: a loop that hangs is still said."""

STALLED = 1.0
"""Seconds by which the main loop itself must be late for the whole process to count as stalled."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """A loop that is behind its own deadline, and by how many seconds."""

    loop: str
    seconds: float


class Proof:
    """Judges all loops.

    Args:
        pulses: the loops that there are now; called from any thread.
    """

    def __init__(self, pulses: Callable[[], Iterable[Pulse]]) -> None:
        self._pulses = pulses

    def worst(self) -> Overdue | None:
        """The loop furthest behind, or None: every loop keeps its deadline."""
        judged = [Overdue(pulse.name, pulse.overdue()) for pulse in self._pulses()]
        worst = max(judged, key=lambda one: one.seconds, default=None)
        return worst if worst is not None and worst.seconds > 0 else None


class Watchdog:
    """Feeds systemd's watchdog from the main loop.

    Args:
        period: seconds after which systemd gives up on us; 0: it doesn't wait.
        show_stacks: says where each thread is; what systemd's SIGABRT leaves knows no thread by its name.
    """

    def __init__(
        self, notifier: Notifier, proof: Proof, events: Events, period: float, show_stacks: Callable[[], None]
    ) -> None:
        self._notifier, self._proof, self._events, self._show_stacks = notifier, proof, events, show_stacks
        self._feeds = period > 0
        # A third of the period, at most 10 a second, never over a half.
        self._interval = min(max(0.1, period / 3), period / 2) if self._feeds else UNWATCHED
        self._due = monotonic()
        self._withheld = self._excused = False

    def wait(self) -> float:
        """Seconds until `turn` is due."""
        return max(0.0, self._due - monotonic())

    def turn(self) -> None:
        """If it is due: sends WATCHDOG=1, provided that every loop keeps its deadline."""
        now = monotonic()
        if now < self._due:
            return
        late, self._due = now - self._due, now + self._interval
        worst = self._proof.worst()
        if worst is None or self._excuse(late):
            self._withheld = False
            self._feed()
        elif not self._withheld:
            self._withheld = True
            self._events.publish(WatchdogWithheld(loop=worst.loop, overdue=round(worst.seconds, 3)))
            self._show_stacks()

    def _feed(self) -> None:
        if self._feeds:
            self._notifier.watchdog()

    def _excuse(self, late: float) -> bool:
        """Once after a stall of the whole process (SIGSTOP, a frozen machine): no loop could keep its deadline
        then, and systemd must hear of us. Never twice in a row, and never for a loop that hung before."""
        twice, self._excused = self._excused, late > STALLED
        return self._excused and not twice and not self._withheld
