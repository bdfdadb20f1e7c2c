"""A runtime in memory, and a metrics page read back the way a scraper reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from qd.config.model import Config, QueueConfig
from qd.metrics import Metrics
from qd.registry import Handler, Registry
from qd.store.protocol import ClaimPath, ServerInfo

MARIADB = ServerInfo("MariaDB 10.11.14", "c", ClaimPath.SKIP_LOCKED)


@dataclass
class MemoryRuntime:
    """What a daemon would say of itself."""

    threads: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    serving: dict[str, int] = field(default_factory=dict)
    oldest: dict[str, float] = field(default_factory=dict)
    trouble: str | None = None
    up: bool = True
    who: ServerInfo = MARIADB
    reloaded: bool = True

    def workers(self) -> Mapping[str, tuple[int, int, int]]:
        return self.threads

    def queue_workers(self) -> Mapping[str, int]:
        return self.serving

    def oldest_running(self) -> Mapping[str, float]:
        return self.oldest

    def ready(self) -> str | None:
        return self.trouble

    def database_up(self) -> bool:
        return self.up

    def server(self) -> ServerInfo:
        return self.who

    def last_reload_successful(self) -> bool:
        return self.reloaded


def config(*queues: str) -> Config:
    """A configuration with these queues, everything else by default."""
    return Config(queues={queue: QueueConfig() for queue in queues})


def registry(*names: str, queues: tuple[str, ...] | None = None) -> Registry:
    """A registry of handlers that are never called."""
    made = Registry()
    for name in names:
        made.add(Handler(name, function=lambda job: None, queues=queues))
    return made


def metrics(
    queues: Sequence[str] = ("default", "mails"),
    types: Sequence[str] = ("noop", "boom"),
    runtime: MemoryRuntime | None = None,
) -> Metrics:
    """Metrics of a small daemon."""
    return Metrics(config(*queues), registry(*types), runtime or MemoryRuntime())


class Page:
    """A scraped page.

    Args:
        source: who makes it, or its text.
    """

    def __init__(self, source: Metrics | str) -> None:
        self.text = source if isinstance(source, str) else source.page()[0].decode()
        self.families = {family.name: family for family in text_string_to_metric_families(self.text)}
        self.series: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in self.families.values():
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in self.series, f"twice on the page: {key}"
                self.series[key] = sample.value

    def value(self, name: str, **labels: str) -> float | None:
        """The one series with exactly these labels, or None."""
        return self.series.get((name, frozenset(labels.items())))

    def total(self, name: str, **labels: str) -> float:
        """The sum of all series of this name that have at least these labels."""
        wanted = set(labels.items())
        return sum(value for (one, has), value in self.series.items() if one == name and wanted <= has)

    def labels(self, name: str, label: str) -> set[str]:
        """The values that a label takes."""
        return {dict(has)[label] for one, has in self.series if one == name}
