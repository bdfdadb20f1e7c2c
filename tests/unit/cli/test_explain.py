"""`qd explain` says every reason why a job isn't running."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from qd.cli.explain import Circumstances, why
from qd.store.protocol import DaemonRow, JobRow

NOW = datetime(2026, 2, 3, 12, 0, tzinfo=timezone.utc)
DAEMON = DaemonRow("d", "web1", 7, "1.0.0", ("mails",), ("send",))
JOB = JobRow(
    id=5, queue="mails", type="send", payload="{}", priority=2, state="ready", attempts=0, crashes=0, max_attempts=None,
    available_at=NOW - timedelta(seconds=5), reserved_at=None, reserved_by=None, unique_key=None, last_error=None,
    history=[], created_at=NOW - timedelta(minutes=1),
)  # fmt: skip
AROUND = Circumstances(paused=False, daemons=[DAEMON], now=NOW, position=0)


def codes(job: JobRow, around: Circumstances = AROUND) -> list[str]:
    return [reason.code for reason in why(job, around)]


def text(job: JobRow, around: Circumstances = AROUND) -> str:
    return " ".join(reason.text for reason in why(job, around))


def test_the_next_job_of_a_served_queue_has_nothing_against_it() -> None:
    assert codes(JOB) == ["next"]


def test_ready_jobs_before_it_are_counted() -> None:
    assert "behind 12 ready jobs" in text(JOB, replace(AROUND, position=12))
    assert "10,000 or more" in text(JOB, replace(AROUND, position=10_000))


def test_a_paused_queue_is_named_with_its_cure() -> None:
    around = replace(AROUND, paused=True)
    assert codes(JOB, around) == ["paused", "queued"] or codes(JOB, around) == ["paused", "next"]
    assert "qd queues resume mails" in text(JOB, around)


def test_no_daemon_at_all_differs_from_none_that_serves_the_queue() -> None:
    assert "none has been seen" in text(JOB, replace(AROUND, daemons=[]))
    other = replace(DAEMON, queues=("default",))
    assert "none of 1 live daemons" in text(JOB, replace(AROUND, daemons=[other]))


def test_a_type_counts_as_unknown_only_if_no_daemon_of_its_queue_knows_it() -> None:
    elsewhere = replace(DAEMON, queues=("default",))
    ignorant = replace(DAEMON, types=("other",))
    assert "unknown_type" in codes(JOB, replace(AROUND, daemons=[elsewhere, ignorant]))
    assert "unknown_type" not in codes(JOB, replace(AROUND, daemons=[ignorant, DAEMON]))


def test_a_delayed_job_says_when_it_is_due_and_what_failed_before() -> None:
    job = replace(JOB, state="delayed", available_at=NOW + timedelta(minutes=5), attempts=2, last_error="boom\nmore")
    assert codes(job) == ["delayed"]
    assert "due in 5m" in text(job)
    assert "after attempt 2: boom;" in text(job)


def test_a_reserved_job_says_by_whom_since_when_and_until() -> None:
    job = replace(
        JOB, state="reserved", reserved_by="web1:7:x", reserved_at=NOW - timedelta(seconds=30),
        available_at=NOW + timedelta(seconds=60),
    )  # fmt: skip
    assert codes(job) == ["reserved"]
    assert "web1:7:x took it 30s ago" in text(job)
    assert "another 1m" in text(job)


def test_a_stale_job_says_that_its_owner_is_gone_and_what_to_do() -> None:
    job = replace(
        JOB, state="stale", reserved_by="web1:7:x", reserved_at=NOW - timedelta(minutes=3),
        available_at=NOW - timedelta(minutes=1),
    )  # fmt: skip
    assert codes(job, replace(AROUND, daemons=[])) == ["stale", "not_served"]
    assert "ran out 1m ago" in text(job)
    assert "qd recover" in text(job)


def test_a_blocked_job_waits_for_something_else() -> None:
    assert codes(replace(JOB, state="blocked")) == ["blocked"]
