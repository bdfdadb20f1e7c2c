"""A foreground worker: the same engine without HTTP and systemd, until it has done its duty.

May import: engine and everything below.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from qd.clock import monotonic
from qd.config import load_handlers
from qd.config.model import Config, ThreadRange, WorkerConfig
from qd.daemon.engine import Engine
from qd.events import AttemptEnded, Event, Events, Listener
from qd.gate import Gate
from qd.log import setup_logging
from qd.registry import Registry
from qd.store import open_database

TURN = 0.2
"""Seconds between looks whether the workers have ended or a signal came."""


@dataclass(slots=True)
class WorkReport:
    """What a foreground worker did."""

    succeeded: int = 0
    failed: int = 0
    released: int = 0

    def __call__(self, event: Event) -> None:
        """Counts an ended attempt; an `Events` listener."""
        if isinstance(event, AttemptEnded):
            if event.OUTCOME == "succeeded":
                self.succeeded += 1
            elif event.OUTCOME in ("released", "snoozed"):
                self.released += 1
            else:
                self.failed += 1


class _Stop:
    """Takes SIGTERM and SIGINT; the handlers only count."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1


def work(
    config: Config,
    queues: Sequence[str],
    threads: tuple[int, int],
    limit: int | None = None,
    drain: bool = False,
) -> WorkReport:
    """Works in the foreground until its limit, an empty queue (limit or drain) or a signal ends it.

    Args:
        queues: served in strict order, the first the first; each must be configured.
        threads: the least and the most.
        limit: jobs to run at most; ends at once where nothing is ready.
        drain: end once nothing is ready or running; delayed jobs aren't waited for.

    Raises:
        StoreError: the database can't be used at the start.
        ConfigError: a handler can't be loaded.
    """
    registry = load_handlers(config)  # before signals are ours: a module that hangs can be interrupted
    stop = _Stop()
    with _signals(stop):
        return _work(_only(config, queues, threads), registry, setup_logging(config.log), _gate(limit, drain), stop)


def drain(config: Config, queues: Sequence[str], registry: Registry | None = None) -> WorkReport:
    """Runs what is ready in these queues in this process, with one thread; no signals, no log.

    Args:
        registry: the handlers; None takes those of the configuration and of this process.
    """
    registry = registry or load_handlers(config)
    return _work(_only(config, queues, (1, 1)), registry, None, _gate(None, True), _Stop())


def _gate(limit: int | None, drain: bool) -> Gate:
    return Gate(limit, leave_when_empty=drain or limit is not None)


def _work(config: Config, registry: Registry, log: Listener | None, gate: Gate, stop: _Stop) -> WorkReport:
    report = WorkReport()
    events = Events(report, *([log] if log is not None else []))
    database = open_database(config.database, events)
    database.check()
    engine = Engine(config, registry, database, events, gate)
    engine.start()
    while not stop.asked and not engine.wait_for_workers(TURN):
        pass
    _end(engine, config.shutdown.grace, stop)
    return report


def _end(engine: Engine, grace: float, stop: _Stop) -> None:
    engine.retire()
    until = monotonic() + (grace if stop.asked else 0.0)
    while engine.running() and monotonic() < until and stop.asked < 2:
        engine.wait_for_workers(TURN)
    engine.stop(monotonic())
    if engine.stuck():
        engine.last_act()


def _only(config: Config, queues: Sequence[str], threads: tuple[int, int]) -> Config:
    """The same configuration with one worker, for these queues."""
    least, most = threads
    count: int | ThreadRange = least if least == most else ThreadRange(min=least, max=most)
    worker = WorkerConfig(queues=tuple(queues), threads=count)
    return config.model_copy(update={"workers": (worker,)})


@contextmanager
def _signals(stop: _Stop) -> Iterator[None]:
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
