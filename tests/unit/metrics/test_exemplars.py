"""Where OpenMetrics is asked for, the buckets of run and wait times name a job that was in them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Exemplar

from qd import events
from qd.metrics import Metrics
from qd.metrics.page import OPENMETRICS
from tests.unit.metrics.pages import metrics

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"

LARGEST_ID = 2**64 - 1
MOST_CHARACTERS = 128
"""Of an exemplar's label names and values, says OpenMetrics."""


def exemplars(source: Metrics, accept: str = OPENMETRICS) -> dict[tuple[str, str, str], Exemplar]:
    """By metric, value of its label and bucket."""
    return dict(_exemplars(source.page(accept)[0].decode()))


def _exemplars(page: str) -> Iterator[tuple[tuple[str, str, str], Exemplar]]:
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.exemplar is not None:
                (label,) = set(sample.labels) - {"le"}
                yield (family.name, sample.labels[label], sample.labels["le"]), sample.exemplar


def ran(source: Metrics, job_id: int, wait: float, seconds: float, queue: str = "mails", type: str = "noop") -> None:
    source(events.JobStarted(job_id, queue, type, 1, wait=wait))
    source(events.JobSucceeded(job_id, queue, type, 1, seconds))


def test_a_bucket_names_a_job_that_was_in_it_with_its_time_and_when_that_was() -> None:
    source, before = metrics(), time.time()
    ran(source, 41, wait=0.002, seconds=0.7)
    ran(source, 42, wait=20_000.0, seconds=9999.0, type="boom")
    found = exemplars(source)
    assert {place: (one.labels, one.value) for place, one in found.items()} == {
        ("qd_job_wait_seconds", "mails", "0.0025"): ({"job_id": "41"}, 0.002),
        ("qd_job_wait_seconds", "mails", "21600.0"): ({"job_id": "42"}, 20_000.0),
        ("qd_job_duration_seconds", "noop", "1.0"): ({"job_id": "41"}, 0.7),
        ("qd_job_duration_seconds", "boom", "14400.0"): ({"job_id": "42"}, 9999.0),
    }
    assert all(before - 1 <= float(one.timestamp or 0) <= time.time() + 1 for one in found.values())


def test_the_plain_page_has_none_and_is_otherwise_the_same() -> None:
    source = metrics()
    ran(source, 41, wait=0.002, seconds=0.7)
    plain = source.page()[0].decode()
    assert "job_id" not in plain
    assert " # " not in "".join(line for line in plain.splitlines() if not line.startswith("#"))
    open_lines = [line.split(" # ")[0] for line in source.page(OPENMETRICS)[0].decode().splitlines()]
    assert [line for line in plain.splitlines() if line.startswith("qd_job_")] == [
        line for line in open_lines if line.startswith("qd_job_")
    ]


def test_before_the_first_job_there_is_none() -> None:
    assert exemplars(metrics()) == {}


def test_a_page_that_showed_a_job_makes_room_for_the_next_and_without_one_shows_it_again() -> None:
    source = metrics()
    for job_id in range(1, 1000):
        ran(source, job_id, wait=0.0, seconds=0.7)
    first, again = exemplars(source), exemplars(source)
    assert first == again
    ran(source, 1000, wait=0.0, seconds=0.8)
    (later,) = [one for place, one in exemplars(source).items() if place[0] == "qd_job_duration_seconds"]
    (sooner,) = [one for place, one in first.items() if place[0] == "qd_job_duration_seconds"]
    assert (later.labels, later.value) == ({"job_id": "1000"}, 0.8)
    assert float(later.timestamp or 0) >= float(sooner.timestamp or 0)


def test_the_largest_id_stays_within_what_openmetrics_allows() -> None:
    source = metrics()
    ran(source, LARGEST_ID, wait=1e9, seconds=1e9)
    found = exemplars(source)
    assert {le for _, _, le in found} == {"+Inf"}
    for one in found.values():
        assert one.labels == {"job_id": str(LARGEST_ID)}
        assert sum(len(name) + len(value) for name, value in one.labels.items()) <= MOST_CHARACTERS


@pytest.mark.parametrize(
    "never_ran", [events.JobReleased(7, "mails", "noop", 1, 0.0), events.JobRejected(7, "m", "n", 1, 0.0)]
)
def test_a_job_whose_handler_never_ran_is_no_example_of_a_run_time(never_ran: events.AttemptEnded) -> None:
    source = metrics()
    source(never_ran)
    assert exemplars(source) == {}


def test_only_the_two_histograms_of_single_jobs_have_them() -> None:
    source = metrics()
    ran(source, 1, wait=0.0, seconds=0.1)
    source(events.JobsClaimed("mails", 1, 0.01))
    assert {name for name, _, _ in exemplars(source)} == {"qd_job_duration_seconds", "qd_job_wait_seconds"}


def test_the_documentation_shows_a_line_as_it_is() -> None:
    documented = re.search(r"^qd_job_duration_seconds_bucket.* # .*$", DOCS.read_text("utf-8"), re.MULTILINE)
    assert documented is not None
    source = metrics(types=("send_email",))
    for _ in range(1234):
        ran(source, 88123, wait=0.0, seconds=7.31, type="send_email")
    lines = [line.rpartition(" ")[0] for line in source.page(OPENMETRICS)[0].decode().splitlines()]
    assert documented[0].rpartition(" ")[0] in lines
