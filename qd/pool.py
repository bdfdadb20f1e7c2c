"""The threads that one `workers:` entry asks for: as many as configured, replaced where stuck.

May import: worker and below. Owns: its workers.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from qd.clock import monotonic
from qd.config.model import WorkerConfig
from qd.events import Problem, WorkerReplaced
from qd.executors import Attempt
from qd.pulse import Pulse
from qd.runner import Shop
from qd.setback import Setback
from qd.store.protocol import Store
from qd.worker import Worker

SPARE_FOR = 30.0
"""Seconds without work after which a thread above the least is let go."""

_serial = itertools.count(1)


class WorkerPool:
    """The workers of one configuration entry.

    Args:
        open_store: makes a store with a connection of the given name.
        up: whether the database answers.
    """

    def __init__(
        self,
        config: WorkerConfig,
        open_store: Callable[[str], Store],
        shop: Shop,
        up: Callable[[], bool] = lambda: True,
    ) -> None:
        self.config, self.label = config, config.label
        self._open_store, self._shop, self._up = open_store, shop, up
        self._lock = threading.Lock()
        self._open = False
        self._workers: list[Worker] = []
        self._stuck: list[Worker] = []

    def start(self, trouble: Setback | None = None) -> None:
        """Starts the least number of threads, as far as they aren't there.

        Args:
            trouble: what has kept those from claiming whose place they take.
        """
        self._open = True
        self._fill(trouble)

    def _fill(self, trouble: Setback | None = None) -> None:
        with self._lock:
            missing = self.config.least - len(self._workers)
        for _ in range(missing):
            self._add(trouble)

    def grow(self) -> None:
        """One more thread, if the configuration allows; called when work found nobody free."""
        if not self._shop.gate.closed:
            self._add()

    def tend(self) -> None:
        """Forgets threads that have ended, replaces those that shouldn't have and those that are stuck but
        for which there was no room before, starts those that couldn't be started, lets spare ones go."""
        with self._lock:
            self._stuck = [worker for worker in self._stuck if worker.thread.is_alive()]
            gone = [worker for worker in self._workers if not worker.thread.is_alive()]
            self._workers = [worker for worker in self._workers if worker not in gone]
            spare = self._workers[self.config.least :]
        for worker in gone:
            if not self._may_be_gone(worker):
                self._shop.events.publish(
                    Problem(f"worker {worker.name}", "its thread has ended; another takes its place")
                )
                self._add()
        if self._open and not self._ending():
            self._fill()
        self._replace_stuck()
        for worker in spare:
            if worker.state == "idle" and monotonic() - worker.idle_since > SPARE_FOR:
                worker.dismiss()

    def _replace_stuck(self) -> None:
        with self._lock:
            running = [worker.runner.attempt for worker in self._workers]
        for attempt in running:
            if attempt is not None and attempt.stuck(monotonic()):
                self.replace(attempt)

    def replace(self, attempt: Attempt) -> bool:
        """Replaces the thread that this stuck attempt holds; False: it isn't of this pool, or too
        many of its threads are stuck already (the watchdog then sees the broken pulse).

        The stuck thread keeps its job's lease until it ends: no second run while the first may act.
        """
        with self._lock:
            worker = next((w for w in self._workers if w.runner.attempt is attempt), None)
            if worker is None or len(self._stuck) >= self.config.most:
                return False
            worker.dismiss()
            self._workers.remove(worker)
            self._stuck.append(worker)
        reason = "its handler can't be stopped; it keeps its lease until it ends"
        self._shop.events.publish(WorkerReplaced(worker.name, attempt.job.id, reason))
        if not self._shop.gate.closed:
            self._add()
        return True

    def all(self) -> list[Worker]:
        """Its living threads, replaced ones too."""
        with self._lock:
            workers = [*self._workers, *self._stuck]
        return [worker for worker in workers if worker.thread.is_alive()]

    def pulses(self) -> list[Pulse]:
        """The pulses of the threads that count: not of those that were replaced, nor that ended."""
        with self._lock:
            return [worker.pulse for worker in self._workers if not self._may_be_gone(worker)]

    def counts(self) -> tuple[int, int, int]:
        """How many are idle, busy, backing off."""
        states = [worker.state for worker in self.all()]
        return states.count("idle"), states.count("busy"), states.count("backoff")

    def standstill(self, unwoken: str | None = None) -> str | None:
        """Why none of its threads has been able to claim for a while; None: one has, or all of them are at work.

        A thread that can't write the end of its job isn't at work; but while others are, it may be that row alone.

        Args:
            unwoken: why those that rest aren't woken; None: they are.
        """
        serving = self._serving()
        if any(worker.setback.recent() for worker in serving):
            return None
        wanting = [one for one in serving if one.state != "busy" and not one.setback.untried()]
        ends = [one for one in serving if one.state == "busy" and one.setback.lasting()]
        if len(ends) == sum(one.state == "busy" for one in serving):
            wanting += ends
        held = [worker.setback.lasting() or unwoken for worker in wanting]
        return f"worker {self.label}: {held[0]}" if held and all(held) else None

    def setbacks(self) -> list[Setback]:
        """Those of its threads."""
        return [worker.setback for worker in self._serving()]

    def serving(self) -> int:
        """How many threads take jobs: neither those that are stuck or were let go, nor any once none is to claim."""
        return 0 if self._shop.gate.closed else len(self._serving())

    def _serving(self) -> list[Worker]:
        with self._lock:
            return [worker for worker in self._workers if worker.thread.is_alive() and not worker.dismissed]

    def _may_be_gone(self, worker: Worker) -> bool:
        """A thread that ended while it was meant to: only then is its silence no fault."""
        return (worker.dismissed or self._ending()) and not worker.thread.is_alive()

    def _ending(self) -> bool:
        """Whether threads end by themselves now, or once they find nothing."""
        gate = self._shop.gate
        return gate.closed or gate.spent or gate.leave_when_empty

    def _add(self, trouble: Setback | None = None) -> None:
        """One more thread, unless there are as many as there may be: who looked may have looked too early."""
        with self._lock:
            if len(self._workers) >= self.config.most:
                return
            name = f"{self.label}-{next(_serial)}"
            setback = Setback(up=self._up)
            if trouble is not None:
                setback.take_over(trouble)
            worker = Worker(name, self.config, self._open_store(f"worker {name}"), self._shop, setback)
            worker.start()
            self._workers.append(worker)  # within the lock that it was started in: who sees it finds it alive
