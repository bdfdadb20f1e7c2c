"""An engine on a bench of the store suite, with handlers that write down what they did."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from typing import Any

import qd
from qd.clock import monotonic
from qd.config.model import BackoffConfig, Config, HttpConfig, QueueConfig, ShutdownConfig, WorkerConfig
from qd.daemon.engine import Engine
from qd.events import (
    Events,
)
from qd.gate import Gate
from qd.registry import Handler, Registry
from tests.contract.bench import Bench
from tests.support.waiting import wait_for

QUICK = QueueConfig(lease=6.0, timeout=30.0, backoff=BackoffConfig(base=0.05, cap=0.2))


class Shop:
    """An engine on a bench, and what its handlers did."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.ran: list[tuple[str, int, int]] = []
        self.registry = Registry()
        self.go = threading.Event()
        self.doors: dict[int, threading.Event] = defaultdict(threading.Event)
        self.engines: list[Engine] = []
        for function in (self.noop, self.boom, self.third, self.snooze, self.reject, self.retry, self.hold, self.deaf):
            self.registry.add(Handler(function.__name__, function))

    def start(
        self, *, gate: Gate | None = None, threads: int = 2, batch: Any = "auto", **queues: QueueConfig
    ) -> Engine:
        """Starts an engine that serves the given queues, the first the first."""
        engine = self.make(gate=gate, threads=threads, batch=batch, **queues)
        engine.start()
        return engine

    def make(
        self,
        *,
        gate: Gate | None = None,
        threads: int = 2,
        batch: Any = "auto",
        checked: bool = True,
        **queues: QueueConfig,
    ) -> Engine:
        """The same engine, not started; its database was checked or, as where it doesn't answer, wasn't."""
        queues = queues or {"default": QUICK}
        config = Config(
            database=self.bench.config,
            queues=queues,
            workers=(WorkerConfig(queues=tuple(queues), threads=threads),),
            batch=batch,
            http=HttpConfig(listen=None, refresh=1.0),
            shutdown=ShutdownConfig(grace=1.0),
        )
        database = self.bench.again(Events(self.bench.seen.append))
        if checked:
            database.check()
        engine = Engine(config, self.registry, database, Events(self.bench.seen.append), gate)
        self.engines.append(engine)
        return engine

    def until_empty(self, within: float = 20.0) -> None:
        wait_for(lambda: self.bench.jobs() == 0, within, "all jobs to be settled")

    def close(self) -> None:
        self.go.set()
        for door in list(self.doors.values()):
            door.set()
        for engine in self.engines:
            engine.stop(monotonic() + 2)

    def note(self, job: qd.Job) -> None:
        self.ran.append((job.type, job.id, job.attempt))

    def noop(self, job: qd.Job) -> str:
        self.note(job)
        return "done"

    def boom(self, job: qd.Job) -> None:
        self.note(job)
        raise ValueError("no good")

    def third(self, job: qd.Job) -> None:
        self.note(job)
        if job.attempt < 3:
            raise ValueError("not yet")

    def snooze(self, job: qd.Job) -> None:
        self.note(job)
        if len([run for run in self.ran if run[1] == job.id]) == 1:
            raise qd.Snooze(0.2)

    def reject(self, job: qd.Job) -> None:
        self.note(job)
        raise qd.Reject("no such customer")

    def retry(self, job: qd.Job) -> None:
        self.note(job)
        raise qd.Retry(after=0.1, reason="asked")

    def hold(self, job: qd.Job) -> None:
        self.note(job)
        while not self.go.is_set():
            time.sleep(0.01)

    def deaf(self, job: qd.Job) -> None:
        self.note(job)
        self.doors[job.id].wait(60)


def dead(bench: Bench) -> dict[int, str]:
    return dict(bench.sql("SELECT job_id, reason FROM qd_failed_jobs"))  # type: ignore[arg-type]
