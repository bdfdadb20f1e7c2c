"""A bench's daemon, as the bench sees it: a real process on a SQLite file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qd.bench import inside
from qd.bench.daemon import BenchDaemon, BenchFailed, await_finished, await_held, stop_all
from qd.bench.inside import order
from qd.bench.plan import Plan
from qd.bench.run import COUNTED
from qd.config.model import DatabaseConfig
from qd.errors import SetupWrong
from qd.events import Events
from qd.executors.environment import for_child
from qd.store import open_database, open_session
from qd.store.callers.enqueue import enqueue_many
from tests.support.waiting import wait_for

Start = Callable[[], BenchDaemon]
PLAN = Plan(threads=2)


@pytest.fixture
def start(tmp_path: Path, sqlite_config: DatabaseConfig) -> Iterator[Start]:
    """Starts daemons of PLAN on a file that has no tables yet; they are ended after the test."""
    daemons: list[BenchDaemon] = []

    def started() -> BenchDaemon:
        environ = {**for_child(), "QD_RUNTIME_DIR": str(tmp_path)}
        daemons.append(BenchDaemon(order(sqlite_config, None, PLAN, starts=True), PLAN.queue, environ))
        return daemons[-1]

    yield started
    stop_all(daemons)


@pytest.fixture
def migrated(sqlite_config: DatabaseConfig) -> DatabaseConfig:
    """The file of `start`, with its tables."""
    open_database(sqlite_config, Events()).migrate()
    return sqlite_config


def enqueued(config: DatabaseConfig, jobs: int) -> list[int]:
    """Jobs of the plan; their ids."""
    session = open_session(config, "test")
    try:
        return session.transaction(lambda cursor: enqueue_many(cursor, [PLAN.job()] * jobs))
    finally:
        session.close()


def test_it_claims_nothing_before_it_is_released(start: Start, migrated: DatabaseConfig) -> None:
    held, working = start(), start()
    await_held([held, working])
    enqueued(migrated, 20)
    working.release()
    await_finished([working], 20, lambda done: None)  # all of them, however long the other one was there
    assert held.counters()[COUNTED[0]] == 0


def test_it_tells_of_what_it_does(start: Start, migrated: DatabaseConfig) -> None:
    daemon, told = start(), list[int]()
    jobs = enqueued(migrated, 30)
    await_held([daemon])
    before = daemon.counters()
    daemon.release()
    await_finished([daemon], 30, told.append)
    seen, after = daemon.seen, daemon.counters()
    assert sum(told) == 30 == seen.finished
    assert seen.first is not None and seen.last is not None and seen.first < seen.last
    assert all(after[name] > before[name] for name in COUNTED)
    wait_for(lambda: daemon.starts.keys() == set(jobs) or daemon.hear(), 20, "the starts of all jobs")
    peak = daemon.peak()
    assert peak is not None and peak > 1 << 20


def test_one_that_cannot_start_says_why(start: Start) -> None:
    daemon = start()
    with pytest.raises(SetupWrong, match=r"can't start: database: .*qd migrate"):
        await_held([daemon])


def test_one_that_was_killed_is_said_to_be(start: Start, migrated: DatabaseConfig) -> None:
    daemon = start()
    await_held([daemon])
    os.kill(daemon.pid, 9)
    with pytest.raises(BenchFailed, match="was killed by SIGKILL"):
        await_finished([daemon], 1, lambda done: None)


def test_one_that_was_killed_is_said_to_be_also_where_its_metrics_are_asked_for(
    start: Start, migrated: DatabaseConfig
) -> None:
    daemon = start()
    await_held([daemon])
    os.kill(daemon.pid, 9)
    with pytest.raises(BenchFailed, match="was killed by SIGKILL"):
        daemon.counters()


def test_one_whose_bench_has_gone_before_it_said_a_word_leaves_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "runtime"
    folder.mkdir()
    script = Path(inside.__file__).with_name("start_daemon.py")
    environ = {**for_child(), "QD_RUNTIME_DIR": str(folder)}
    ended = subprocess.run(
        [sys.executable, str(script), PLAN.queue],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environ,
        timeout=60,
    )
    assert ended.returncode == 0 and not folder.exists(), ended.stderr


def test_it_ends_when_its_bench_lets_go_of_it(start: Start, migrated: DatabaseConfig) -> None:
    daemon = start()
    await_held([daemon])
    daemon.let_go()
    wait_for(lambda: os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), 30, "its end")
