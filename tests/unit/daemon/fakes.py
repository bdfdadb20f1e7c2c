"""An engine that does what the test says, and ears for what the daemon says."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

from qd.clock import monotonic
from qd.config.model import Config
from qd.daemon.engines import Setup
from qd.daemon.notify import Notifier
from qd.events import Event, Events
from qd.metrics.depths import DepthSnapshot
from qd.pulse import Pulse
from qd.registry import Registry
from qd.store.protocol import Database, ServerInfo

if TYPE_CHECKING:
    from qd.daemon.engine import Engine


class FakeEngine:
    """Stands for one configuration at work: its jobs end when `jobs` is set to 0."""

    def __init__(self, config: Config, registry: Registry, database: Database, events: Events) -> None:
        self.config, self.database = config, database
        self.did: list[str] = []
        self.jobs, self.reason, self.wrong = 0, None, None
        self.end = float("inf")
        self.hangs = False
        self.sampler, self.counted = self, DepthSnapshot()
        self.retired = False
        self._turned = threading.Event()

    def snapshot(self) -> DepthSnapshot:
        return self.counted

    def start(self) -> None:
        self.did.append("start")

    def retire(self) -> None:
        self.retired = True
        self.did.append("retire")

    def take_over(self, before: Engine) -> None:
        self.before = before

    def hand_over(self) -> None:
        self.retire()

    def stop(self, deadline: float) -> None:
        self.did.append("stop")
        self.end = min(self.end, deadline)
        while (self.jobs and monotonic() < self.end) or self.hangs:
            self._turned.wait(0.005)
        self.did.append("stopped")

    def hurry(self, deadline: float) -> None:
        self.did.append("hurry")
        self.end = min(self.end, deadline)

    def drained(self) -> bool:
        return self.retired and not self.jobs

    def pulses(self) -> list[Pulse]:
        return [Pulse(f"loop of {self.config.queues.keys()}", 60.0)]

    def running(self) -> int:
        return self.jobs

    def ready(self) -> str | None:
        return self.reason

    def incompatible(self) -> str | None:
        return self.wrong

    def stuck(self) -> bool:
        return False

    def workers(self) -> dict[str, tuple[int, int, int]]:
        return {"default": (1, self.jobs, 0)}

    def queue_workers(self) -> dict[str, int]:
        return dict.fromkeys(self.config.queues, 2)

    def oldest_running(self) -> dict[str, float]:
        return {"default": 10.0 * self.jobs}

    def database_up(self) -> bool:
        return self.reason is None

    def server(self) -> ServerInfo:
        return ServerInfo("Fake 1.0", "c", None)


class Made(list[FakeEngine]):
    """Makes fake engines and keeps them in order; `fails` makes the next start raise."""

    fails: Exception | None = None

    def __call__(self, config: Config, registry: Registry, database: Database, events: Events) -> Engine:
        engine = FakeEngine(config, registry, database, events)
        self.append(engine)
        if self.fails is not None:
            failure, self.fails = self.fails, None
            engine.start = lambda: _raise(failure)  # type: ignore[method-assign]
        return cast("Engine", engine)


def _raise(error: Exception) -> None:
    raise error


class Told(list[str]):
    """Stands for the way to systemd: the datagrams' first lines and statuses, in order."""

    watchdog_usec = 0

    def ready(self, status: str) -> None:
        self.append(f"READY {status}")

    def status(self, status: str) -> None:
        self.append(f"STATUS {status}")

    def reloading(self) -> None:
        self.append("RELOADING")

    def stopping(self, status: str, within: float) -> None:
        self.append(f"STOPPING {status}")

    def watchdog(self) -> None:
        """Not of interest here."""

    def flush(self) -> None:
        """Nothing is ever unsent."""

    def count_ready(self) -> int:
        """How often READY was told."""
        return sum(line.startswith("READY") for line in self)

    def notifier(self) -> Notifier:
        return cast(Notifier, self)


class Heard(list[Event]):
    """All events, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.events = Events(self.append)

    def names(self) -> list[str]:
        """The log names of what was published."""
        return [event.NAME or type(event).__name__ for event in self]


def setup_of(config: Config, database: object = None) -> Setup:
    """A setup with this configuration, no handlers and a database that nothing asks."""
    return Setup(config, Registry(), cast(Database, database))
