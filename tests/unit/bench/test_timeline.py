"""What a bench hears of its daemon's events."""

from __future__ import annotations

import threading

from qd import events
from qd.bench.timeline import Seen, Timeline
from qd.clock import monotonic

JOB = {"job_id": 1, "queue": "q", "type": "t", "attempt": 1}


def test_the_first_claim_is_the_beginning_of_the_first_that_brought_something() -> None:
    timeline = Timeline(starts=False)
    timeline(events.JobsClaimed("q", 0, 5.0))
    assert timeline.seen() == Seen()
    before = monotonic()
    timeline(events.JobsClaimed("q", 3, 0.5))
    timeline(events.JobsClaimed("q", 3, 0.0))
    first = timeline.seen().first
    assert first is not None and before - 0.5 <= first <= monotonic() - 0.5


def test_each_success_counts_and_the_last_is_the_end() -> None:
    timeline = Timeline(starts=False)

    def succeed() -> None:
        for _ in range(500):
            timeline(events.JobSucceeded(**JOB, seconds=0.0))

    threads = [threading.Thread(target=succeed) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = timeline.seen()
    assert (seen.finished, seen.failed) == (2000, 0)
    assert seen.last is not None and seen.last <= monotonic()


def test_an_attempt_that_failed_counts_and_one_that_was_given_back_does_not() -> None:
    timeline = Timeline(starts=False)
    timeline(events.JobReleased(**JOB, seconds=0.0))
    assert timeline.seen() == Seen()
    for kind in (events.JobFailed, events.JobTimedOut, events.JobCrashed, events.JobRejected, events.JobSnoozed):
        timeline(kind(**JOB, seconds=0.0))
    assert timeline.seen().failed == 5


def test_starts_are_told_only_where_they_are_asked_for() -> None:
    started = events.JobStarted(**JOB, wait=0.0)
    quiet, told = Timeline(starts=False), Timeline(starts=True)
    before = monotonic()
    for timeline in (quiet, told):
        timeline(started)
    assert quiet.take_starts() == []
    ((job, at),) = told.take_starts()
    assert job == 1 and before <= at <= monotonic()
    assert told.take_starts() == []


def test_an_outage_and_a_daemon_that_breaks_are_told_once() -> None:
    timeline = Timeline(starts=False)
    timeline(events.DatabaseLost("poller", "gone"))
    timeline(events.DaemonFailed("main loop", "bug"))
    assert timeline.take_troubles() == [("lost", "gone"), ("broken", "main loop: bug")]
    assert timeline.take_troubles() == []
