"""The database goes, then the daemon goes: each is told by its own alert, and none for the other's fault.

Real daemons, a real Prometheus with the shipped rules and a real Alertmanager with the shipped example, both thirty
times as fast (tests/support/pace.py).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from tests.support.daemon import Qd
from tests.support.mariadb import MariaDB
from tests.support.pace import Watch
from tests.support.prometheus import Targets
from tests.support.waiting import wait_for

AGE = "time() - qd_queue_stats_last_refresh_timestamp_seconds"

pytestmark = pytest.mark.server


def test_a_stopped_database_and_a_stopped_daemon_are_told_apart(
    frail: Qd, watching: Callable[[Targets], Watch]
) -> None:
    daemon = frail.start()
    target = f"127.0.0.1:{frail.port}"
    watch = watching([target])
    assert isinstance(frail.server, MariaDB)
    began = time.time()

    frail.server.stop()
    wait_for(lambda: watch.told("pager", "QdDatabaseDown", instance=target), 60, "the people to hear of the database")
    wait_for(lambda: not watch.prometheus.query("qd_queue_jobs"), 30, "depths from before it to be shown no more")
    wait_for(lambda: (watch.prometheus.value(AGE) or 0) > 9, 30, "the rows to be uncounted for long")
    frail.server.start()
    wait_for(lambda: not watch.prometheus.alerts(), 60, "all to be well")
    assert not watch.fired("QdDown", began), "the daemon was there all the time"
    assert not watch.fired("QdQueueStatsOld", began) and not watch.fired("QdNotReady", began), "one fault, one alert"

    frail.enqueue("nap", seconds=5)
    wait_for(lambda: frail.ran("start"), 20, "a job to run")
    began = time.time()
    daemon.send(signal.SIGTERM)
    wait_for(lambda: daemon.notify.times("STOPPING=1"), 10, "it to drain")
    assert daemon.get("/metrics")[0] == 200
    assert daemon.wait_exit(20) == 0 and frail.ran("end") == frail.ran("start")
    assert not watch.fired("QdDown", began), "its page answers while it drains"
    wait_for(lambda: watch.told("pager", "QdDown", instance=target), 40, "the people to hear of the daemon")
    assert not watch.fired("QdDatabaseDown", began) and not watch.fired("QdQueueWithoutWorkers", began)
    (summary,) = {note.annotations["summary"] for note in watch.webhook.told("QdDown", instance=target)}
    assert summary == f"qd on {target} doesn't answer"

    frail.start()
    watch.wait_calm()
    watch.prometheus.scrape([])
    wait_for(lambda: watch.fires("QdDown"), 40, "a missing target to be told")
    (alert,) = watch.prometheus.firing("QdDown")
    assert alert.annotations["summary"] == "Prometheus knows of no qd" and "instance" not in alert.labels
    assert watch.prometheus.faults() == []


def test_with_the_only_daemon_killed_its_absence_is_told_and_its_jobs_once_it_is_back(
    qd: Qd, watching: Callable[[Targets], Watch]
) -> None:
    qd.write(queues={"default": {"lease": "3s", "timeout": "120s"}})
    daemon = qd.start()
    watch = watching([f"127.0.0.1:{qd.port}"])
    qd.enqueue("nap", seconds=100)
    wait_for(lambda: qd.ran("start"), 20, "a job to run")
    began = time.time()
    daemon.send(signal.SIGKILL)
    wait_for(lambda: watch.told("pager", "QdDown"), 40, "the people to hear of the daemon")
    wait_for(lambda: qd.jobs("lane = 1 AND available_at < NOW(6)"), 20, "the lease to run out")
    assert not watch.fired("QdStaleJobs", began), "nobody is there to see it"
    qd.start()
    wait_for(lambda: watch.told("chat", "QdStaleJobs", queue="default"), 40, "the people to hear of the job")
    wait_for(lambda: not watch.prometheus.alerts(), 60, "it to be some time ago")
