"""`qd check` on time limits that contradict each other, within the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from qd.cli.checks.limits import of_limits
from qd.cli.checks.server import connections_of
from qd.config.model import Config, DatabaseConfig, QueueConfig, ShutdownConfig, ThreadRange, WorkerConfig


def told(queue: dict[str, Any] | None = None, grace: float = 30.0, **database: Any) -> list[tuple[str, str]]:
    config = Config(
        database=DatabaseConfig(**database),
        queues={"default": QueueConfig(**(queue or {}))},
        shutdown=ShutdownConfig(grace=grace),
    )
    return [(found.level, found.detail) for found in of_limits(config)]


def test_the_defaults_contradict_nothing_and_are_told() -> None:
    [(level, text)] = told()
    assert level == "ok"
    assert text == "jobs may run 5m; at a stop they have 30s, then are handed back"


@pytest.mark.parametrize(
    ("queue", "database", "said"),
    [
        ({"lease": 45.0}, {"connect_timeout": 5.0, "statement_timeout": 15.0, "driver": "mysql"}, None),
        ({"lease": 45.0}, {"connect_timeout": 10.0, "statement_timeout": 15.0}, "queues.default.lease is 45s"),
        ({}, {"connect_timeout": 30.0, "statement_timeout": 5.0}, "connect_timeout is 30s, but no answer"),
        ({}, {"statement_timeout": 2.5, "connect_timeout": 1.0}, "statement_timeout is 2.5s, but the driver counts"),
        ({}, {"connect_timeout": 0.5}, "connect_timeout is 500ms, but the driver counts whole seconds: it is 1s"),
        ({"max_attempts": 1, "timeout": 60.0}, {}, "started once (max_attempts: 1), but a stop waits 30s"),
        ({"max_attempts": 1, "timeout": 30.0}, {}, None),
        ({"max_attempts": 2, "timeout": 60.0}, {}, None),
    ],
)
def test_a_contradiction_is_a_warning_that_names_both_keys(
    queue: dict[str, Any], database: dict[str, Any], said: str | None
) -> None:
    findings = told(queue, **database)
    if said is None:
        assert [level for level, _ in findings] == ["ok"]
    else:
        [(level, text)] = findings
        assert level == "warn" and said in text


def test_the_embedded_database_has_no_connection_to_lose() -> None:
    assert [level for level, _ in told({"lease": 3.0}, driver="sqlite")] == ["ok"]


def test_a_daemons_connections_are_those_of_all_threads_that_it_may_have_and_six_more() -> None:
    workers = (WorkerConfig(threads=3), WorkerConfig(name="b", threads=ThreadRange(min=1, max=20)))
    assert connections_of(Config(workers=workers)) == 29
