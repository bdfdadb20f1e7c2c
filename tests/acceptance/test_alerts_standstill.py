"""The database answers, and yet nothing can be claimed: that wakes somebody, a daemon that drains doesn't.

Real daemons, a real Prometheus with the shipped rules and a real Alertmanager with the shipped example, both thirty
times as fast (tests/support/pace.py).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

import pytest

from tests.support.daemon import Qd
from tests.support.pace import Watch
from tests.support.prometheus import Targets
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


@contextmanager
def lost(qd: Qd) -> Iterator[None]:
    """A table is gone that every look needs."""
    qd.sql("RENAME TABLE qd_queues TO mislaid")
    yield
    qd.sql("RENAME TABLE mislaid TO qd_queues")


@contextmanager
def locked(qd: Qd) -> Iterator[None]:
    """A stranger holds the table of the jobs, as a dump does."""
    with closing(qd.server.connect(qd.database)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("LOCK TABLES qd_jobs WRITE")
        yield
        cursor.execute("UNLOCK TABLES")


@pytest.mark.parametrize("trouble", [lost, locked])
def test_a_standstill_wakes_somebody_and_is_told_by_one_alert_until_it_is_over(
    trouble: Callable[[Qd], AbstractContextManager[None]], qd: Qd, watching: Callable[[Targets], Watch]
) -> None:
    qd.write(database={"statement_timeout": "1s"})
    daemon = qd.start()
    target = f"127.0.0.1:{qd.port}"
    watch = watching([target])
    began = time.time()
    with trouble(qd):
        wait_for(lambda: watch.told("pager", "QdNotReady", instance=target), 60, "the people to hear of it")
        assert daemon.get("/readyz")[0] == 503
        assert daemon.metric('qd_daemon_state{state="unready"}') == 1.0
        wait_for(lambda: not watch.prometheus.query("qd_queue_jobs"), 30, "the counts to be shown no more")
        wait_for(lambda: not watch.fires("QdQueueStatsOld"), 30, "one alert, of what it is")
        assert watch.fires("QdNotReady")
    wait_for(lambda: not watch.prometheus.alerts(), 60, "all to be well")
    assert not watch.fired("QdDatabaseDown", began)
    (job,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.ran("end", job), 20, "work to go on")
    assert watch.prometheus.faults() == []


def test_a_daemon_that_drains_for_long_is_in_no_trouble(qd: Qd, watching: Callable[[Targets], Watch]) -> None:
    qd.write(shutdown={"grace": "120s"})
    daemon = qd.start()
    watch, began = watching([f"127.0.0.1:{qd.port}"]), time.time()
    (job,) = qd.enqueue("nap", seconds=15)
    wait_for(lambda: qd.ran("start", job), 20, "a job to run")
    daemon.send(signal.SIGTERM)
    wait_for(lambda: daemon.metric('qd_daemon_state{state="stopping"}') == 1.0, 10, "it to say so")
    assert daemon.wait_exit(60) == 0 and qd.ran("end") == qd.ran("start")
    assert watch.prometheus.value("count_over_time(qd_daemon_state{state='stopping'}[1m:1s])")
    for alert in ("QdNotReady", "QdQueueStatsOld", "QdDatabaseDown", "QdQueueWithoutWorkers"):
        assert not watch.fired(alert, began), alert
