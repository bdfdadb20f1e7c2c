"""A reload: what is read from a queue that is no longer there vanishes, what was counted stays and counts on."""

from __future__ import annotations

from contextlib import closing

import pytest

from qd.metrics.catalogue import CATALOGUE
from tests.acceptance.scrapes import DEPTHS, page
from tests.acceptance.test_daemon_reload import applied, refused
from tests.support.daemon import Daemon, Qd
from tests.support.waiting import wait_for

READ = {*DEPTHS, "qd_queue_workers", "qd_oldest_running_job_seconds"}
"""Gauges by queue: all that there are."""

STAMP = "qd_queue_stats_last_refresh_timestamp_seconds"

POLICY = {"lease": "6s", "timeout": "60s"}


def serve(qd: Qd, *queues: str) -> None:
    """The configuration names these queues, each with a worker of its own."""
    workers = [{"queues": [queue], "threads": 1} for queue in queues]
    qd.write(queues=dict.fromkeys(queues, POLICY), workers=workers)


@pytest.fixture
def daemon(qd: Qd) -> Daemon:
    """Serves `default` and `mails`, has run a job of each, and knows of a delayed one in `mails`."""
    serve(qd, "default", "mails")
    daemon = qd.start()
    for queue in ("default", "mails"):
        qd.enqueue("nap", queue=queue, seconds=0)
    wait_for(lambda: len(qd.ran("end")) == 2, 20, "both jobs to be done")
    qd.sql("INSERT INTO qd_jobs (queue, type, available_at) VALUES ('mails', 'nap', NOW(6) + INTERVAL 1 HOUR)")
    return daemon


def test_the_gauges_by_queue_are_those_that_this_test_knows() -> None:
    by_queue = {spec.name for spec in CATALOGUE if spec.kind == "gauge" and "queue" in spec.labels}
    assert by_queue == READ


def test_a_removed_queues_gauges_vanish_and_its_counters_stay(qd: Qd, daemon: Daemon) -> None:
    delayed = {"state": "delayed"}
    wait_for(lambda: page(qd.port).value("qd_queue_jobs", queue="mails", **delayed) == 1, 20, "the delayed job")
    before = page(qd.port)
    assert {name for name, labels in before.series if ("queue", "mails") in labels} >= READ
    serve(qd, "default", "reports")
    applied(daemon)
    wait_for(lambda: page(qd.port).value("qd_queue_jobs", queue="_other", **delayed) == 1, 20, "it among all others")
    wait_for(lambda: page(qd.port).labels("qd_workers", "worker") == {"default", "reports"}, 20, "the workers to end")
    after = page(qd.port)
    assert not READ & {name for name, labels in after.series if ("queue", "mails") in labels}
    counted = {
        (name, labels): value
        for (name, labels), value in before.series.items()
        if name.startswith("qd_job") and ("queue", "mails") in labels
    }
    assert after.value("qd_jobs_claimed_total", queue="mails") == 1 and len(counted) > 50
    assert {series: after.series.get(series) for series in counted} == counted
    for name in ("qd_jobs_claimed_total", "qd_job_wait_seconds_count", "qd_queue_workers"):
        assert after.value(name, queue="reports") == (1 if name == "qd_queue_workers" else 0)


def test_a_job_that_outlives_its_queue_is_counted_when_it_ends(qd: Qd, daemon: Daemon) -> None:
    (job,) = qd.enqueue("nap", queue="mails", seconds=3)
    wait_for(lambda: qd.ran("start", job), 20, "it to start")
    serve(qd, "default")
    applied(daemon)
    running = page(qd.port)
    assert (running.value("qd_oldest_running_job_seconds", queue="_other") or 0) > 0
    assert running.value("qd_workers", worker="mails", state="busy") == 1
    succeeded = {"queue": "mails", "job_type": "nap", "outcome": "succeeded"}
    wait_for(lambda: page(qd.port).value("qd_job_attempts_total", **succeeded) == 2, 20, "its end to be counted")
    wait_for(lambda: page(qd.port).labels("qd_workers", "worker") == {"default"}, 20, "its worker to be gone")
    assert page(qd.port).value("qd_oldest_running_job_seconds", queue="_other") == 0


def test_a_queue_that_comes_back_goes_on_from_what_it_had(qd: Qd, daemon: Daemon) -> None:
    for queues in (("default",), ("default", "mails")):
        serve(qd, *queues)
        applied(daemon)
    qd.enqueue("nap", queue="mails", seconds=0)
    wait_for(lambda: page(qd.port).value("qd_jobs_claimed_total", queue="mails") == 2, 20, "the second job of mails")
    assert page(qd.port).value("qd_jobs_claimed_total", queue="default") == 1


def test_jobs_that_wait_for_their_queue_to_be_served_are_all_counted_under_its_name(qd: Qd, daemon: Daemon) -> None:
    qd.enqueue("nap", 300, queue="reports", seconds=0)
    many = [f"q{number}" for number in range(40)]  # so that their series take a moment to make
    qd.write(
        queues=dict.fromkeys(["default", *many, "reports"], POLICY),
        workers=[{"queues": ["reports", "default"], "threads": 2}],
    )
    applied(daemon)
    succeeded = {"job_type": "nap", "outcome": "succeeded"}
    wait_for(lambda: page(qd.port).total("qd_job_attempts_total", **succeeded) == 302, 30, "all of them counted")
    found = page(qd.port)
    assert found.value("qd_job_attempts_total", queue="reports", **succeeded) == 300
    assert found.value("qd_job_wait_seconds_count", queue="reports") == 300
    assert found.total("qd_jobs_claimed_total", queue="_other") == 0


def test_a_refused_reload_leaves_every_series_as_it_was(qd: Qd, daemon: Daemon) -> None:
    before = set(page(qd.port).series)
    serve(qd, "default", "reports")
    qd.file.write_text(qd.file.read_text().replace('"lease"', '"laese"'))
    refused(daemon)
    assert set(page(qd.port).series) == before


def test_what_was_counted_is_shown_on_while_the_new_configuration_can_not_count(qd: Qd) -> None:
    qd.write(queues=dict.fromkeys(("default", "mails"), POLICY), http={"refresh": "20s"})
    qd.sql("INSERT INTO qd_jobs (queue, type, available_at) VALUES ('mails', 'nap', NOW(6) + INTERVAL 1 HOUR)")
    daemon = qd.start()
    before = page(qd.port)
    assert before.value("qd_queue_jobs", queue="mails", state="delayed") == 1
    with closing(qd.server.connect(qd.database)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("LOCK TABLES qd_failed_jobs WRITE")
        for queues in (("default", "mails"), ("mails", "reports")):
            serve(qd, *queues)
            applied(daemon)
            after = page(qd.port)
            assert after.value("qd_queue_jobs", queue="mails", state="delayed") == 1
            assert after.value(STAMP) == before.value(STAMP) != 0
        assert "reports" not in after.labels("qd_queue_jobs", "queue")
        cursor.execute("UNLOCK TABLES")
    wait_for(lambda: page(qd.port).value("qd_queue_jobs", queue="reports", state="ready") == 0, 30, "the next count")
