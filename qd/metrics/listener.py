"""`Metrics`: counts events, and makes the page. Owns the registry of the daemon's metrics.

At 15,000 jobs a second every microsecond is 1.5 % of a core, so all series are looked up once,
when the configuration is read; an event costs one dictionary look-up and its additions.
May import: the other modules of this package, config, registry and the pure modules.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from qd import events
from qd.config.model import Config
from qd.events import AttemptEnded, Event
from qd.metrics import catalogue
from qd.metrics.catalogue import ERROR_KINDS, OTHER, OUTCOMES, REASONS, RENEWALS, Spec
from qd.metrics.depths import Depths, DepthSnapshot
from qd.metrics.gauges import Fault, Gauges
from qd.metrics.histogram import Histogram
from qd.metrics.page import Pages
from qd.metrics.runtime import Runtime
from qd.metrics.series import Pair, pairs, queues, types
from qd.registry import Registry

Add = Callable[[float], None]

Observe = Callable[[float, int], None]
"""Takes seconds and the id of the job that they are of."""


@dataclass(frozen=True, slots=True)
class _Queue:
    """The series of one queue."""

    claimed: Add
    reclaimed: Add
    wait: Observe
    attempts: Add
    claim_duration: Add
    dead: dict[str, Add]


class Metrics:
    """Listens to events; `page` is what /metrics answers.

    Args:
        config: names the queues.
        registry: names the job types.
        runtime: the daemon's state, read at each scrape.
        on_fault: told what reading the runtime raised; the gauges concerned are then left out.

    Attributes:
        kinds: the events that say something to a counter.
    """

    def __init__(
        self, config: Config, registry: Registry, runtime: Runtime, on_fault: Fault = lambda error: None
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._nothing = DepthSnapshot(interval=config.http.refresh)
        self._gauges = Gauges(runtime, lambda: self._nothing, queues(config), on_fault)
        self._make_families()
        self._lock = threading.Lock()
        self._queues: dict[str, _Queue] = {}
        self._types: dict[str, Observe] = {}
        self._endings: dict[Pair, dict[str, Add]] = {}
        self.reconfigure(config, registry)
        self._heard = self._hearers()
        self.kinds = tuple(self._heard)
        self._pages = Pages(self.registry)

    def _make_families(self) -> None:
        self.registry.register(self._gauges)
        self._claimed = self._counter(catalogue.CLAIMED)
        self._attempts = self._counter(catalogue.JOB_ATTEMPTS)
        self._dead = self._counter(catalogue.DEAD_LETTERED)
        self._reclaimed = self._counter(catalogue.RECLAIMED)
        self._duration = self._histogram(catalogue.DURATION)
        self._wait = self._histogram(catalogue.WAIT)
        self._per_job = self._histogram(catalogue.ATTEMPTS_PER_JOB)
        self._claim_duration = self._histogram(catalogue.CLAIM_DURATION)
        self._renewals = _children(self._counter(catalogue.EXTENSIONS), RENEWALS)
        self._errors = _children(self._counter(catalogue.DATABASE_ERRORS), ERROR_KINDS)
        self._reconnects = self._counter(catalogue.RECONNECTS).inc
        self._statements = self._counter(catalogue.STATEMENTS).inc
        self._commits = self._counter(catalogue.COMMITS).inc
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def _counter(self, spec: Spec) -> Counter:
        return Counter(spec.name, spec.help, spec.labels, registry=self.registry)

    def _histogram(self, spec: Spec) -> Histogram:
        return Histogram(spec, self.registry)

    def show_depths(self, depths: Depths) -> None:
        """From now on the depth gauges are those of this source (the sampler's `snapshot`)."""
        self._gauges.depths = depths

    def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page and its content type, from memory.

        Args:
            accept: the request's Accept header; OpenMetrics where it is asked for.
        """
        return self._pages.get(accept)

    def reconfigure(self, config: Config, registry: Registry) -> None:
        """Adds the series of new queues and handlers, at 0. What a removed queue counted stays, and counts on."""
        with self._lock:
            self._queues = {**self._queues, **{name: self._queue(name) for name in queues(config)}}
            self._types = {**self._types, **{name: self._duration.labels(name).observe_job for name in types(registry)}}
            self._endings = {**self._endings, **{pair: self._pair(pair) for pair in pairs(config, registry)}}
            self._nothing = DepthSnapshot(interval=config.http.refresh)
            self._gauges.queues = queues(config)

    def _queue(self, name: str) -> _Queue:
        return _Queue(
            claimed=self._claimed.labels(name).inc,
            reclaimed=self._reclaimed.labels(name).inc,
            wait=self._wait.labels(name).observe_job,
            attempts=self._per_job.labels(name).observe,
            claim_duration=self._claim_duration.labels(name).observe,
            dead={reason: self._dead.labels(name, reason).inc for reason in REASONS},
        )

    def _pair(self, pair: Pair) -> dict[str, Add]:
        return {outcome: self._attempts.labels(*pair, outcome).inc for outcome in OUTCOMES}

    def _hearers(self) -> dict[type[Event], Callable[[Any], None]]:
        return {
            **dict.fromkeys(events.ENDINGS, self._ended),
            events.JobSucceeded: self._succeeded,
            events.JobsClaimed: self._jobs_claimed,
            events.JobStarted: self._started,
            events.JobDeadLettered: self._dead_lettered,
            events.LeaseLostSeen: self._lost,
            events.StaleReclaimed: self._taken_back,
            events.LeasesExtended: self._extended,
            events.DatabaseErrorSeen: self._error,
            events.Reconnected: self._reconnected,
            events.TransactionEnded: self._sent,
        }

    def __call__(self, event: Event) -> None:
        """Counts one event; those that say nothing to a counter are passed over."""
        hear = self._heard.get(type(event))
        if hear is not None:
            hear(event)

    def _of_queue(self, name: str) -> _Queue:
        return self._queues.get(name) or self._queues[OTHER]

    def _of_pair(self, queue: str, type: str) -> dict[str, Add]:
        """The pair's own series; else the queue's for unknown types; else those of unknown queues."""
        endings = self._endings
        return endings.get((queue, type)) or endings.get((queue, OTHER)) or endings[OTHER, OTHER]

    def _jobs_claimed(self, event: events.JobsClaimed) -> None:
        queue = self._of_queue(event.queue)
        queue.claim_duration(event.seconds)
        if event.jobs:
            queue.claimed(event.jobs)

    def _started(self, event: events.JobStarted) -> None:
        self._of_queue(event.queue).wait(max(0.0, event.wait), event.job_id)

    def _succeeded(self, event: events.JobSucceeded) -> None:
        self._ended(event)
        self._of_queue(event.queue).attempts(event.attempt)

    def _ended(self, event: AttemptEnded) -> None:
        self._of_pair(event.queue, event.type)[event.OUTCOME](1)
        if event.seconds > 0:  # 0: the handler never started (handed back, unknown type, bad payload)
            (self._types.get(event.type) or self._types[OTHER])(event.seconds, event.job_id)

    def _lost(self, event: events.LeaseLostSeen) -> None:
        """The owner that lives to see its loss counts its own attempt: it will settle nothing of it."""
        self._of_pair(event.queue, event.type)["lost"](1)

    def _taken_back(self, event: events.StaleReclaimed) -> None:
        """Who takes the row back counts the attempt as well: an owner that died can't."""
        self._of_queue(event.queue).reclaimed(1)
        self._of_pair(event.queue, event.type)["lost"](1)

    def _dead_lettered(self, event: events.JobDeadLettered) -> None:
        dead = self._of_queue(event.queue).dead
        dead[event.reason if event.reason in dead else "error"](1)

    def _extended(self, event: events.LeasesExtended) -> None:
        self._renewals[event.result](event.leases)

    def _error(self, event: events.DatabaseErrorSeen) -> None:
        self._errors[event.kind if event.kind in self._errors else "other"](1)

    def _sent(self, event: events.TransactionEnded) -> None:
        self._statements(event.statements)
        if event.committed:
            self._commits(1)

    def _reconnected(self, event: events.Reconnected) -> None:
        self._reconnects(1)


def _children(counter: Counter, values: tuple[str, ...]) -> dict[str, Add]:
    return {value: counter.labels(value).inc for value in values}
