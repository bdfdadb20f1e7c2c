"""A foreground worker: the same engine without HTTP and systemd, until it has done its duty.

May import: engine and everything below.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from qd.clock import monotonic
from qd.config import load_handlers
from qd.config.model import Config, ThreadRange, WorkerConfig
from qd.daemon.engine import Engine
from qd.daemon.leaving import leave, leave_at_once
from qd.daemon.signals import STOPS, free_children
from qd.errors import HandlerError
from qd.events import AttemptEnded, Event, Events, JobNotRun, Listener
from qd.gate import Gate
from qd.log import setup_logging
from qd.registry import Registry
from qd.store import open_database
from qd.store.protocol import Database

TURN = 0.2
"""Seconds between looks whether the workers have ended or a signal came."""


@dataclass(slots=True)
class WorkReport:
    """What a foreground worker did.

    Attributes:
        unrun: by job id why it was handed back and not run since.
        last_act: where a handler could not be ended: what the process must do right before it exits.
    """

    succeeded: int = 0
    failed: int = 0
    released: int = 0
    unrun: dict[int, str] = field(default_factory=dict)
    last_act: Callable[[], None] | None = None

    def __call__(self, event: Event) -> None:
        """Counts an ended attempt; an `Events` listener."""
        if isinstance(event, JobNotRun):
            self.unrun[event.job_id] = event.why
        elif isinstance(event, AttemptEnded):
            self._count(event)

    def _count(self, event: AttemptEnded) -> None:
        if event.OUTCOME == "released":
            self.released += 1
            return
        self.unrun.pop(event.job_id, None)
        if event.OUTCOME == "succeeded":
            self.succeeded += 1
        elif event.OUTCOME == "snoozed":
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
        HandlerError: or not in a child process, and jobs are left for want of it (not where a signal ended it).
    """
    registry = load_handlers(config)  # before signals are ours: a module that hangs can be interrupted
    stop = _Stop()
    with _signals(stop):
        return _work(_only(config, queues, threads), registry, setup_logging(config.log), _gate(limit, drain), stop)


def end(report: WorkReport, status: int) -> int:
    """Ends the process after `work`: what a handler has left behind neither keeps it nor outlives a hand-back.

    Returns:
        The status, for a normal exit; doesn't return where a handler could not be ended.
    """
    if report.last_act is not None:
        leave_at_once(status, report.last_act)
    return leave(status)


def drain(config: Config, queues: Sequence[str], registry: Registry | None = None) -> WorkReport:
    """Runs what is ready in these queues in this process, with one thread; no signals, no log.

    Args:
        registry: the handlers; None takes those of the configuration and of this process.

    Raises:
        StoreError, ConfigError, HandlerError: see `work`.
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
    if engine.stuck():
        report.last_act = engine.last_act
    elif gate.leave_when_empty and not stop.asked:
        _complain(report, engine, gate, database)
    return report


def _complain(report: WorkReport, engine: Engine, gate: Gate, database: Database) -> None:
    """Raises a HandlerError where jobs are left that could not be run, whatever the reason of the last to fail."""
    problem = engine.child_problem()
    if problem is not None and not gate.spent and _left(database, engine.config):
        raise HandlerError(f"jobs run in child processes, and none can be started: {problem}")
    if report.unrun:
        whys = "; ".join(sorted(set(report.unrun.values()))[:3])
        raise HandlerError(f"jobs that could not be run and were handed back: {len(report.unrun)}; {whys}")


def _left(database: Database, config: Config) -> bool:
    """Whether anything is ready in the queues that were served."""
    store = database.store("drain")
    try:
        return bool(store.look(config.served, full=True).hits)
    finally:
        store.close()


def _end(engine: Engine, grace: float, stop: _Stop) -> None:
    engine.retire()
    until = monotonic() + (grace if stop.asked else 0.0)
    while engine.running() and monotonic() < until and stop.asked < 2:
        engine.wait_for_workers(TURN)
    engine.stop(monotonic())


def _only(config: Config, queues: Sequence[str], threads: tuple[int, int]) -> Config:
    """The same configuration with one worker, for these queues; in child processes where one of them wants that."""
    least, most = threads
    count: int | ThreadRange = least if least == most else ThreadRange(min=least, max=most)
    given = [worker for worker in config.workers if set(worker.queues).intersection(queues)]
    limited = any(config.queues[queue].memory is not None for queue in queues)  # which no worker need serve
    like = next(
        (worker for worker in given if worker.executor == "process"),
        WorkerConfig(executor="process" if limited else "thread"),
    )
    worker = like.model_copy(update={"name": None, "queues": tuple(queues), "threads": count})
    return config.model_copy(update={"workers": (worker,)})


@contextmanager
def _signals(stop: _Stop) -> Iterator[None]:
    before = {number: signal.signal(number, stop) for number in STOPS}
    free_children(STOPS, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
