"""The main loop: takes signals, feeds the watchdog, ends reloads, stops.

It never waits for anything but its own wakeup: what may take time has a thread that wakes it.
May import: the daemon's other parts. Owns: the phase that the daemon is in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from signal import Signals as Name

from qd.clock import monotonic
from qd.daemon.engines import Engines
from qd.daemon.notify import LONGEST, Notifier, shortened
from qd.daemon.reload import Reloads
from qd.daemon.signals import RELOAD, SHOW_STACKS, STOPS, Signals
from qd.daemon.stop import BOUND, Stop
from qd.daemon.watchdog import Watchdog
from qd.events import DaemonFailed, DaemonStopped, DaemonStopping, Events
from qd.metrics.depths import DepthSnapshot
from qd.pulse import Pulse

PATIENCE = 10.0
"""Seconds that one turn of the main loop may take before it counts as standing still."""

STATUS_EVERY = 5.0
"""Seconds between two words on how many jobs run; a change of readiness is told at once."""

TICK = 1.0
"""Seconds that the main loop sleeps at most."""


@dataclass(slots=True)
class Word:
    """What was last told by STATUS, and when."""

    ready: str | None = ""
    told: float = 0.0


class Supervisor:
    """Runs the daemon from READY to the end. Everything in it happens in the main thread."""

    def __init__(
        self,
        signals: Signals,
        notifier: Notifier,
        engines: Engines,
        reloads: Reloads,
        watchdog: Watchdog,
        pulse: Pulse,
        events: Events,
        show_stacks: Callable[[], None],
    ) -> None:
        self._signals, self._notifier, self._engines = signals, notifier, engines
        self._reloads, self._watchdog, self._pulse, self._events = reloads, watchdog, pulse, events
        self._show_stacks = show_stacks
        self._word = Word()
        self.stop: Stop | None = None
        self.wrong: str | None = None
        """Why the daemon stopped by itself: the schema was changed to one that it can't work with."""

    def run(self) -> None:
        """Goes on until a stop is over."""
        while self.stop is None or not self.stop.over():
            self._signals.wait(self._pause())
            for number in self._signals.take():
                self._heed(number)
            self._turn()
        self._events.publish(DaemonStopped(seconds=round(monotonic() - self.stop.began, 3)))

    def _pause(self) -> float:
        waits = (self._watchdog.wait(), self._reloads.wait(), None if self.stop is None else self.stop.left())
        return min(TICK, *(wait for wait in waits if wait is not None))

    def _heed(self, number: int) -> None:
        if number in STOPS:
            self._stop(Name(number).name)
        elif number == RELOAD and self.stop is None:
            self._reloads.ask()
        elif number == SHOW_STACKS:
            self._show_stacks()

    def _turn(self) -> None:
        self._pulse.beat(PATIENCE)
        self._watchdog.turn()
        self._notifier.flush()
        if self.stop is None:
            self._reloads.turn()
            self._engines.prune()
            self._look_at_schema()
        self._tell()

    def _look_at_schema(self) -> None:
        self.wrong = self._engines.incompatible()
        if self.wrong is not None:
            self._events.publish(DaemonFailed(where="schema", error=self.wrong))
            self._stop("schema")

    def _stop(self, reason: str) -> None:
        if self.stop is not None:
            self.stop.hurry()
            return
        grace, running = self._reloads.setup.config.shutdown.grace, self._engines.running()
        self._notifier.stopping(f"stopping, {_jobs(running)}", grace + BOUND + 3)
        self._events.publish(DaemonStopping(reason=reason, grace=grace, running=running))
        self.stop = Stop(self._engines.all(), grace, self._signals.wake)

    def _tell(self) -> None:
        ready = "stopping" if self.stop is not None else self._engines.ready()
        if ready == self._word.ready and monotonic() - self._word.told < STATUS_EVERY:
            return
        self._word = Word(ready, monotonic())
        self._notifier.status(self.status(ready))

    def status(self, ready: str | None, after_reload: str = "") -> str:
        """The daemon's state in one line, the numbers before what may be long: systemd is told its beginning.

        Args:
            after_reload: how the reload went that has just ended.
        """
        running, draining = self._engines.running(), self._engines.draining()
        words = [shortened(ready or "ready", LONGEST // 2)]
        if running or ready is None:
            words.append(_jobs(running))
        if ready is None:
            words += _rows(self._engines.depths())
        if draining and self.stop is None:
            words.append("an earlier configuration still drains")
        refused = self._reloads.refused
        last = after_reload or (f"the last reload was refused: {refused}" if refused else "")
        return "; ".join(filter(None, (", ".join(words), last)))


def _rows(counted: DepthSnapshot) -> list[str]:
    """What the last count of the rows found, if that wasn't long ago."""
    if not counted.fresh():
        return []
    waiting, stale, failed = (
        sum(getattr(row, state) for row in counted.rows) for state in ("ready", "stale", "failed")
    )
    found = [(waiting, "waiting"), (stale, "stale"), (failed, "dead letters" if failed > 1 else "dead letter")]
    return [f"{count:,} {name}" for count, name in found if count or name == "waiting"]


def _jobs(running: int) -> str:
    return f"{running} job{'' if running == 1 else 's'} running"
