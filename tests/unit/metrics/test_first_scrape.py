"""What the page shows before anything has happened."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from qd.events import JobsClaimed
from qd.metrics.catalogue import (
    ATTEMPTS_PER_JOB,
    CATALOGUE,
    CLAIM_DURATION,
    DAEMON_STATES,
    DURATION,
    ERROR_KINDS,
    OTHER,
    OUTCOMES,
    REASONS,
    RENEWALS,
    WAIT,
    WORKER_STATES,
)
from qd.metrics.depths import DepthSnapshot
from qd.store.protocol import QueueDepth
from tests.support.missing import without
from tests.support.programs import find
from tests.support.server import ServerMissing
from tests.unit.metrics.pages import MemoryRuntime, Page, config, metrics, registry

QUEUES = ("default", "mails", OTHER)
TYPES = ("noop", "boom", OTHER)


def test_every_counter_of_every_queue_handler_and_outcome_is_0_at_the_first_scrape() -> None:
    page = Page(metrics())
    for queue in QUEUES:
        assert page.value("qd_jobs_claimed_total", queue=queue) == 0
        assert page.value("qd_jobs_reclaimed_total", queue=queue) == 0
        for reason in REASONS:
            assert page.value("qd_jobs_dead_lettered_total", queue=queue, reason=reason) == 0
        for outcome in OUTCOMES:
            job_types = TYPES if queue != OTHER else (OTHER,)
            for job_type in job_types:
                labels = {"queue": queue, "job_type": job_type, "outcome": outcome}
                assert page.value("qd_job_attempts_total", **labels) == 0
    assert [page.value("qd_lease_extensions_total", result=result) for result in RENEWALS] == [0] * 3
    assert [page.value("qd_database_errors_total", kind=kind) for kind in ERROR_KINDS] == [0] * 7
    assert page.value("qd_database_reconnects_total") == 0


def test_every_histogram_is_empty_but_there_at_the_first_scrape() -> None:
    page = Page(metrics())
    for spec in (WAIT, ATTEMPTS_PER_JOB, CLAIM_DURATION):
        assert [page.value(f"{spec.name}_count", queue=queue) for queue in QUEUES] == [0, 0, 0]
    assert [page.value(f"{DURATION.name}_count", job_type=job_type) for job_type in TYPES] == [0, 0, 0]


def test_every_metric_of_the_catalogue_is_on_the_page_with_its_type_and_labels() -> None:
    source = metrics(runtime=MemoryRuntime(threads={"default": (4, 0, 0)}))
    source.show_depths(lambda: DepthSnapshot((QueueDepth("default"),), 5.0, time.time()))
    page = Page(source)
    for spec in CATALOGUE:
        family = page.families[spec.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (spec.kind, spec.help)
        assert {frozenset(set(sample.labels) - {"le"}) for sample in family.samples} == {frozenset(spec.labels)}


def test_nothing_is_on_the_page_that_the_catalogue_does_not_name() -> None:
    names = {spec.name.removesuffix("_total") for spec in CATALOGUE}
    assert {name for name in Page(metrics()).families if name.startswith("qd_")} <= names


def test_no_label_is_named_job_and_nothing_tells_when_it_was_created() -> None:
    page = Page(metrics())
    assert not any(label == "job" for _, labels in page.series for label, _ in labels)
    assert "_created" not in page.text


def test_the_process_is_measured_too() -> None:
    page = Page(metrics())
    assert page.total("process_resident_memory_bytes") > 0
    assert page.total("process_start_time_seconds") > 0


def test_queues_and_handlers_of_a_reload_begin_at_0_and_old_counts_stay() -> None:
    source = metrics(queues=("default", "mails"))
    source(JobsClaimed("mails", 3, 0.001))
    source.reconfigure(config("default", "reports"), registry("noop", "boom", "pdf"))
    page = Page(source)
    assert page.value("qd_jobs_claimed_total", queue="reports") == 0
    assert page.value("qd_job_attempts_total", queue="reports", job_type="pdf", outcome="failed") == 0
    assert page.value("qd_queue_workers", queue="reports") == 0
    assert page.value("qd_jobs_claimed_total", queue="mails") == 3
    assert page.value("qd_queue_workers", queue="mails") is None
    source(JobsClaimed("mails", 1, 0.001))  # a job of a removed queue may still end
    assert Page(source).value("qd_jobs_claimed_total", queue="mails") == 4


def test_the_gauges_show_what_the_runtime_says() -> None:
    runtime = MemoryRuntime(
        threads={"fast": (1, 2, 3)}, serving={"default": 4}, oldest={"default": 7.5}, up=False, reloaded=False
    )
    page = Page(metrics(runtime=runtime))
    assert [page.value("qd_workers", worker="fast", state=state) for state in WORKER_STATES] == [1, 2, 3]
    assert page.value("qd_queue_workers", queue="default") == 4
    assert page.value("qd_queue_workers", queue="mails") == 0
    assert page.value("qd_oldest_running_job_seconds", queue="default") == 7.5
    assert page.value("qd_oldest_running_job_seconds", queue="mails") == 0
    assert page.value("qd_database_up") == 0
    assert page.value("qd_config_last_reload_successful") == 0
    assert page.labels("qd_build_info", "claim_path") == {"skip_locked"}


@pytest.mark.parametrize(
    ("trouble", "state"),
    [(None, "ready"), ("stopping", "stopping"), ("starting", "unready"), ("nothing could be claimed", "unready")],
)
def test_a_daemon_is_in_exactly_one_state_and_one_that_stops_is_not_in_trouble(trouble: str | None, state: str) -> None:
    page = Page(metrics(runtime=MemoryRuntime(trouble=trouble)))
    shown = {one: page.value("qd_daemon_state", state=one) for one in DAEMON_STATES}
    assert shown == {one: float(one == state) for one in DAEMON_STATES}


def test_promtool_finds_nothing_to_say_about_the_page() -> None:
    try:
        promtool = find("promtool")
    except ServerMissing as missing:
        without(missing)
    source = metrics(runtime=MemoryRuntime(threads={"default": (4, 0, 0)}))
    source.show_depths(lambda: DepthSnapshot((QueueDepth("default"),), 5.0, time.time()))
    done = subprocess.run([promtool, "check", "metrics"], input=source.page()[0], capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_documentation_lists_every_metric_as_the_catalogue_has_it() -> None:
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text("utf-8")
    lines = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| `qd_")]
    rows = [[cell.strip() for cell in line] for line in lines]
    listed = {row[0].strip("`"): row[1:3] for row in rows}
    assert listed == {spec.name: [spec.kind, ", ".join(f"`{name}`" for name in spec.labels)] for spec in CATALOGUE}
    assert all(len(row) == 5 and row[3] and row[4] for row in rows), "each has a meaning and a query"
