"""A daemon is killed in the middle of its jobs: the people are told, by what is seen and by what was taken back.

Real daemons, a real Prometheus with the shipped rules and a real Alertmanager with the shipped example, both thirty
times as fast (tests/support/pace.py).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from tests.support.daemon import Qd
from tests.support.pace import Watch
from tests.support.prometheus import Targets
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

QUEUES = {name: {"lease": "3s", "timeout": "120s"} for name in ("mails", "reports")}


def serves(qd: Qd, *queues: str) -> Qd:
    """A configuration that knows all queues and serves these."""
    qd.write(queues=QUEUES, workers=[{"queues": [queue], "threads": 1} for queue in queues])
    return qd


def target(qd: Qd) -> str:
    return f"127.0.0.1:{qd.port}"


def test_stale_rows_are_told_until_a_daemon_serves_their_queue_and_rows_taken_back_too(
    qd: Qd, watching: Callable[[Targets], Watch]
) -> None:
    """`mails` is served by the killed daemon alone, until a third comes; `reports` by a second one, too."""
    victim, second, third = serves(qd, "mails", "reports"), serves(qd.twin(), "reports"), serves(qd.twin(), "mails")
    began = time.time()
    killed = victim.start()
    victim.enqueue("nap", queue="mails", seconds=100)
    victim.enqueue("nap", queue="reports", seconds=100)
    wait_for(lambda: len(victim.ran("start")) == 2, 20, "the first daemon to hold both jobs")
    other = second.start()
    watch = watching([target(victim), target(second)])
    killed.send(signal.SIGKILL)

    wait_for(lambda: watch.told("chat", "QdStaleJobs", queue="mails"), 40, "the people to hear of stale rows")
    wait_for(lambda: watch.told("chat", "QdStaleJobs", queue="reports"), 40, "the people to hear of rows taken back")
    wait_for(lambda: watch.told("pager", "QdDown", instance=target(victim)), 40, "the people to hear of the daemon")
    assert other.metric('qd_jobs_reclaimed_total{queue="mails"}') == 0.0, "it doesn't serve that queue"
    assert other.metric('qd_jobs_reclaimed_total{queue="reports"}') == 1.0
    stale = 'queue_state:qd_queue_jobs:max{state="stale",queue="%s"}'
    wait_for(lambda: watch.prometheus.value(stale % "reports") == 0, 20, "the row to be somebody's again")
    assert watch.prometheus.value(stale % "mails") == 1 and watch.fires("QdStaleJobs", queue="mails")
    assert watch.fires("QdStaleJobs", queue="reports"), "by what was taken back: no row of it is stale"
    (note,) = {note.annotations["summary"] for note in watch.webhook.told("QdStaleJobs", queue="mails")}
    assert note == "Jobs of queue mails lost their owner"

    wait_for(lambda: not watch.fires("QdStaleJobs", queue="reports"), 40, "what was taken back to be some time ago")
    assert watch.fires("QdStaleJobs", queue="mails"), "nobody has taken it"
    third.start()
    watch.prometheus.scrape([target(victim), target(second), target(third)])
    wait_for(lambda: not watch.fires("QdStaleJobs"), 60, "the row to be taken back, and that to be some time ago")
    assert watch.prometheus.value(stale % "mails") == 0
    assert not watch.fired("QdDown", began, instance=target(second))
    assert watch.prometheus.faults() == []
