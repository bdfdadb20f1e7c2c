"""Each event adds exactly what it says, to the series it belongs to."""

from __future__ import annotations

import pytest

from qd import events
from qd.metrics import Metrics
from qd.metrics.catalogue import ERROR_KINDS, OTHER, OUTCOMES, REASONS, RENEWALS
from tests.unit.metrics.pages import Page, metrics

JOB = (7, "mails", "noop", 2)
"""id, queue, type, attempt"""


def said(*what: events.Event) -> Page:
    source = metrics()
    for event in what:
        source(event)
    return Page(source)


def attempts(page: Page, **labels: str) -> dict[str, float]:
    """The outcomes that were counted, and how often."""
    counts = {outcome: page.total("qd_job_attempts_total", outcome=outcome, **labels) for outcome in OUTCOMES}
    return {outcome: count for outcome, count in counts.items() if count}


@pytest.mark.parametrize("ending", events.ENDINGS)
def test_an_ended_attempt_counts_once_under_its_outcome(ending: type[events.AttemptEnded]) -> None:
    page = said(ending(*JOB, 0.5))
    assert attempts(page) == {ending.OUTCOME: 1}
    assert attempts(page, queue="mails", job_type="noop") == {ending.OUTCOME: 1}
    assert page.value("qd_job_duration_seconds_sum", job_type="noop") == 0.5


def test_every_outcome_has_an_event_that_counts_it() -> None:
    assert {ending.OUTCOME for ending in events.ENDINGS} | {"lost"} == set(OUTCOMES)


def test_an_attempt_whose_handler_never_ran_has_no_duration() -> None:
    page = said(events.JobReleased(*JOB, 0.0, reason="not started"), events.JobRejected(*JOB, 0.0))
    assert page.value("qd_job_duration_seconds_count", job_type="noop") == 0
    assert attempts(page) == {"released": 1, "rejected": 1}


def test_only_a_finished_job_says_how_many_attempts_it_took() -> None:
    page = said(events.JobFailed(*JOB, 0.1), events.JobSucceeded(7, "mails", "noop", 3, 0.1))
    assert page.value("qd_attempts_per_job_count", queue="mails") == 1
    assert page.value("qd_attempts_per_job_sum", queue="mails") == 3
    assert page.value("qd_attempts_per_job_bucket", queue="mails", le="2.0") == 0
    assert page.value("qd_attempts_per_job_bucket", queue="mails", le="3.0") == 1


def test_a_claim_counts_its_jobs_and_its_time_and_an_empty_one_its_time() -> None:
    page = said(events.JobsClaimed("mails", 5, 0.002), events.JobsClaimed("mails", 0, 0.001))
    assert page.value("qd_jobs_claimed_total", queue="mails") == 5
    assert page.value("qd_claim_duration_seconds_count", queue="mails") == 2
    assert page.value("qd_claim_duration_seconds_sum", queue="mails") == pytest.approx(0.003)


def test_a_start_tells_the_wait_and_a_clock_that_was_stepped_makes_none_below_0() -> None:
    page = said(events.JobStarted(*JOB, wait=12.0), events.JobStarted(*JOB, wait=-3.0))
    assert page.value("qd_job_wait_seconds_count", queue="mails") == 2
    assert page.value("qd_job_wait_seconds_sum", queue="mails") == 12.0


@pytest.mark.parametrize("reason", REASONS)
def test_a_dead_letter_counts_once_under_its_reason(reason: str) -> None:
    page = said(events.JobDeadLettered(*JOB, reason=reason, error="x"))
    assert page.value("qd_jobs_dead_lettered_total", queue="mails", reason=reason) == 1
    assert page.total("qd_jobs_dead_lettered_total") == 1


def test_a_row_taken_back_counts_as_reclaimed_and_its_attempt_as_lost() -> None:
    page = said(events.StaleReclaimed(*JOB, owner="host:1:x:w:1", dead_lettered=False))
    assert page.value("qd_jobs_reclaimed_total", queue="mails") == 1
    assert attempts(page) == {"lost": 1}


def test_an_owner_that_sees_its_lease_lost_counts_its_attempt_as_lost_and_nothing_as_reclaimed() -> None:
    page = said(events.LeaseLostSeen(*JOB, token="host:1:x:w:1", seen_by="settle"))
    assert attempts(page, queue="mails", job_type="noop") == {"lost": 1}
    assert page.total("qd_jobs_reclaimed_total") == 0


@pytest.mark.parametrize("result", RENEWALS)
def test_renewals_count_one_for_each_lease(result: str) -> None:
    assert said(events.LeasesExtended(result, 3)).value("qd_lease_extensions_total", result=result) == 3


@pytest.mark.parametrize("kind", ERROR_KINDS)
def test_a_database_error_counts_under_its_kind(kind: str) -> None:
    page = said(events.DatabaseErrorSeen(kind), events.Reconnected("worker 1"))
    assert page.value("qd_database_errors_total", kind=kind) == 1
    assert page.total("qd_database_errors_total") == 1
    assert page.value("qd_database_reconnects_total") == 1


def test_a_kind_of_error_that_nobody_named_is_other() -> None:
    page = said(events.DatabaseErrorSeen("surprise"))
    assert page.value("qd_database_errors_total", kind="other") == 1


def test_events_that_only_the_log_wants_change_nothing() -> None:
    def counted(source: Metrics) -> dict[object, float]:
        return {key: value for key, value in Page(source).series.items() if key[0].startswith("qd_")}

    source = metrics()
    before = counted(source)
    source(events.Problem("here", "odd"))
    source(events.DatabaseLost("worker 1", "gone"))
    assert counted(source) == before


def test_what_the_registry_or_the_configuration_does_not_know_is_other() -> None:
    page = said(
        events.JobRejected(1, "mails", "nobody_knows_it", 1, 0.0),
        events.JobReleased(2, "mial", "noop", 1, 0.0),
        events.JobDeadLettered(1, "mial", "noop", 1, reason="error", error=""),
        events.JobStarted(2, "mial", "noop", 1, wait=1.0),
    )
    assert attempts(page, queue="mails", job_type=OTHER) == {"rejected": 1}
    assert attempts(page, queue=OTHER, job_type=OTHER) == {"released": 1}
    assert page.value("qd_jobs_dead_lettered_total", queue=OTHER, reason="error") == 1
    assert page.value("qd_job_wait_seconds_count", queue=OTHER) == 1


JOBS = (0.001, 0.01, 1.0, 5.0, 60.0, 600.0, 1800.0, 3600.0, 7200.0)
WAITS = (*JOBS, 14400.0, 21600.0, 86400.0)
"""Seconds that a reader of the page must be able to tell apart."""


@pytest.mark.parametrize(
    ("name", "times"),
    [("qd_job_duration_seconds", JOBS), ("qd_job_wait_seconds", WAITS)],
    ids=["jobs of 1 ms to 2 h", "waits of 1 ms to 6 h and a day"],
)
def test_times_are_told_apart(name: str, times: tuple[float, ...]) -> None:
    page = said(*(events.JobSucceeded(1, "mails", "noop", 1, seconds) for seconds in times),
                *(events.JobStarted(1, "mails", "noop", 1, wait=seconds) for seconds in times))  # fmt: skip
    labels = {"job_type": "noop"} if name == "qd_job_duration_seconds" else {"queue": "mails"}
    assert page.value(f"{name}_sum", **labels) == sum(times)
    assert [page.value(f"{name}_bucket", **labels, le=str(bound)) for bound in times] == [*range(1, len(times) + 1)]
    just_over = said(*(events.JobSucceeded(1, "mails", "noop", 1, seconds * 1.01) for seconds in times),
                     *(events.JobStarted(1, "mails", "noop", 1, wait=seconds * 1.01) for seconds in times))  # fmt: skip
    assert [just_over.value(f"{name}_bucket", **labels, le=str(bound)) for bound in times] == [*range(len(times))]
