"""A histogram that costs a third of a microsecond an observation where the client library's costs two.

Three are made of each job, at thousands of jobs a second. The library still makes the page of it.
May import: catalogue.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from qd.metrics.catalogue import Spec


class Series:
    """The counts of one set of label values."""

    __slots__ = ("_bounds", "_counts", "_lock", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        """Counts one value; a bucket holds what is at most its bound."""
        at = bisect_left(self._bounds, value)
        with self._lock:
            self._counts[at] += 1
            self._sum += value

    def read(self) -> tuple[list[int], float]:
        """How many values are at most each bound, in the end all of them; and their sum."""
        with self._lock:
            return list(accumulate(self._counts)), self._sum


class Histogram(Collector):
    """All series of one metric."""

    def __init__(self, spec: Spec, registry: CollectorRegistry) -> None:
        self._spec = spec
        self._names = [*map(floatToGoString, spec.buckets), "+Inf"]
        self._lock = threading.Lock()
        self._series: dict[tuple[str, ...], Series] = {}
        registry.register(self)

    def labels(self, *values: str) -> Series:
        """The series with these values of the labels, in their order; made, at 0, where it isn't there yet."""
        with self._lock:
            return self._series.setdefault(values, Series(self._spec.buckets))

    def describe(self) -> Iterable[HistogramMetricFamily]:
        """The name, without samples."""
        yield self._family()

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The family with all samples."""
        family = self._family()
        with self._lock:
            series = list(self._series.items())
        for values, one in series:
            counts, total = one.read()
            family.add_metric(values, list(zip(self._names, counts, strict=True)), total)
        yield family

    def _family(self) -> HistogramMetricFamily:
        return HistogramMetricFamily(self._spec.name, self._spec.help, labels=self._spec.labels)
