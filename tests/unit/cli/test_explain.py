"""`qd explain` says every reason why a job isn't running."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from qd.cli import reasons
from qd.cli.reasons import Circumstances, Policy, why, why_dead
from qd.store.protocol import DaemonRow, FailedRow, Holder, JobRow
from tests.support.server import ROOT

NOW = datetime(2026, 2, 3, 12, 0, tzinfo=timezone.utc)
SEEN = NOW - timedelta(seconds=3)
DAEMON = DaemonRow("web1:7:x:1", "web1", 7, "1.0.0", ("mails",), ("send",), seen_at=SEEN)
JOB = JobRow(
    id=5, queue="mails", type="send", payload="{}", priority=2, state="ready", attempts=0, crashes=0, max_attempts=None,
    available_at=NOW - timedelta(seconds=5), reserved_at=None, reserved_by=None, unique_key=None, last_error=None,
    history=[], created_at=NOW - timedelta(minutes=1),
)  # fmt: skip
POLICY = Policy(max_attempts=3, timeout=300.0, names=("mails", "default"), first={"w": ()})
AROUND = Circumstances(now=NOW, policy=POLICY, daemons=(DAEMON,))


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
    assert "none has been seen" in text(JOB, replace(AROUND, daemons=()))
    other = replace(DAEMON, queues=("default",))
    assert "the only live daemon doesn't" in text(JOB, replace(AROUND, daemons=(other,)))
    assert "none of the live daemons does" in text(JOB, replace(AROUND, daemons=(other, other)))


def test_a_type_counts_as_unknown_only_if_no_daemon_of_its_queue_knows_it() -> None:
    elsewhere = replace(DAEMON, queues=("default",))
    ignorant = replace(DAEMON, types=("other",))
    assert "unknown_type" in codes(JOB, replace(AROUND, daemons=(elsewhere, ignorant)))
    assert "unknown_type" not in codes(JOB, replace(AROUND, daemons=(ignorant, DAEMON)))
    told = text(JOB, replace(AROUND, daemons=(elsewhere, ignorant)))
    assert "Daemons of other queues have one (default): as long as they do it waits here" in told
    assert "15 minutes" not in told and "`qd jobs delete 5`" in told
    told = text(JOB, replace(AROUND, daemons=(ignorant,)))
    assert "15 minutes after a daemon first looked at it" in told and "in a paused queue none looks" in told


def test_a_delayed_job_says_when_it_is_due_and_what_failed_before() -> None:
    job = replace(JOB, state="delayed", available_at=NOW + timedelta(minutes=5), attempts=2, last_error="boom\nmore")
    assert codes(job) == ["delayed"]
    assert "due in 5m" in text(job)
    assert "after attempt 2: boom;" in text(job)


def test_a_reserved_job_says_by_whom_since_when_and_until() -> None:
    job = replace(
        JOB, state="reserved", reserved_by="web1:7:x:w:9", reserved_at=NOW - timedelta(seconds=30),
        available_at=NOW + timedelta(seconds=60),
    )  # fmt: skip
    assert codes(job) == ["reserved"]
    assert "web1:7:x:w:9 took it 30s ago" in text(job)
    assert "another 1m" in text(job)


def test_a_stale_job_says_that_its_owner_is_gone_and_what_to_do() -> None:
    job = replace(
        JOB, state="stale", reserved_by="web1:7:x:w:9", reserved_at=NOW - timedelta(minutes=3),
        available_at=NOW - timedelta(minutes=1),
    )  # fmt: skip
    assert codes(job, replace(AROUND, daemons=())) == ["stale", "not_served"]
    assert "ran out 1m ago" in text(job)
    assert "qd recover" in text(job)


def test_a_blocked_job_waits_for_something_else() -> None:
    assert codes(replace(JOB, state="blocked")) == ["blocked"]


def test_a_queue_that_the_configuration_lacks_is_told_with_what_was_meant() -> None:
    slip = replace(JOB, queue="mials")
    around = replace(AROUND, policy=replace(POLICY, known=False, first={}))
    assert codes(slip, around)[0] == "not_served"
    assert "this configuration doesn't know it either: was mails meant?" in text(slip, around)
    assert "meant" not in text(replace(JOB, queue="xyz"), around)
    assert "see `workers:`" in text(replace(JOB, queue="default"))


@pytest.mark.parametrize("state", ["reserved", "stale"])
def test_the_owner_of_a_claim_is_told_to_live_or_not(state: str) -> None:
    job = replace(JOB, state=state, reserved_by="web1:7:x:w:9", reserved_at=NOW - timedelta(seconds=30))
    assert "that process was seen 3s ago" in text(job)
    gone = replace(job, reserved_by="web1:7:y:w:9")
    assert "that process is listed no more" in text(gone)


def test_a_job_that_is_held_longer_than_it_may_run_is_told() -> None:
    job = replace(JOB, state="reserved", reserved_by="web1:7:x:w:9", reserved_at=NOW - timedelta(seconds=320))
    assert codes(job) == ["reserved", "overdue"]
    assert "longer than the 5m" in text(job)
    assert codes(replace(job, reserved_at=NOW - timedelta(seconds=299))) == ["reserved"]
    assert codes(replace(job, reserved_at=None)) == ["reserved"]


HOLDER = Holder("web1:7:x", 4, 200.0, "w-2", frozenset({"mails"}))
STRANGER = Holder("web2:7:z", 9, 900.0, "w-1", frozenset({"mails"}))


@pytest.mark.parametrize(
    ("thread", "queues", "may"),
    [
        ("w-12", {"default"}, True),  # this configuration's worker, which serves both
        ("other-2", {"default"}, False),  # this configuration's, which doesn't
        ("mails-2", {"mails"}, True),
        ("default-3", {"default"}, False),  # another configuration's, called by its queues
        ("default+mails-3", {"default"}, True),
        ("night-shift-1", {"default"}, True),  # another's, with a name of its own: who knows
        ("other-2", {"mails"}, True),  # named alike, but it takes them
    ],
)
def test_a_thread_is_at_work_for_a_queue_only_if_its_worker_serves_that(
    thread: str, queues: set[str], may: bool
) -> None:
    policy = replace(POLICY, first={"w": ()}, workers=frozenset({"w", "other"}))
    around = replace(AROUND, policy=policy, holders=(replace(HOLDER, thread=thread, queues=frozenset(queues)),))
    long_due = replace(JOB, available_at=NOW - timedelta(minutes=5))
    assert codes(long_due, around) == ["next", "busy" if may else "not_taken"]


def test_a_daemon_that_has_gone_silent_is_told_in_place_of_what_it_holds() -> None:
    silent = replace(DAEMON, seen_ago=45.0)
    around = replace(AROUND, daemons=(silent,), holders=(HOLDER,))
    assert codes(JOB, around) == ["silent", "next"]
    assert "web1:7 silent for 45s" in text(JOB, around)
    both = replace(around, daemons=(silent, replace(DAEMON, id="web2:8:y:1")))
    assert codes(replace(JOB, available_at=NOW - timedelta(minutes=5)), both) == ["next", "not_taken"]
    held = replace(JOB, state="reserved", reserved_by="web1:7:x:w:9", reserved_at=NOW - timedelta(seconds=30))
    assert "that process is silent for 45s" in text(held, around)


@pytest.mark.parametrize("state", ["reserved", "stale"])
def test_a_job_in_its_last_attempt_is_told_to_become_a_dead_letter(state: str) -> None:
    job = replace(JOB, state=state, reserved_by="web1:7:x:w:9", reserved_at=NOW - timedelta(seconds=30), attempts=2)
    last = replace(job, attempts=3)
    assert "dead letter" not in text(job)
    for told in (text(last), text(replace(job, max_attempts=2))):
        assert "dead letter (`lost`)" in told and "back after" not in told


def test_where_it_is_not_known_who_lives_nothing_is_said_of_who_serves() -> None:
    around = replace(AROUND, daemons=None, holders=None, untold=("which daemons live (locked)",))
    assert codes(JOB, around) == ["next", "untold"]
    held = replace(JOB, state="reserved", reserved_by="web1:7:x:w:9", reserved_at=NOW)
    assert "whether that process lives isn't known" in text(held, around)


def test_threads_that_are_all_at_work_are_told_and_those_of_other_queues_are_not() -> None:
    around = replace(AROUND, holders=(HOLDER, STRANGER))
    assert codes(JOB, around) == ["next", "busy"]
    assert "hold 4 jobs now (web1:7 4), the longest for 3m20s" in text(JOB, around)
    two = replace(around, holders=(HOLDER, replace(HOLDER, thread="w-3", jobs=1, longest=300.0)))
    assert "hold 5 jobs now (web1:7 5), the longest for 5m" in text(JOB, two)
    assert "busy" not in codes(JOB, replace(AROUND, holders=(STRANGER,)))


def test_a_job_that_nothing_keeps_from_running_and_that_yet_waits_is_told() -> None:
    long_due = replace(JOB, available_at=NOW - timedelta(minutes=5))
    assert codes(long_due) == ["next", "not_taken"]
    for cause in ("due for 5m", "qd_workers", "has its row locked"):
        assert cause in text(long_due)
    for around in (replace(AROUND, paused=True), replace(AROUND, daemons=())):
        assert "not_taken" not in codes(long_due, around)
    assert "not_taken" not in codes(JOB), "it has just become due"


def test_what_could_not_be_asked_is_told_and_nothing_is_said_in_its_place() -> None:
    long_due = replace(JOB, available_at=NOW - timedelta(minutes=5))
    around = replace(AROUND, position=None, holders=None, untold=("its place in the queue (too dear)",))
    assert codes(long_due, around) == ["untold"]
    assert text(long_due, around) == "it couldn't be asked: its place in the queue (too dear)"


def test_queues_that_every_worker_serves_first_are_told_if_they_have_work() -> None:
    policy = replace(POLICY, first={"a": ("urgent", "idle"), "b": ("urgent",)})
    around = replace(AROUND, policy=policy, with_ready=frozenset({"urgent", "mails"}))
    assert codes(JOB, around) == ["other_queues", "next"]
    assert "worker a takes urgent first; worker b takes urgent first" in text(JOB, around)
    free = replace(policy, first={"a": ("urgent",), "b": ()})
    assert codes(JOB, replace(around, policy=free)) == ["next"], "one worker serves it first"
    assert codes(JOB, replace(around, with_ready=frozenset({"mails"}))) == ["next"]


def test_a_job_without_an_attempt_left_and_one_in_quarantine_are_told() -> None:
    assert codes(replace(JOB, attempts=3)) == ["spent", "next"]
    assert codes(replace(JOB, attempts=3, max_attempts=4)) == ["next"]
    assert codes(replace(JOB, attempts=1, crashes=1)) == ["quarantine", "next"]
    assert "down with it 2 times" in text(replace(JOB, attempts=1, crashes=2))


def dead(**more: Any) -> FailedRow:
    row: dict[str, Any] = {
        "id": 9, "job_id": 5, "queue": "mails", "type": "send", "payload": "{}", "priority": 2, "attempts": 3,
        "max_attempts": None, "unique_key": None, "history": [], "created_at": NOW, "reason": "error",
        "error": "boom\nmore", "traceback": None, "reserved_by": None, "failed_at": NOW,
    }  # fmt: skip
    return FailedRow(**{**row, **more})


def test_a_dead_letter_tells_its_reason_and_the_way_back() -> None:
    [reason] = why_dead(dead(), None)
    assert reason.code == "failed"
    assert "after 3 attempts, with reason error: boom; `qd failed retry 5` brings it back" in reason.text


def test_a_dead_letter_whose_key_a_living_job_holds_names_it() -> None:
    first, second = why_dead(dead(unique_key="daily"), 17)
    assert "can't be retried now" in first.text and "failed retry" not in first.text
    assert second.code == "key_taken"
    assert "'daily' is held by job 17" in second.text


def test_older_dead_letters_of_the_same_id_are_told() -> None:
    assert [reason.code for reason in why_dead(dead(others=2), None)] == ["failed", "older"]


def test_every_code_is_documented() -> None:
    said = set(re.findall(r'Reason\(\s*"(\w+)"', inspect.getsource(reasons)))
    section = (ROOT / "docs" / "cli.md").read_text().partition("## qd explain")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \| ", section, re.MULTILINE)
    assert {code for row in rows for code in re.findall(r"`(\w+)`", row)} - {"code"} == said
