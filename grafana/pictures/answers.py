"""Asks a Prometheus as Grafana would: variables filled in, over a time range, in steps. May import: nothing of qd."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grafana.panels import Json

Floats = NDArray[np.float64]

POINTS = 360
"""Steps over a range, about what a panel of this width has pixels for."""


@dataclass(frozen=True)
class Series:
    """A series over the range; a step at which it has no number is nan.

    Attributes:
        labels: of the series; without its name.
    """

    labels: Mapping[str, str]
    values: Floats

    @property
    def last(self) -> float:
        """Its last number."""
        numbers = self.values[np.isfinite(self.values)]
        return float(numbers[-1]) if len(numbers) else float("nan")

    @property
    def most(self) -> float:
        """Its greatest number."""
        numbers = self.values[np.isfinite(self.values)]
        return float(numbers.max()) if len(numbers) else float("nan")


class Source:
    """A Prometheus and a time range.

    Args:
        address: its URL.
        start, end: Unix times.
        scrape: seconds between two scrapes.
    """

    def __init__(self, address: str, start: float, end: float, scrape: float) -> None:
        self._address = address.rstrip("/")
        self.step = max(scrape, (end - start) / POINTS)
        self.times: Floats = np.arange(start, end, self.step)
        self._rate_interval = max(self.step + scrape, 4 * scrape)

    def ask(self, target: Json) -> list[Series]:
        """The answer to a panel's query."""
        return self.now(target["expr"]) if target["instant"] else self.over_time(target["expr"])

    def now(self, expr: str) -> list[Series]:
        """At the end of the range: one number each."""
        found = self._api("query", query=self._filled(expr), time=self.times[-1])
        return [Series(_labels(one), np.array([float(one["value"][1])])) for one in found]

    def over_time(self, expr: str) -> list[Series]:
        """At each step."""
        ends = {"start": self.times[0], "end": self.times[-1], "step": self.step}
        return [self._on_steps(one) for one in self._api("query_range", query=self._filled(expr), **ends)]

    def _on_steps(self, found: Json) -> Series:
        values = np.full(len(self.times), np.nan)
        for at, value in found["values"]:
            values[min(round((float(at) - self.times[0]) / self.step), len(values) - 1)] = float(value)
        return Series(_labels(found), np.where(np.isfinite(values), values, np.nan))

    def _filled(self, expr: str) -> str:
        variables = {
            "$__rate_interval": f"{self._rate_interval:.0f}s",
            "$__interval": f"{self.step:.0f}s",
            "$__range": f"{self.times[-1] - self.times[0]:.0f}s",
            "$job": "qd",
            "$instance": ".+",
            "$database": ".*",
            "$queue": ".+",
        }
        for name, value in variables.items():
            expr = expr.replace(name, value)
        return expr

    def _api(self, what: str, **parameters: str | float) -> list[Json]:
        body = urllib.parse.urlencode(parameters).encode()
        with urllib.request.urlopen(f"{self._address}/api/v1/{what}", body, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return list(found["data"]["result"])


def _labels(found: Json) -> dict[str, str]:
    return {name: value for name, value in found["metric"].items() if name != "__name__"}
