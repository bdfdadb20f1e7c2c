"""Settle: what each action writes, and the fence that no stale token passes."""

from __future__ import annotations

import json

import pytest

from qd.job import ClaimedJob
from qd.outcome import Action, Outcome, OutcomeKind, Reason, Verdict
from tests.contract.bench import FAILED, SUCCEEDED, Bench, ended, finished


def test_finished_jobs_are_gone(bench: Bench) -> None:
    bench.add(250)
    jobs = bench.claim(250)
    assert bench.store.settle([finished(job) for job in jobs]) == [Verdict.SETTLED] * 250
    assert bench.jobs() == bench.dead() == 0


def test_nothing_to_settle_is_nothing(bench: Bench) -> None:
    assert bench.store.settle([]) == []


def test_a_retry_is_due_later_keeps_its_attempt_and_tells_its_history(bench: Bench) -> None:
    (job_id,) = bench.add(1)
    (job,) = bench.claim(1)
    assert bench.store.settle([ended(job, Action.RETRY, delay=30.0)]) == [Verdict.SETTLED]
    assert bench.row(job_id, "lane", "attempts", "reserved_by", "reserved_at") == (0, 1, None, None)
    assert bench.row(job_id, "last_error", "crashes") == ("it broke", 0)
    (entry,) = bench.store.job(job_id).history
    assert (entry["attempt"], entry["worker"], entry["outcome"]) == (1, job.token, "failed")
    assert entry["error"] == "it broke"
    assert entry["start"] <= entry["end"]
    assert entry["end"].endswith("Z")
    assert bench.claim() == []
    bench.shift(job_id, -1)
    assert bench.claim()[0].attempt == 2


def test_a_child_that_crashed_counts_as_a_crash(bench: Bench) -> None:
    (job_id,) = bench.add(1)
    (job,) = bench.claim(1)
    bench.store.settle([ended(job, Action.RETRY, Outcome(OutcomeKind.CRASHED, Reason.CRASH, error="signal 9"))])
    assert bench.row(job_id, "crashes") == (1,)


def test_a_release_gives_the_attempt_back_and_leaves_no_trace(bench: Bench) -> None:
    (job_id,) = bench.add(1)
    (job,) = bench.claim(1)
    bench.store.settle([ended(job, Action.RELEASE, Outcome(OutcomeKind.SNOOZED, delay=60.0), delay=60.0)])
    assert bench.row(job_id, "lane", "attempts", "reserved_by", "history", "last_error") == (0, 0, None, None, None)
    assert bench.store.depths()[0].delayed == 1


def test_a_buried_job_is_whole_in_the_dead_letters(bench: Bench) -> None:
    (job_id,) = bench.add(1, payload='{"k": [1.0, "ü"]}', priority=1, max_attempts=5, unique_key="once")
    (job,) = bench.claim(1)
    end = Outcome(OutcomeKind.TIMEOUT, Reason.TIMEOUT, error="too slow", traceback="Traceback: ...")
    assert bench.store.settle([ended(job, Action.BURY, end)]) == [Verdict.SETTLED]
    assert bench.row(job_id, "id") is None
    row = bench.store.failed(job_id)
    assert (row.queue, row.type, row.payload, row.priority) == ("default", "noop", '{"k": [1.0, "ü"]}', 1)
    assert (row.attempts, row.max_attempts, row.unique_key) == (1, 5, "once")
    assert (row.reason, row.error, row.traceback) == ("timeout", "too slow", "Traceback: ...")
    assert row.reserved_by == job.token
    assert [entry["outcome"] for entry in row.history] == ["timeout"]


def test_history_keeps_the_last_twenty_attempts(bench: Bench) -> None:
    (job_id,) = bench.add(1, max_attempts=100)
    for _ in range(23):
        (job,) = bench.claim(1)
        bench.store.settle([ended(job, Action.RETRY)])
    history = bench.store.job(job_id).history
    assert [entry["attempt"] for entry in history] == list(range(4, 24))


def test_a_history_that_somebody_broke_is_begun_anew(bench: Bench) -> None:
    (job_id,) = bench.add(1, history='{"not": "a list')
    (job,) = bench.claim(1)
    bench.store.settle([ended(job, Action.RETRY)])
    assert len(bench.store.job(job_id).history) == 1


@pytest.mark.parametrize("action", list(Action))
def test_a_stale_token_settles_nothing(bench: Bench, action: Action) -> None:
    (job_id,) = bench.add(1, max_attempts=9)
    (mine,) = bench.claim(1)
    bench.store.settle([ended(mine, Action.RETRY)])
    (theirs,) = bench.claim(1)
    before = bench.row(job_id, "*")
    assert bench.store.settle([ended(mine, action)]) == [Verdict.LOST]
    assert bench.row(job_id, "*") == before
    assert bench.dead() == 0
    assert bench.store.settle([finished(theirs)]) == [Verdict.SETTLED]


def test_among_many_only_the_lost_ones_are_told_as_lost(bench: Bench) -> None:
    bench.add(8)
    jobs = bench.claim(8)
    bench.sql("DELETE FROM qd_jobs WHERE id = %s", jobs[3].id)
    bench.sql("UPDATE qd_jobs SET reserved_by = 'another' WHERE id = %s", jobs[5].id)
    ends = [finished(job) if job.id % 2 else ended(job, Action.RETRY) for job in jobs]
    verdicts = bench.store.settle(ends)
    assert [at for at, verdict in enumerate(verdicts) if verdict is Verdict.LOST] == [3, 5]
    assert bench.row(jobs[5].id, "reserved_by") == ("another",)


def test_jobs_of_several_claims_are_settled_together(bench: Bench) -> None:
    bench.add(6)
    jobs = [*bench.claim(2), *bench.claim(2), *bench.claim(2)]
    assert bench.store.settle([finished(job) for job in reversed(jobs)]) == [Verdict.SETTLED] * 6


HOSTILE = {
    "huge": "x" * 20_000_000,
    "surrogate": "before \udcff after",
    "nul": "a\x00b",
    "emoji": "\U0001f4a5" * 30_000,
    "quotes": "it's \"quoted\" \\ %s %% {} \\' --",
    "empty": "",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_any_error_text_is_recorded_valid_and_within_its_column(bench: Bench, text: str) -> None:
    (job_id,) = bench.add(1)
    hostile = Outcome(OutcomeKind.FAILED, error=text, traceback=text)
    (job,) = bench.claim(1)
    assert bench.store.settle([ended(job, Action.RETRY, hostile)]) == [Verdict.SETTLED]
    stored = bench.store.job(job_id).last_error
    assert stored is not None
    assert len(stored.encode()) <= 65_535
    assert stored == text or stored.endswith("[cut]") or "\\udcff" in stored
    (job,) = bench.claim(1)
    assert bench.store.settle([ended(job, Action.BURY, hostile)]) == [Verdict.SETTLED]
    assert bench.store.failed(job_id).error == stored


def test_a_text_that_the_server_refuses_is_replaced_not_the_whole_end(server_bench: Bench) -> None:
    for table in ("qd_jobs", "qd_failed_jobs"):
        server_bench.sql(f"ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb3")
    server_bench.add(2)
    first, second = server_bench.claim(2)
    emoji = Outcome(OutcomeKind.FAILED, error="boom \U0001f4a5")
    ends = [ended(first, Action.RETRY, emoji), ended(second, Action.BURY, emoji)]
    assert server_bench.store.settle(ends) == [Verdict.SETTLED] * 2
    assert "refused" in str(server_bench.store.job(first.id).last_error)
    assert "refused" in str(server_bench.store.failed(second.id).error)


@pytest.mark.parametrize("taken_back", [False, True])
def test_a_history_is_taken_by_a_table_of_another_character_set(server_bench: Bench, taken_back: bool) -> None:
    server_bench.sql("ALTER TABLE qd_failed_jobs CONVERT TO CHARACTER SET utf8mb3")
    (job_id,) = server_bench.add(1, max_attempts=2)
    (first,) = server_bench.claim(1)
    emoji = Outcome(OutcomeKind.FAILED, error="boom \U0001f4a5")
    server_bench.store.settle([ended(first, Action.RETRY, emoji)])
    (last,) = server_bench.claim(1)
    if taken_back:
        server_bench.shift(job_id, -1)
        (row,) = server_bench.store.stale(["default"], 9)
        assert server_bench.store.reclaim(row, 2) is Verdict.BURIED
    else:
        assert server_bench.store.settle([ended(last, Action.BURY, emoji)]) == [Verdict.SETTLED]
    entries = server_bench.store.failed(job_id).history
    assert entries[0]["error"] == "boom \U0001f4a5" and len(entries) == 2


def test_a_payload_that_fills_the_packet_is_buried_whole(server_bench: Bench) -> None:
    most = int(server_bench.one("SELECT @@max_allowed_packet"))
    body = json.dumps("x" * 900_000)
    (job_id,) = server_bench.add(1, payload=body)
    assert len(body) < most
    (job,) = server_bench.claim(1)
    server_bench.store.settle([ended(job, Action.BURY, FAILED)])
    assert server_bench.store.failed(job_id).payload == body


def test_a_finished_job_counts_nothing_back(bench: Bench) -> None:
    bench.add(1)
    job: ClaimedJob
    (job,) = bench.claim(1)
    assert bench.store.settle([finished(job)]) == [Verdict.SETTLED]
    assert bench.store.settle([finished(job)]) == [Verdict.LOST]
    assert SUCCEEDED.kind is OutcomeKind.SUCCEEDED
