"""Nothing that jobs, rows or names carry makes the page grow, break or wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qd import events
from qd.clock import monotonic
from qd.metrics import DepthSnapshot, Metrics, collapsed, series_count
from qd.metrics.catalogue import OTHER
from qd.metrics.depths import by_queue
from qd.metrics.page import SharedPage
from qd.store.protocol import QueueDepth, ServerInfo
from tests.support.waiting import wait_for
from tests.unit.metrics.pages import MemoryRuntime, Page, config, metrics, registry

HOSTILE = '"} 1\nqd_database_up 7\n# \\ \x00 \ud800 <script>'


def test_the_number_of_series_does_not_depend_on_what_is_enqueued() -> None:
    source = metrics()
    before = len(Page(source).series)
    for number in range(20_000):
        source(events.JobRejected(number, f"queue_{number}", f"type_{number}", 1, 0.001))
        source(events.JobStarted(number, f"queue_{number}", f"type_{number}", 1, wait=0.0))
    page = Page(source)
    assert len(page.series) == before
    assert "type_7" not in page.text
    assert page.value("qd_job_attempts_total", queue=OTHER, job_type=OTHER, outcome="rejected") == 20_000


def test_past_5000_series_only_declared_pairs_have_their_own() -> None:
    queues, plain = [f"q{n}" for n in range(30)], registry(*(f"t{n}" for n in range(30)))
    for handler in registry("invoice", queues=("q3", "elsewhere")).handlers():
        plain.add(handler)
    assert series_count(config(*queues), plain) == 30 * 31 * 8
    assert collapsed(config(*queues), plain)
    source = Metrics(config(*queues), plain, MemoryRuntime())
    source(events.JobSucceeded(1, "q3", "invoice", 1, 0.1))
    source(events.JobSucceeded(2, "q4", "invoice", 1, 0.1))
    source(events.JobSucceeded(3, "q4", "t4", 1, 0.1))
    page = Page(source)
    assert page.value("qd_job_attempts_total", queue="q3", job_type="invoice", outcome="succeeded") == 1
    assert page.value("qd_job_attempts_total", queue="q4", job_type=OTHER, outcome="succeeded") == 2
    assert page.labels("qd_job_attempts_total", "job_type") == {"invoice", OTHER}
    assert page.labels("qd_job_attempts_total", "queue") == {*queues, OTHER}
    assert page.value("qd_job_duration_seconds_count", job_type="t4") == 1


def test_up_to_5000_series_every_pair_has_its_own() -> None:
    queues, handlers = [f"q{n}" for n in range(25)], registry(*(f"t{n}" for n in range(25)))
    assert series_count(config(*queues), handlers) == 5000
    assert not collapsed(config(*queues), handlers)


def test_queues_that_the_configuration_does_not_know_are_added_up() -> None:
    rows = (
        QueueDepth("default", ready=2, delayed=3, reserved=4, stale=5, failed=6, oldest_ready_age=9.0),
        QueueDepth("mial", ready=10, oldest_ready_age=70.0),
        QueueDepth(HOSTILE, ready=1, failed=2, oldest_ready_age=99.0, paused=True),
        QueueDepth(OTHER, ready=100),
    )
    source = metrics()
    source.show_depths(lambda: DepthSnapshot(rows, 5.0, 1.7e9))
    page = Page(source)
    states = ("ready", "delayed", "reserved", "stale", "failed")
    assert [page.value("qd_queue_jobs", queue="default", state=state) for state in states] == [2, 3, 4, 5, 6]
    assert [page.value("qd_queue_jobs", queue="mails", state=state) for state in states] == [0] * 5
    assert [page.value("qd_queue_jobs", queue=OTHER, state=state) for state in states] == [111, 0, 0, 0, 2]
    assert page.value("qd_queue_oldest_ready_age_seconds", queue=OTHER) == 70.0
    assert page.value("qd_queue_paused", queue=OTHER) == 0, "a paused one among them hides none that waits"
    assert page.value("qd_queue_paused", queue="default") == 0
    source.show_depths(lambda: DepthSnapshot((rows[0], rows[2]), 5.0, 1.7e9))
    page = Page(source)
    assert page.value("qd_queue_paused", queue=OTHER) == 1
    assert page.value("qd_queue_oldest_ready_age_seconds", queue=OTHER) == 99.0


@given(st.permutations([*range(6)]), st.lists(st.sampled_from("wpe"), min_size=6, max_size=6))
def test_in_whatever_order_other_queues_are_put_together_the_same_comes_out(order: list[int], kinds: list[str]) -> None:
    """Of queues that wait, that are paused and have jobs, and that are paused and empty."""
    made = {
        "w": lambda n: QueueDepth(str(n), ready=1, oldest_ready_age=float(n)),
        "p": lambda n: QueueDepth(str(n), ready=1, oldest_ready_age=100.0 + n, paused=True),
        "e": lambda n: QueueDepth(str(n), paused=True),
    }
    rows = [made[kind](number) for number, kind in enumerate(kinds)]
    whole = by_queue([rows[number] for number in order], (OTHER,))[OTHER]
    halves = by_queue([*by_queue(rows[:3], (OTHER,)).values(), *by_queue(rows[3:], (OTHER,)).values()], (OTHER,))
    assert whole == halves[OTHER]
    assert whole.paused == ("w" not in kinds)
    ages = [row.oldest_ready_age for row in rows if row.paused == whole.paused]
    assert (whole.ready, whole.oldest_ready_age) == (sum(row.ready for row in rows), max(ages))


def test_depths_are_missing_until_the_first_count_and_the_stamp_is_0() -> None:
    page = Page(metrics())
    assert not page.labels("qd_queue_jobs", "queue")
    assert page.value("qd_queue_stats_last_refresh_timestamp_seconds") == 0
    assert page.value("qd_queue_stats_refresh_interval_seconds") == 5


def test_depths_vanish_when_older_than_5_intervals_and_the_stamp_stays() -> None:
    source = metrics()
    snapshot = DepthSnapshot((QueueDepth("default", ready=1),), interval=2.0, stamp=1.7e9, taken=monotonic() - 9.5)
    source.show_depths(lambda: snapshot)
    assert Page(source).value("qd_queue_jobs", queue="default", state="ready") == 1
    source.show_depths(lambda: replace(snapshot, taken=monotonic() - 10.5))
    page = Page(source)
    assert {
        name for name, _ in page.series if name.startswith(("qd_queue_jobs", "qd_queue_old", "qd_queue_pa"))
    } == set()
    assert page.value("qd_queue_stats_last_refresh_timestamp_seconds") == 1.7e9


def test_names_with_quotes_newlines_and_broken_unicode_stay_inside_their_label() -> None:
    runtime = MemoryRuntime(threads={HOSTILE: (1, 0, 0), "w" * 5000: (0, 1, 0)}, who=ServerInfo(HOSTILE, HOSTILE, None))
    page = Page(metrics(runtime=runtime))
    assert page.value("qd_database_up") == 1
    assert page.labels("qd_workers", "worker") == {HOSTILE.replace("\ud800", "?"), "w" * 200}
    assert page.labels("qd_build_info", "claim_path") == {"unknown"}


class _Broken(MemoryRuntime):
    def workers(self) -> Mapping[str, tuple[int, int, int]]:
        raise RuntimeError("dictionary changed size during iteration")


def test_a_gauge_that_cannot_be_read_is_left_out_and_told_and_the_page_still_comes() -> None:
    told: list[BaseException] = []
    source = Metrics(config("default"), registry("noop"), _Broken(), on_fault=told.append)
    page = Page(source)
    assert page.value("qd_database_up") == 1
    assert not page.labels("qd_workers", "worker")
    assert [type(error) for error in told] == [RuntimeError]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text; version=1.0.0, text/plain", "application/openmetrics-text; version=1.0.0"),
        ("application/openmetrics-text; version=x.y", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text; version=2.0.0-evil\x01", "application/openmetrics-text; version=1.0.0"),
    ],
)
def test_the_format_is_negotiated_and_nothing_of_the_request_comes_back(accept: str, content_type: str) -> None:
    page, answered = metrics().page(accept)
    assert answered.startswith(content_type)
    assert "evil" not in answered
    assert page.endswith(b"# EOF\n") == answered.startswith("application/openmetrics-text")


def test_events_from_many_threads_are_all_counted_while_the_page_is_scraped() -> None:
    source = metrics()
    done = threading.Event()

    def count() -> None:
        for number in range(2000):
            source(events.JobSucceeded(number, "mails", "noop", 1, 0.01))

    def scrape() -> int:
        pages = 0
        while not done.is_set():
            pages += bool(Page(source).series)
        return pages

    with ThreadPoolExecutor(12) as pool:
        scrapers = [pool.submit(scrape) for _ in range(4)]
        for counter in [pool.submit(count) for _ in range(8)]:
            counter.result()
        done.set()
        assert all(scraper.result() > 0 for scraper in scrapers)
    page = Page(source)
    assert page.value("qd_job_attempts_total", queue="mails", job_type="noop", outcome="succeeded") == 16_000
    assert page.value("qd_job_duration_seconds_count", job_type="noop") == 16_000


def test_who_asks_while_a_page_is_made_gets_one_that_was_begun_later_and_shares_it() -> None:
    begun, asking, go_on = [0.0], threading.Semaphore(0), threading.Event()

    def make() -> bytes:
        begun.append(time.monotonic())
        assert go_on.wait(10)
        return str(len(begun) - 1).encode()

    def ask() -> tuple[float, int]:
        asking.release()
        asked = time.monotonic()
        return asked, int(shared.get())

    shared = SharedPage(make)
    with ThreadPoolExecutor(31) as pool:
        first = pool.submit(ask)
        wait_for(lambda: len(begun) == 2, 5, "the first page to be begun")
        others = [pool.submit(ask) for _ in range(30)]
        assert all(asking.acquire(timeout=5) for _ in range(31))
        go_on.set()
        answers = [other.result(5) for other in others]
    assert first.result()[1] == 1
    assert all(begun[number] >= asked for asked, number in answers)
    assert len(begun) - 1 < 31, "pages are shared"


def test_a_page_that_could_not_be_made_fails_for_those_who_asked_for_it_only() -> None:
    answers = iter([ValueError("once"), b"page"])

    def make() -> bytes:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    shared = SharedPage(make)
    with pytest.raises(ValueError, match="once"):
        shared.get()
    assert shared.get() == b"page"
