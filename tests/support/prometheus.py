"""A real Prometheus for a test: it scrapes by the shipped configuration, with the test's targets, rules and pace.

    prometheus = Prometheus(folder / "prometheus", [f"127.0.0.1:{qd.port}"], rules=[RULES])
    prometheus.start()
    wait_for(lambda: prometheus.value("qd_database_up"), 20, "a scrape")
    ...
    prometheus.stop()

The fixture `prometheus` of the acceptance tests does both ends. The first scrape, of changed targets too, comes
only 5 s after the start: so long Prometheus gathers targets. May import: nothing of qd.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.programs import HttpProgram
from tests.support.server import ROOT
from tests.support.waiting import wait_for

SHIPPED = ROOT / "config" / "prometheus"
Targets = Sequence[str] | Mapping[str, Mapping[str, str]]
"""Addresses, or addresses and the labels that each shall bear."""


@dataclass(frozen=True)
class Sample:
    """A series at one moment."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Line:
    """A series over time: (Unix time, value)."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Alert:
    """An alert as Prometheus sees it.

    Attributes:
        state: `pending` or `firing`.
    """

    name: str
    state: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Prometheus(HttpProgram):
    """A server of its own, with empty storage.

    Args:
        folder: not there yet.
        targets: what it scrapes as job qd.
        rules: files; none by default.
        alertmanager: HOST:PORT that is told of alerts; None: nobody.
        interval: between two scrapes, and between two looks at the rules.

    Raises:
        ServerMissing: there is none on this machine.
    """

    def __init__(
        self,
        folder: Path,
        targets: Targets,
        *,
        rules: Sequence[Path] = (),
        alertmanager: str | None = None,
        interval: str = "1s",
    ) -> None:
        super().__init__(folder, ("prometheus",), "/-/ready")
        self._config = configuration(targets, rules, alertmanager, interval)
        self._write()

    def arguments(self) -> list[str]:
        own = [f"--config.file={self.folder / 'prometheus.yml'}", f"--storage.tsdb.path={self.folder / 'data'}"]
        listen = [f"--web.listen-address={self.address}", "--web.enable-lifecycle"]
        return [*own, *listen, "--enable-feature=exemplar-storage", "--log.level=warn"]

    def scrape(self, targets: Targets) -> None:
        """From now on it scrapes these."""
        self._config["scrape_configs"][0]["static_configs"] = static_configs(targets)
        self._write()
        self.reload()

    def reload(self) -> None:
        """Has it read its configuration and its rules again."""
        self.post("/-/reload")

    def wait_scraped(self, within: float = 30.0) -> None:
        """Waits until every target was scraped and answered."""
        wanted = {one["targets"][0] for one in self._config["scrape_configs"][0]["static_configs"]}
        wait_for(lambda: wanted == {name for name, well in self.up().items() if well}, within, f"{wanted} to be up")

    def up(self) -> dict[str, bool]:
        """The targets by their address, and whether their last scrape went well."""
        found = self._api("targets", state="active")["activeTargets"]
        return {target["labels"]["instance"]: target["health"] == "up" for target in found}

    def query(self, expr: str, at: float | None = None) -> list[Sample]:
        """What an expression gives, a number too.

        Args:
            at: Unix time; None: now.
        """
        data = self._api("query", query=expr, time=time.time() if at is None else at)
        if data["resultType"] == "scalar":
            return [Sample({}, float(data["result"][1]))]
        return [Sample(one["metric"], float(one["value"][1])) for one in data["result"]]

    def value(self, expr: str) -> float | None:
        """The value of an expression that gives one series or none; None where it is none."""
        found = self.query(expr)
        assert len(found) <= 1, f"{expr} gives {len(found)} series: {found}"
        return found[0].value if found else None

    def range(self, expr: str, start: float, end: float | None = None, step: float = 1.0) -> list[Line]:
        """What an expression gave over time.

        Args:
            start, end: Unix times; None: now.
            step: seconds.
        """
        until = time.time() if end is None else end
        data = self._api("query_range", query=expr, start=start, end=until, step=step)
        return [
            Line(one["metric"], tuple((float(at), float(value)) for at, value in one["values"]))
            for one in data["result"]
        ]

    def series(self, match: str = '{job="qd"}') -> list[dict[str, str]]:
        """The labels, names among them, of all series that it has."""
        return list(self._api("series", **{"match[]": match}))

    def exemplars(self, expr: str, start: float = 0.0, end: float | None = None) -> list[dict[str, Any]]:
        """The exemplars of an expression's series, each with its `labels` and the `seriesLabels` it was found at."""
        until = time.time() + 1 if end is None else end
        found = self._api("query_exemplars", query=expr, start=start, end=until)
        return [{**exemplar, "seriesLabels": one["seriesLabels"]} for one in found for exemplar in one["exemplars"]]

    def alerts(self) -> list[Alert]:
        """All that are pending or firing now."""
        found = self._api("alerts")["alerts"]
        return [Alert(one["labels"]["alertname"], one["state"], one["labels"], one["annotations"]) for one in found]

    def firing(self, name: str, **labels: str) -> list[Alert]:
        """The alerts of that name, and with these labels, that fire now."""
        return [
            alert
            for alert in self.alerts()
            if alert.name == name and alert.state == "firing" and labels.items() <= alert.labels.items()
        ]

    def faults(self) -> list[str]:
        """What is wrong with its rules: those that could not be evaluated, and why."""
        rules = [rule for group in self._api("rules")["groups"] for rule in group["rules"]]
        return [f"{rule['name']}: {rule.get('lastError', rule['health'])}" for rule in rules if rule["health"] == "err"]

    def _api(self, what: str, **parameters: str | float) -> Any:
        return self.get(f"/api/v1/{what}", **parameters)["data"]

    def _write(self) -> None:
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(self._config, sort_keys=False))


def configuration(targets: Targets, rules: Sequence[Path], alertmanager: str | None, interval: str) -> dict[str, Any]:
    """The shipped configuration with other targets, rules and pace; all else is as shipped."""
    config: dict[str, Any] = yaml.safe_load((SHIPPED / "prometheus.yml").read_text("utf-8"))
    config["global"] |= {"scrape_interval": interval, "evaluation_interval": interval}
    config["rule_files"] = [str(file) for file in rules]
    config["scrape_configs"][0]["static_configs"] = static_configs(targets)
    told = [] if alertmanager is None else [{"static_configs": [{"targets": [alertmanager]}]}]
    config["alerting"] = {"alertmanagers": told}
    return config


def static_configs(targets: Targets) -> list[dict[str, Any]]:
    """Targets as a scrape configuration has them."""
    labelled = targets if isinstance(targets, Mapping) else {target: {} for target in targets}
    return [{"targets": [target], "labels": dict(labels)} for target, labels in labelled.items()]
