"""The shipped rules and Alertmanager's example thirty times as fast, so that a test sees in seconds what takes minutes.

ONE change is made, to their text: every duration in them (`for:`, windows, offsets, waits, intervals) and every number
that a metric of seconds is compared with is a thirtieth of what is shipped. May import: nothing of qd.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.alertmanager import Alertmanager, Webhook
from tests.support.prometheus import SHIPPED, Prometheus, Targets
from tests.support.waiting import wait_for

FASTER = 30
DURATION = re.compile(r"(\[|offset |\bfor: |_wait: |_interval: )(\d+)([smh])\b")
SECONDS = re.compile(r"(seconds\S*\s+[<>] )(\d+)")
UNITS = {"s": 1, "m": 60, "h": 3600}


def hurried(text: str) -> str:
    """The text of rules, or of Alertmanager's example, thirty times as fast."""
    text = DURATION.sub(lambda found: f"{found[1]}{int(found[2]) * UNITS[found[3]] * 1000 // FASTER}ms", text)
    return SECONDS.sub(lambda found: f"{found[1]}{int(found[2]) / FASTER:g}", text)


def shipped(name: str) -> str:
    """The text of a file of config/prometheus."""
    return (SHIPPED / name).read_text("utf-8")


class Watch:
    """A Prometheus and an Alertmanager as shipped, faster; whom they tell is the test's webhook.

    Args:
        folder: for the rules.
        prometheus, alertmanager: the fixtures that start them.
        targets: the daemons.
    """

    def __init__(
        self,
        folder: Path,
        prometheus: Callable[..., Prometheus],
        alertmanager: Callable[[Mapping[str, Any]], Alertmanager],
        webhook: Webhook,
        targets: Targets,
    ) -> None:
        rules = folder / "qd.rules.yml"
        rules.write_text(hurried(shipped("qd.rules.yml")))
        example = hurried(shipped("alertmanager.yml")).replace("http://127.0.0.1:9095/", webhook.url)
        self.webhook, self.alertmanager = webhook, alertmanager(yaml.safe_load(example))
        self.prometheus = prometheus(targets, rules=[rules], alertmanager=self.alertmanager.address)
        self.prometheus.wait_scraped()
        self.wait_calm()

    def wait_calm(self) -> None:
        """Waits until no alert fires or is about to; what was told so far is forgotten.

        Before the first scrape, which takes Prometheus 5 s, it knows of no qd and says so.
        """
        wait_for(lambda: not self.prometheus.alerts(), 60, f"no alert: {self.prometheus.alerts()}")
        self.webhook.notes.clear()

    def fires(self, name: str, **labels: str) -> bool:
        """Whether an alert fires now."""
        return bool(self.prometheus.firing(name, **labels))

    def fired(self, name: str, since: float, **labels: str) -> bool:
        """Whether it has fired at any time since then, a Unix time."""
        wanted = ",".join(
            f'{key}="{value}"' for key, value in {"alertname": name, "alertstate": "firing", **labels}.items()
        )
        return bool(self.prometheus.range(f"ALERTS{{{wanted}}}", since))

    def told(self, receiver: str, name: str, **labels: str) -> bool:
        """Whether these people were told that an alert fires."""
        return any(note.receiver == receiver for note in self.webhook.told(name, **labels))

    def keeps_back(self, name: str, **labels: str) -> bool:
        """Whether Alertmanager keeps an alert back because of another."""
        wanted = {"alertname": name, **labels}.items()
        return any(
            alert["status"]["inhibitedBy"] for alert in self.alertmanager.alerts() if wanted <= alert["labels"].items()
        )
