"""Draining in this process: what can't be run is told, and costs no attempt."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

import qd
from qd.config.model import Config, DatabaseConfig, QueueConfig, WorkerConfig
from qd.daemon.work import drain
from qd.errors import HandlerError
from qd.events import Events
from qd.registry import Handler, Registry
from qd.store import open_database
from qd.store.protocol import Filter


@pytest.fixture
def config(sqlite_config: DatabaseConfig) -> Config:
    """One queue, whose jobs run in child processes."""
    open_database(sqlite_config, Events()).migrate()
    return Config(
        database=sqlite_config, queues={"default": QueueConfig()}, workers=(WorkerConfig(executor="process"),)
    )


def main_function(job: qd.Job) -> None:
    """Registered by the program itself, which no child can import."""
    Path(cast(str, job.payload)).touch()


main_function.__module__ = "__main__"


def test_a_handler_that_only_the_main_program_registers_is_named_where_jobs_run_in_children(
    config: Config, tmp_path: Path
) -> None:
    registry = Registry()
    registry.add(Handler("only_here", main_function))
    with qd.Client(config) as client:
        job = client.enqueue("only_here", str(tmp_path / "ran"), max_attempts=1)
    with pytest.raises(HandlerError, match=r"handler only_here: .*move it into a module that can be imported"):
        drain(config, ["default"], registry)
    store = open_database(config.database, Events()).store("test")
    try:
        assert [(row.id, row.attempts) for row in store.list_jobs(Filter(limit=9))] == [(job, 0)]
    finally:
        store.close()
    assert not (tmp_path / "ran").exists()
