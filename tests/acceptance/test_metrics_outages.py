"""The page while the database is frozen, gone, or keeps its tables to itself: it answers, and what is old vanishes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.acceptance.scrapes import DEPTHS, Scrapers, page
from tests.support.daemon import Daemon, Qd
from tests.support.waiting import wait_for

STAMP = "qd_queue_stats_last_refresh_timestamp_seconds"
INTERVAL = "qd_queue_stats_refresh_interval_seconds"
READY = 'qd_queue_jobs{queue="default",state="ready"}'


@contextmanager
def ten_scrapers(daemon: Daemon) -> Iterator[None]:
    """Ten at once, all the time; each must always be answered, and no thread stay behind."""
    before = daemon.threads()
    with Scrapers(daemon.qd.port) as scrapers:
        yield
        wait_for(lambda: len(scrapers.seconds) >= 50, 30, "fifty answers")
        assert daemon.threads() <= before + 10 + 4, "requests pile up"
    assert not scrapers.failures
    assert all(scrapers.seconds)
    wait_for(lambda: daemon.threads() <= before + 4, 10, "the requests' threads to end")


def depths(daemon: Daemon) -> set[str]:
    return {name for name, _ in page(daemon.qd.port).series if name in DEPTHS}


def the_old_vanish(daemon: Daemon) -> None:
    """The gauges go, the moment of the last count stays and grows old, and the rest of the page is there."""
    wait_for(lambda: not depths(daemon), 30, "the depth gauges to vanish")
    stamp = daemon.metric(STAMP)
    assert stamp and time.time() - stamp > 4
    assert (daemon.metric(INTERVAL) or 0) >= 1.0
    assert daemon.metric('qd_jobs_claimed_total{queue="default"}') == 3.0
    assert daemon.metric('qd_workers{state="busy",worker="default"}') is not None


def are_right_again(daemon: Daemon, ready: int) -> None:
    wait_for(lambda: daemon.metric(READY) == ready, 30, f"{ready} ready jobs on the page")
    wait_for(lambda: daemon.metric("qd_database_up") == 1.0, 10, "the database to be called up")


def started(frail: Qd) -> Daemon:
    """A daemon that has run three jobs and sees one that it doesn't run, for its queue is paused."""
    daemon = frail.start()
    frail.enqueue("nap", 3, seconds=0)
    wait_for(lambda: frail.jobs() == 0, 20, "three jobs to be done")
    frail.sql("INSERT INTO qd_queues (name, paused_at) VALUES ('default', NOW(6))")
    wait_for(lambda: daemon.metric('qd_queue_paused{queue="default"}') == 1.0, 20, "the pause to be seen")
    frail.enqueue("nap", seconds=0)
    are_right_again(daemon, 1)
    return daemon


@pytest.mark.parametrize(("harm", "undo"), [("freeze", "thaw"), ("stop", "start")], ids=["frozen", "gone"])
def test_ten_scrapers_are_answered_while_the_server_is(frail: Qd, harm: str, undo: str) -> None:
    daemon = started(frail)
    with ten_scrapers(daemon):
        getattr(frail.server, harm)()
        wait_for(lambda: daemon.metric("qd_database_up") == 0.0, 20, "the database to be called down")
        the_old_vanish(daemon)
        assert (daemon.metric('qd_database_errors_total{kind="timeout"}') or 0) > 0 or harm == "stop"
        getattr(frail.server, undo)()
        frail.enqueue("nap", 4, seconds=0)
        are_right_again(daemon, 5)
        assert (daemon.metric("qd_database_reconnects_total") or 0) > 0
    assert daemon.stop() == 0


def test_a_table_that_is_locked_as_a_whole_costs_no_scrape_and_is_counted_at_once_when_it_is_free(frail: Qd) -> None:
    daemon = started(frail)
    with ten_scrapers(daemon), closing(frail.server.connect(frail.database)) as stranger:
        stranger.cmd_query("LOCK TABLES qd_jobs WRITE")
        the_old_vanish(daemon)
        assert "counting the rows was given up" not in daemon.said(), "waiting is taken for a dear count"
        stranger.cmd_query("UNLOCK TABLES")
        are_right_again(daemon, 1)
    assert daemon.stop() == 0


def test_a_daemon_that_starts_without_its_database_shows_no_depths_and_says_that_it_never_counted(frail: Qd) -> None:
    frail.server.stop()
    daemon = frail.start()
    assert not depths(daemon)
    assert daemon.metric(STAMP) == 0.0 and daemon.metric("qd_database_up") == 0.0
    assert daemon.metric('qd_job_attempts_total{job_type="nap",outcome="succeeded",queue="default"}') == 0.0
    frail.server.start()
    are_right_again(daemon, 0)
    assert (daemon.metric(STAMP) or 0) > 0
    assert daemon.stop() == 0
