"""The engine that serves, and those that a reload retired and that still finish their jobs.

To the rest of the daemon they are one: HTTP, metrics and the watchdog ask here, from any thread.
May import: daemon.engine and what is below the daemon. Owns: the engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qd.config.model import Config
from qd.events import Event, Events, ReloadApplied, ReloadRefused
from qd.metrics.depths import DepthSnapshot
from qd.pulse import Pulse
from qd.registry import Registry
from qd.store.protocol import Database, ServerInfo

if TYPE_CHECKING:
    from qd.daemon.engine import Engine


@dataclass(frozen=True, slots=True)
class Setup:
    """What one configuration stands for: all that an engine is built from.

    Attributes:
        adopted: to be called once it is the daemon's.
    """

    config: Config
    registry: Registry
    database: Database
    adopted: Callable[[], None] = lambda: None


MakeEngine = Callable[[Config, Registry, Database, Events], "Engine"]


class Engines:
    """All engines of the process. The main thread starts and retires them; anyone may ask.

    It is the metrics' Runtime, so that a scrape sees what a retired engine still runs.

    Args:
        make: builds an engine.
    """

    def __init__(self, events: Events, make: MakeEngine) -> None:
        self._events, self._make = events, make
        self._current: Engine | None = None
        self._retired: tuple[Engine, ...] = ()
        self._counted = DepthSnapshot()
        self._reloaded = True
        events.listen(self._hear, ReloadApplied, ReloadRefused)

    def _hear(self, event: Event) -> None:
        self._reloaded = isinstance(event, ReloadApplied)

    def start(self, setup: Setup) -> None:
        """Starts an engine for this setup, then retires the one before: in this order, so that no moment is unserved.

        Raises:
            Exception: what its start raised; the one before goes on as if nothing had been asked.
        """
        fresh = self._make(setup.config, setup.registry, setup.database, self._events)
        if self._current is not None:
            fresh.take_over(self._current)
        try:
            fresh.start()
        except Exception:
            fresh.retire()
            self._retired = (*self._retired, fresh)
            raise
        old = self._current
        same = old is not None and old.config.database.place == setup.config.database.place
        self._counted = self.depths() if same else DepthSnapshot()
        self._current = fresh
        if old is not None:
            self._retired = (*self._retired, old)
            old.hand_over()

    def prune(self) -> None:
        """Forgets the retired ones that have ended."""
        if self._retired:
            self._retired = tuple(engine for engine in self._retired if not engine.drained())

    def current(self) -> Engine | None:
        """The one that serves; None before the start."""
        return self._current

    def all(self) -> tuple[Engine, ...]:
        """Every engine that may have threads."""
        return self._retired if self._current is None else (self._current, *self._retired)

    def pulses(self) -> list[Pulse]:
        """The loops of all engines."""
        return [pulse for engine in self.all() for pulse in engine.pulses()]

    def running(self) -> int:
        """Handlers that run now, in all engines."""
        return sum(engine.running() for engine in self.all())

    def draining(self) -> int:
        """Retired engines that have not ended yet."""
        return len(self._retired)

    def ready(self) -> str | None:
        """None: jobs can be claimed; else why not."""
        return "starting" if self._current is None else self._current.ready()

    def incompatible(self) -> str | None:
        """Why this qd can't go on with the schema, should it have been changed under it."""
        return None if self._current is None else self._current.incompatible()

    def stuck(self) -> bool:
        """After the stop: a handler's thread could not be ended."""
        return any(engine.stuck() for engine in self.all())

    def depths(self) -> DepthSnapshot:
        """The last count of the rows; after a reload the one before it, until the new configuration's is there."""
        if self._current is None:
            return DepthSnapshot()
        counted = self._current.sampler.snapshot()
        if counted.stamp:
            return replace(counted, known=frozenset(self._current.config.queues))
        return self._counted if self._counted.stamp else counted

    def workers(self) -> Mapping[str, tuple[int, int, int]]:
        """Threads of each worker: idle, busy, backing off; with those that a reload retired."""
        total: dict[str, tuple[int, int, int]] = {}
        for engine in self.all():
            for label, (idle, busy, backoff) in engine.workers().items():
                before = total.get(label, (0, 0, 0))
                total[label] = (before[0] + idle, before[1] + busy, before[2] + backoff)
        return total

    def queue_workers(self) -> Mapping[str, int]:
        """Threads that serve each queue; retired ones serve none."""
        return {} if self._current is None else self._current.queue_workers()

    def oldest_running(self) -> Mapping[str, float]:
        """Seconds that the longest running job of each queue runs."""
        oldest: dict[str, float] = {}
        for engine in self.all():
            for queue, seconds in engine.oldest_running().items():
                oldest[queue] = max(seconds, oldest.get(queue, 0.0))
        return oldest

    def database_up(self) -> bool:
        """False from a failure until the next success, and before the start."""
        return self._current is not None and self._current.database_up()

    def server(self) -> ServerInfo:
        """Who answers, as far as it is known."""
        return ServerInfo("unknown", "unknown", None) if self._current is None else self._current.server()

    def last_reload_successful(self) -> bool:
        """False from a refused reload until the next applied one."""
        return self._reloaded
