"""Everything that depends on one configuration's queues, workers and database, put together.

A reload makes a new engine and retires the old one, whose running jobs go on to their end; so a
configuration is taken on whole or not at all. Start order and stop order stand in `start`,
`_open` and `stop`; the lease keeper starts first and stops last. May import: everything below the daemon,
opener, tender. Owns: all threads of one configuration.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterator, Mapping
from functools import partial

from qd.acknowledge import Acknowledger
from qd.backoff import Backoff
from qd.batch import Batch, BatchSize
from qd.bell import Bell
from qd.clock import monotonic
from qd.config.model import Config, DatabaseConfig
from qd.daemon.last_act import LastAct
from qd.daemon.loops import Loop
from qd.daemon.opener import Opener
from qd.daemon.tender import Tender
from qd.events import Events
from qd.executors import Attempt, Children, Timekeeper, TimekeeperService
from qd.executors.children import modules_of
from qd.executors.environment import hide
from qd.gate import Gate
from qd.identity import Identity
from qd.job import Job
from qd.lease import LeaseKeeper
from qd.maintenance.duties import Announcer, Duties, Posts, Retention
from qd.maintenance.full_look import FullLook
from qd.maintenance.returner import Returner
from qd.maintenance.sampler import Sampler
from qd.maintenance.service import Service
from qd.maintenance.sweep import StaleSweep
from qd.poller import Poller
from qd.pool import WorkerPool
from qd.pulse import Pulse
from qd.registry import Registry
from qd.runner import Shop
from qd.setback import Setback
from qd.store.callers.complete import complete
from qd.store.protocol import DaemonRow, Database, ServerInfo
from qd.version import __version__
from qd.waking import WakeSocket
from qd.worker import Worker

STATEMENTS_A_ROUND = 4
"""Statements that one round of any loop may run into their time limits."""

AFTER_INTERRUPT = 1.0
"""Seconds that handlers get to end after the grace, once they were interrupted."""

TO_CLOSE = 0.5
"""Seconds that closing connections and the last duties get."""

_serial = itertools.count(1)
process_identity = functools.cache(Identity)


class Engine:
    """One configuration at work.

    Args:
        registry: the handlers.
        database: opens a store for each thread.
        gate: for a foreground worker: its limit, and whether it leaves when empty.
    """

    def __init__(
        self, config: Config, registry: Registry, database: Database, events: Events, gate: Gate | None = None
    ) -> None:
        self.config, self._database, self._events = config, database, events
        hide([config.database.password])  # programs that are handlers needn't see the variable it came from
        self._identity = process_identity()
        self.announce_id = f"{self._identity.name}:{next(_serial)}"
        limits = config.database
        self._patience = limits.connect_timeout + STATEMENTS_A_ROUND * limits.statement_timeout + 5
        self._policies = {queue: config.queues[queue] for queue in config.served}
        self._gate = gate or Gate()
        self._bell = Bell()
        self._end = float("inf")
        shortest = min(policy.lease for policy in self._policies.values())
        self._keeper = LeaseKeeper(database.store("lease keeper"), events, shortest)
        self._timekeeper = Timekeeper(on_stuck=self._on_stuck)
        fixed = None if config.batch == "auto" else config.batch
        self._shop = Shop(
            policies=self._policies,
            registry=registry,
            events=events,
            keeper=self._keeper,
            timekeeper=self._timekeeper,
            bell=self._bell,
            gate=self._gate,
            identity=self._identity,
            sizes={queue: BatchSize(fixed) for queue in self._policies},
            patience=self._patience,
            finish=partial(_finish, config.database),
            children=_children(config, registry, events),
        )
        self._last_act = LastAct(self._shop, self._workers)
        self._pools = [WorkerPool(worker, database.store, self._shop, database.up) for worker in config.workers]
        self.sampler = Sampler(database.store("sampler"), config.http.refresh, tuple(config.queues), events)
        self._tender = Tender(self._pools, events, database.up, lambda: self._gate.closed)
        self._trouble: Setback | None = None
        self._opener = Opener(database, self._open, events)
        self._lock = threading.Lock()
        away = Backoff(base=0.1, factor=2.0, cap=min(1.0, shortest / 6), jitter=0.5)
        self._keeping = [
            Loop(self._keeper, events, self._patience, away),
            Loop(TimekeeperService(self._timekeeper), events, self._patience),
            self._returner(),
        ]
        self._timekeeper.rest.wake, self._shop.rest.wake = (thread.hurry for thread in self._keeping[1:])
        self._serving = [Loop(service, events, self._patience) for service in self._services()]
        self._counting = Loop(self.sampler, events, self._patience)
        self._tending = Loop(self._tender, events, self._patience)
        self._draining = [self._counting, self._tending]
        self._opening = Loop(self._opener, events, self._patience)

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Starts the keeper, the clocks and, as soon as the database was checked, the workers."""
        for thread in self._keeping:
            thread.start()
        if self._database.info().claim_path is not None and self._database.up():
            self._open()
            self._opener.opened = True  # checked a moment ago, on the main thread
        self._opening.start()

    def _open(self) -> None:
        """The database is as it should be: let work begin. If it raises, it goes on where it was, called again."""
        with self._lock:
            if self._gate.closed:
                return
            for thread in self._serving:
                thread.start()
            for pool in self._pools:
                pool.start(self._trouble)
            self._counting.start()
            self._tending.start()  # once the pools are whole: it judges by them

    def take_over(self, before: Engine) -> None:
        """Called before its start: what has kept the engine before from claiming keeps this one, until it claims."""
        self._trouble = self._tender.take_over(before._tender)

    def hand_over(self) -> None:
        """Retires, since another engine serves and is asked what the rows are."""
        self.retire()
        self._counting.stop()

    def retire(self) -> None:
        """Nothing is claimed from now on; running jobs go on to their end, and the rows are counted until then."""
        with self._lock:
            self._gate.close()
        self._bell.close()
        self._opening.stop()
        for thread in self._serving:
            thread.stop()

    def stop(self, deadline: float) -> None:
        """Retires, waits for the running jobs, then hands back what is left; the keeper stops last.

        Args:
            deadline: monotonic; returns at most 2 s after it, whatever the database does.
        """
        self.hurry(deadline)
        self.retire()
        while self._working() and monotonic() < self._end:
            self._join_workers(min(self._end, monotonic() + 0.05))
        self._timekeeper.stop()
        self._join_workers(self._end + AFTER_INTERRUPT)
        closing = min(self._end, monotonic()) + AFTER_INTERRUPT + TO_CLOSE
        for thread in self._draining:
            thread.stop()
        for thread in [self._opening, *self._serving, *self._draining]:
            thread.join(closing - monotonic())
        for thread in reversed(self._keeping):  # the keeper last: the others may still write ends
            thread.stop()
            thread.join(min(closing, monotonic() + TO_CLOSE) - monotonic())
        if not self.stuck():
            self._last_act.say_what_is_left()

    def hurry(self, deadline: float) -> None:
        """Brings the deadline of a stop forward; safe from any thread."""
        self._end = min(self._end, deadline)
        self._gate.deadline = self._end + AFTER_INTERRUPT

    def drained(self) -> bool:
        """After retire or stop: whether all of its threads have ended; once its jobs have, it ends them."""
        if not self._gate.closed or self._working():
            return False
        for thread in [*self._draining, *reversed(self._keeping)]:  # the keeper last: others may still write ends
            thread.stop()
            if not thread.join(0):
                return False
        return all(thread.join(0) for thread in [*self._serving, self._opening])

    def child_problem(self) -> str | None:
        """Why no child process can be started for workers that need one; None: they can, or none does."""
        needed = any(worker.executor == "process" for worker in self.config.workers)
        return self._shop.children.problem if needed else None

    def wait_for_workers(self, seconds: float) -> bool:
        """Waits for all worker threads to end by themselves; True if they have."""
        self._join_workers(monotonic() + seconds)
        return self._opener.opened and not self._working()

    def stuck(self) -> bool:
        """Whether a handler runs that could not be ended."""
        return self._last_act.stuck()

    def last_act(self) -> None:
        """Ends what stuck threads hold; the process must exit right after it."""
        self._last_act.perform(self._database.store("last act"))

    # ------------------------------------------------------------------ what others ask

    def running(self) -> int:
        """Handlers that run now."""
        return len(self._timekeeper.running())

    def pulses(self) -> list[Pulse]:
        """The pulses of all loops that should be turning."""
        services = [*self._keeping, *self._serving, *self._draining, self._opening]
        return [pulse for each in services for pulse in each.watched()] + [
            pulse for pool in self._pools for pulse in pool.pulses()
        ]

    def ready(self) -> str | None:
        """None if it can claim, else the reason why not."""
        if self._gate.closed:
            return "stopping"
        if self._opener.reason is not None:
            return self._opener.reason
        if not self._database.up():
            return "waiting for database"
        problem, backing_off = self.child_problem(), all(states[:2] == (0, 0) for states in self.workers().values())
        if problem and backing_off:
            return f"no child process: {' '.join(problem.split())}"
        return self._tender.standstill()

    def incompatible(self) -> str | None:
        """Why this qd can't go on with the schema, should it have been changed under it."""
        return self._opener.incompatible

    def workers(self) -> Mapping[str, tuple[int, int, int]]:
        """Per worker label how many threads are idle, busy, backing off."""
        return {pool.label: pool.counts() for pool in self._pools}

    def queue_workers(self) -> Mapping[str, int]:
        """Per queue how many threads serve it."""
        threads = dict.fromkeys(self.config.queues, 0)
        for pool in self._pools:
            for queue in pool.config.queues:
                threads[queue] += pool.serving()
        return threads

    def oldest_running(self) -> Mapping[str, float]:
        """Per queue for how many seconds its longest running handler has run; 0.0: none runs."""
        oldest = dict.fromkeys(self.config.queues, 0.0)
        now = monotonic()
        for attempt in self._timekeeper.running():
            queue = attempt.job.queue
            oldest[queue] = max(oldest.get(queue, 0.0), now - attempt.started_at)
        return oldest

    def database_up(self) -> bool:
        """Whether the database answered last."""
        return self._database.up()

    def server(self) -> ServerInfo:
        """Who answers."""
        return self._database.info()

    # ------------------------------------------------------------------ parts

    def _services(self) -> Iterator[Service]:
        store = self._database.store("maintenance")
        queues = tuple(self._policies)
        row = DaemonRow(
            id=self.announce_id,
            host=self._identity.host,
            pid=self._identity.pid,
            version=__version__,
            queues=queues,
            types=self._shop.registry.names(),
        )
        announcer = Announcer(store, row)
        looker, wake = self._database.store("poller"), WakeSocket.try_bind()
        poller = Poller(looker, queues, self._bell, self.config.poll, self._grow, wake, self._tender.looking)
        duties: list[Service] = [
            announcer,
            Posts(store, queues),
            StaleSweep(store, self._policies, self._events, self._database.troubled_at, announcer.run_once),
            FullLook(store, queues, poller.heed, self._events),
            Retention(store, self.config.retention.failed),
        ]
        yield Duties(duties, store.close)
        yield poller

    def _returner(self) -> Loop:
        """Its round lasts as long as an outage does, so each try to write keeps its pulse."""
        store, pulse = self._database.store("returner"), Pulse("returner", self._patience)
        turn = partial(pulse.beat, self._patience)
        acknowledger = Acknowledger(store, self._keeper, self._events, self._gate, turn)
        returner = Returner(self._batches, acknowledger, self._gate, store.close, self._shop.rest)
        return Loop(returner, self._events, self._patience, pulse=pulse)

    def _workers(self) -> list[Worker]:
        return [worker for pool in self._pools for worker in pool.all()]

    def _working(self) -> bool:
        return bool(self._workers())

    def _batches(self) -> list[Batch]:
        return [batch for worker in self._workers() if (batch := worker.batch) is not None]

    def _join_workers(self, until: float) -> None:
        for worker in self._workers():
            worker.thread.join(max(0.0, until - monotonic()))

    def _grow(self, queues: set[str]) -> None:
        for pool in self._pools:
            if queues.intersection(pool.config.queues):
                pool.grow()

    def _on_stuck(self, attempt: Attempt) -> None:
        any(pool.replace(attempt) for pool in self._pools)


def _children(config: Config, registry: Registry, events: Events) -> Children:
    database = config.database.name if config.database.driver == "mysql" else None
    needed = any(handler.function is not None for handler in registry.handlers())
    return Children(modules_of(config.handlers.modules, registry), database, events, needed=needed)


def _finish(database: DatabaseConfig, cursor: object, job: Job) -> bool:
    """Names the database: the handler's own connection may stand in another one of the same server."""
    return complete(cursor, job.id, job.token, database=database.name if database.driver == "mysql" else None)
