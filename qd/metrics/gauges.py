"""The collector of all gauges: reads the runtime and the last count of the rows, from memory.

A collector that raises would turn the whole page into an error, so each group of gauges is
guarded: what fails is left out of this page and told to `on_fault`.
May import: the other modules of this package.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from qd.metrics.catalogue import (
    BUILD_INFO,
    DAEMON_STATE,
    DAEMON_STATES,
    DATABASE_UP,
    OLDEST_RUNNING,
    OTHER,
    QUEUE_WORKERS,
    RELOAD_OK,
    WORKER_STATES,
    WORKERS,
    Spec,
)
from qd.metrics.depths import Depths, depth_families, gauge
from qd.metrics.runtime import STOPPING, Runtime
from qd.metrics.series import clean
from qd.version import __version__

Fault = Callable[[BaseException], None]


class Gauges(Collector):
    """Shows what is known in memory.

    Args:
        runtime: the daemon's state.
        depths: the last count of the rows.
        queues: the values of the label `queue`, `_other` among them.
        on_fault: told what a group raised; it must not raise itself.
    """

    def __init__(self, runtime: Runtime, depths: Depths, queues: tuple[str, ...], on_fault: Fault) -> None:
        self._runtime, self._on_fault = runtime, on_fault
        self.depths, self.queues = depths, queues

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: the registry must not collect in order to learn names."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All families that could be made."""
        groups = (self._depths, self._threads, self._running, self._state, self._database, self._reload, self._build)
        for group in groups:
            try:
                yield from list(group())
            except Exception as error:  # left out of this page, see the module
                self._on_fault(error)

    def _depths(self) -> Iterator[GaugeMetricFamily]:
        return depth_families(self.depths(), self.queues)

    def _threads(self) -> Iterator[GaugeMetricFamily]:
        workers = gauge(WORKERS)
        for label, counts in self._runtime.workers().items():
            for state, count in zip(WORKER_STATES, counts, strict=True):
                workers.add_metric((clean(label), state), count)
        yield workers
        yield self._by_queue(QUEUE_WORKERS, self._runtime.queue_workers(), lambda one, other: one + other)

    def _running(self) -> Iterator[GaugeMetricFamily]:
        yield self._by_queue(OLDEST_RUNNING, self._runtime.oldest_running(), max)

    def _state(self) -> Iterator[GaugeMetricFamily]:
        trouble = self._runtime.ready()
        now = "ready" if trouble is None else "stopping" if trouble == STOPPING else "unready"
        family = gauge(DAEMON_STATE)
        for state in DAEMON_STATES:
            family.add_metric((state,), float(state == now))
        yield family

    def _database(self) -> Iterator[GaugeMetricFamily]:
        yield _single(DATABASE_UP, self._runtime.database_up())

    def _reload(self) -> Iterator[GaugeMetricFamily]:
        yield _single(RELOAD_OK, self._runtime.last_reload_successful())

    def _build(self) -> Iterator[GaugeMetricFamily]:
        server = self._runtime.server()
        path = server.claim_path.value if server.claim_path is not None else "unknown"
        family = gauge(BUILD_INFO)
        family.add_metric(
            (__version__, platform.python_version(), clean(server.connector), path, clean(server.server)), 1.0
        )
        yield family

    def _by_queue(
        self, spec: Spec, values: Mapping[str, float], add: Callable[[float, float], float]
    ) -> GaugeMetricFamily:
        """A value for each configured queue, 0 where there is none; strangers go into `_other`."""
        merged = dict.fromkeys(self.queues, 0.0)
        for queue, value in values.items():
            known = queue if queue in merged else OTHER
            merged[known] = add(merged[known], float(value))
        family = gauge(spec)
        for queue, value in merged.items():
            family.add_metric((queue,), value)
        return family


def _single(spec: Spec, value: bool) -> GaugeMetricFamily:
    family = gauge(spec)
    family.add_metric((), float(value))
    return family
