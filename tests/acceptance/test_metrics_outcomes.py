"""Every way that a job can end is counted by a real daemon, from a 0 of its first scrape, on a page without fault."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from qd.metrics.catalogue import ERROR_KINDS, OTHER, OUTCOMES, REASONS, RENEWALS, STATES, WORKER_STATES
from tests.acceptance.scrapes import OPENMETRICS, page, scrape
from tests.support.daemon import Daemon, Qd
from tests.support.missing import without
from tests.support.programs import find
from tests.support.server import ServerMissing
from tests.support.waiting import wait_for
from tests.unit.metrics.pages import Page

QUEUES, TYPES = ("default", "brief"), ("end", "other")

STRANDED = (
    "INSERT INTO qd_jobs (queue, type, lane, attempts, reserved_by, available_at) "
    "VALUES ('default', 'end', 1, 1, 'gone:1:x:w:1', NOW(6) - INTERVAL 1 HOUR)"
)

UNREADABLE = "INSERT INTO qd_jobs (queue, type, payload) VALUES ('default', 'end', %s)"
"""A number of more digits than Python reads."""

ENDED = {
    "succeeded": 2, "failed": 1, "timeout": 1, "crashed": 1, "lost": 1, "rejected": 2, "snoozed": 1, "released": 1
}  # fmt: skip
"""What `every_ending` comes to, by outcome."""

BURIED = {"error": 1, "timeout": 1, "crash": 1, "lost": 1, "rejected": 1, "payload": 1}
"""The same by reason of a dead letter."""


@pytest.fixture
def daemon(qd: Qd) -> Daemon:
    """Two queues with one attempt each, handlers in child processes."""
    short = {"lease": "6s", "max_attempts": 1, "backoff": {"base": "10m"}}
    qd.write(
        handlers={"modules": ["tests.acceptance.metric_handlers"]},
        queues={"default": {**short, "timeout": "60s"}, "brief": {**short, "timeout": "1s"}},
        workers=[{"queues": [*QUEUES], "threads": 2, "executor": "process"}],
    )
    return qd.start()


def every_ending(qd: Qd) -> None:
    for how in ("succeed", "fail", "crash", "reject", "snooze"):
        qd.enqueue("end", how=how)
    qd.enqueue("end", seconds=0.3)
    qd.enqueue("end", queue="brief", seconds=60)
    qd.enqueue("nobody_knows_it")
    qd.sql(UNREADABLE, ("1" * 5000,))
    qd.sql(STRANDED)


def by(found: Page, name: str, label: str, values: tuple[str, ...]) -> dict[str, float]:
    """How often each value of a label was counted, those that were not left out."""
    counts = {value: found.total(name, **{label: value}) for value in values}
    return {value: count for value, count in counts.items() if count}


def ended(daemon: Daemon) -> Page:
    """The page once all of them have ended."""

    def counted() -> tuple[Mapping[str, float], Mapping[str, float]]:
        nonlocal now
        now = page(daemon.qd.port)
        outcomes = by(now, "qd_job_attempts_total", "outcome", OUTCOMES)
        return outcomes, by(now, "qd_jobs_dead_lettered_total", "reason", REASONS)

    now = page(daemon.qd.port)
    wait_for(lambda: counted() == (ENDED, BURIED), 60, f"all endings to be counted: {counted()}")
    return now


def own(found: Page) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    return {series for series in found.series if series[0].startswith("qd_")}


def test_all_series_are_there_at_the_first_scrape_and_each_ending_adds_to_its_own(qd: Qd, daemon: Daemon) -> None:
    first = page(qd.port)
    for queue in (*QUEUES, OTHER):
        for job_type in (*TYPES, OTHER) if queue != OTHER else (OTHER,):
            for outcome in OUTCOMES:
                assert first.value("qd_job_attempts_total", queue=queue, job_type=job_type, outcome=outcome) == 0
        assert [first.value("qd_jobs_dead_lettered_total", queue=queue, reason=reason) for reason in REASONS] == [0] * 8
        assert [first.value("qd_queue_jobs", queue=queue, state=state) for state in STATES] == [0] * 5
        for name in ("qd_jobs_claimed_total", "qd_jobs_reclaimed_total", "qd_job_wait_seconds_count"):
            assert first.value(name, queue=queue) == 0
    assert [first.value("qd_job_duration_seconds_count", job_type=each) for each in (*TYPES, OTHER)] == [0] * 3
    assert [first.value("qd_lease_extensions_total", result=result) for result in RENEWALS] == [0] * 3
    assert [first.value("qd_database_errors_total", kind=kind) for kind in ERROR_KINDS] == [0] * 7
    assert first.labels("qd_workers", "state") == {*WORKER_STATES}
    every_ending(qd)
    last = ended(daemon)
    assert own(last) == own(first), "series came or went with the jobs"
    assert last.value("qd_jobs_reclaimed_total", queue="default") == 1
    assert last.value("qd_job_attempts_total", queue="brief", job_type="end", outcome="timeout") == 1
    assert last.value("qd_job_attempts_total", queue="default", job_type=OTHER, outcome="released") == 1
    assert last.value("qd_job_duration_seconds_count", job_type=OTHER) == 0


def test_promtool_has_nothing_to_say_about_the_page_of_a_daemon_that_saw_every_ending(qd: Qd, daemon: Daemon) -> None:
    try:
        promtool = find("promtool")
    except ServerMissing as missing:
        without(missing)
    every_ending(qd)
    text = ended(daemon).text
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_openmetrics_is_read_by_a_strict_reader_and_names_jobs_that_ran_the_plain_page_none(
    qd: Qd, daemon: Daemon
) -> None:
    quick, slow = qd.enqueue("end", how="succeed"), qd.enqueue("end", seconds=0.3)
    wait_for(lambda: qd.jobs() == 0, 30, "both to be done")
    assert "job_id" not in scrape(qd.port).text
    answer = scrape(qd.port, OPENMETRICS)
    assert answer.content_type.startswith("application/openmetrics-text; version=1.0.0")
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    named = {
        (sample.name, sample.labels["le"]): (int(sample.exemplar.labels["job_id"]), sample.exemplar.value)
        for sample in samples
        if sample.exemplar is not None
    }
    assert {job for job, _ in named.values()} <= {*quick, *slow}
    assert {name for name, _ in named} == {"qd_job_duration_seconds_bucket", "qd_job_wait_seconds_bucket"}
    (job, seconds) = named["qd_job_duration_seconds_bucket", "0.5"]
    assert [job] == slow and 0.3 <= seconds <= 0.5


def test_waits_of_hours_are_told_apart_and_a_wished_delay_or_a_back_off_is_no_wait(qd: Qd, daemon: Daemon) -> None:
    due = "INSERT INTO qd_jobs (queue, type, max_attempts, payload, available_at) VALUES ('default', 'end', 2, %s, "
    for seconds in (14_500, 21_500, 25_000):
        qd.sql(f"{due} NOW(6) - INTERVAL {seconds} SECOND)", ("{}",))
    qd.sql(f"{due} NOW(6) + INTERVAL 3 SECOND)", ("{}",))
    qd.sql(f"{due} NOW(6))", ('{"how": "later"}',))
    wait_for(lambda: page(qd.port).value("qd_job_wait_seconds_count", queue="default") == 6, 30, "all six starts")
    waits = page(qd.port)
    bounds = ("2.5", "14400.0", "21600.0", "86400.0")
    found = [waits.value("qd_job_wait_seconds_bucket", queue="default", le=bound) for bound in bounds]
    assert found == [3, 3, 5, 6], "the delayed one and both attempts of the other began soon after they were due"
    assert 61_000 <= (waits.value("qd_job_wait_seconds_sum", queue="default") or 0) < 61_060
    assert waits.value("qd_job_attempts_total", queue="default", job_type="end", outcome="failed") == 1
