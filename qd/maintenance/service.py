"""The skeleton of every background service: `run_once` is tested without a thread.

A service does one round and says when the next is wanted; the thread around it survives
everything: a database that is away stretches the period, anything else is said once a minute and
the service goes on. Each has a Pulse. May import: the pure modules.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from qd.backoff import Backoff
from qd.clock import monotonic
from qd.errors import StoreError
from qd.events import Events, Problem
from qd.pulse import Pulse

AWAY = Backoff(base=0.25, factor=2.0, cap=3.0, jitter=0.5)
"""Between rounds while the database is away."""


class Service(Protocol):
    """One background duty."""

    name: str

    def run_once(self) -> float:
        """Does one round; seconds until the next is wanted.

        Raises:
            StoreError: the database said no; the thread backs off and calls again.
        """
        ...

    def close(self) -> None:
        """Gives up what it holds (its connection); called in its own thread at the end."""
        ...


@runtime_checkable
class Wakeable(Protocol):
    """A service that waits at a place of its own, since something outside may wake it."""

    def wait(self, seconds: float) -> bool:
        """Waits this long at most; True if it was woken."""
        ...


SLICE = 0.25
"""Seconds that a Wakeable service waits in one piece."""


class ServiceThread:
    """Runs a service until it is told to stop.

    Args:
        service: the duty.
        patience: seconds that one round may take (all its statements at their time limits).
        away: how rounds are spaced while the database is away.
        pulse: where a round of the service may last longer, and keeps the pulse itself.
    """

    def __init__(
        self, service: Service, events: Events, patience: float, away: Backoff = AWAY, pulse: Pulse | None = None
    ) -> None:
        self.service, self._events, self._patience, self._away = service, events, patience, away
        self.pulse = pulse or Pulse(service.name, patience)
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._said = -60.0
        self._thread = threading.Thread(target=self._run, name=f"qd {service.name}", daemon=True)

    def start(self) -> None:
        """Starts the thread; the first round begins at once."""
        self.pulse.beat(self._patience)
        self._thread.start()

    def hurry(self) -> None:
        """Begins the next round now."""
        self._hurry.set()

    def stop(self) -> None:
        """Tells it to end after the round that is under way."""
        self._stop.set()
        self._hurry.set()

    @property
    def started(self) -> bool:
        """Whether `start` was called."""
        return self._thread.ident is not None

    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def join(self, timeout: float) -> bool:
        """Waits for its end; True if it has ended, or was never started."""
        if not self.started:
            return True
        self._thread.join(max(0.0, timeout))
        return not self._thread.is_alive()

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            failures = failures + 1 if self._quietly(self._turn) else 0
            if failures:  # a bug must not end the loop, nor slow it more than an outage does
                self._rest(self._away.delay(failures))
        self._quietly(self.service.close)

    def _turn(self) -> None:
        """One round, and the wait until the next is wanted."""
        self.pulse.beat(self._patience)
        wait = self.service.run_once()
        if isinstance(self.service, Wakeable):
            self.pulse.beat(wait + self._patience)
            self._wait(self.service, wait)
        else:
            self._rest(wait)

    def _rest(self, seconds: float) -> None:
        self.pulse.beat(seconds + self._patience)
        self._hurry.wait(seconds)
        self._hurry.clear()

    def _wait(self, service: Wakeable, seconds: float) -> None:
        """Waits at the service's own place, in slices so that a stop is noticed."""
        end = monotonic() + seconds
        while not self._stop.is_set() and (left := end - monotonic()) > 0:
            if service.wait(min(left, SLICE)):
                return

    def _quietly(self, act: Callable[[], None]) -> bool:
        """Whether it failed; no failure ends a thread."""
        try:
            act()
        except StoreError:  # said and counted where the connection is
            return True
        except Exception as error:
            self._say(error)
            return True
        return False

    def _say(self, error: Exception) -> None:
        if monotonic() - self._said >= 60:
            self._said = monotonic()
            self._events.publish(Problem(where=self.service.name, error=f"{type(error).__name__}: {error}"))
