"""The gauges that are read from the rows, shown from a snapshot that the sampler keeps.

A snapshot that has grown too old isn't shown at all: an alert on a depth must not see numbers
from before an outage. May import: catalogue, store protocol and the pure modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client.core import GaugeMetricFamily

from qd.clock import monotonic
from qd.metrics.catalogue import LAST_REFRESH, OLDEST_READY, OTHER, PAUSED, QUEUE_JOBS, REFRESH_INTERVAL, STATES, Spec
from qd.store.protocol import QueueDepth

STALE_AFTER = 5
"""Intervals after which a snapshot is too old to be shown."""


@dataclass(frozen=True, slots=True)
class DepthSnapshot:
    """What the last count of the rows found.

    Attributes:
        rows: one for each configured queue, and one for all that aren't.
        interval: seconds until the next count.
        stamp: Unix time of the count; 0.0: there was none.
        taken: monotonic time of the count.
        known: the queues that it told apart; None: all that there are.
    """

    rows: tuple[QueueDepth, ...] = ()
    interval: float = 0.0
    stamp: float = 0.0
    taken: float = field(default_factory=monotonic)
    known: frozenset[str] | None = None

    def fresh(self) -> bool:
        """True while it may be shown."""
        return self.stamp > 0 and monotonic() - self.taken <= STALE_AFTER * self.interval


Depths = Callable[[], DepthSnapshot]


def gauge(spec: Spec) -> GaugeMetricFamily:
    """An empty family of the metric; samples are added with the values of its labels, in order."""
    return GaugeMetricFamily(spec.name, spec.help, labels=spec.labels)


def depth_families(snapshot: DepthSnapshot, queues: tuple[str, ...]) -> Iterator[GaugeMetricFamily]:
    """The families of a snapshot.

    Args:
        queues: the configured ones, `_other` among them: all that aren't are put together there.
    """
    for spec, value in ((LAST_REFRESH, snapshot.stamp), (REFRESH_INTERVAL, snapshot.interval)):
        family = gauge(spec)
        family.add_metric((), value)
        yield family
    if snapshot.fresh():
        yield from _row_families(_counted(snapshot, queues))


def _counted(snapshot: DepthSnapshot, queues: tuple[str, ...]) -> dict[str, QueueDepth]:
    """What the snapshot can tell: what is new since was counted among all others, so neither is shown."""
    rows = by_queue(snapshot.rows, queues)
    if snapshot.known is None or snapshot.known >= set(queues) - {OTHER}:
        return rows
    return {queue: depth for queue, depth in rows.items() if queue in snapshot.known}


def by_queue(rows: Iterable[QueueDepth], queues: tuple[str, ...]) -> dict[str, QueueDepth]:
    """One row for each of these queues, without rows or not; strangers are put together under `_other`."""
    merged = {queue: QueueDepth(queue) for queue in queues}
    for row in rows:
        known = row.queue if row.queue in merged else OTHER
        merged[known] = merged[known].plus(row)
    return merged


def _row_families(depths: dict[str, QueueDepth]) -> Iterator[GaugeMetricFamily]:
    jobs, oldest, paused = gauge(QUEUE_JOBS), gauge(OLDEST_READY), gauge(PAUSED)
    for queue, depth in depths.items():
        for state in STATES:
            jobs.add_metric((queue, state), getattr(depth, state))
        oldest.add_metric((queue,), max(0.0, depth.oldest_ready_age))
        paused.add_metric((queue,), float(depth.paused))
    yield from (jobs, oldest, paused)
