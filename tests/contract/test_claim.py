"""Claim: what is taken, in which order, and what the row says afterwards."""

from __future__ import annotations

from datetime import datetime, timezone

from qd.events import JobDeadLettered
from qd.outcome import Action
from qd.store.moments import written
from qd.store.protocol import Spot
from tests.contract.bench import Bench, ended, new_token


def test_a_claim_takes_ready_rows_in_order_of_due_time_and_id(bench: Bench) -> None:
    late = bench.add(2, due=-1)
    early = bench.add(2, due=-5)
    assert [job.id for job in bench.claim(3)] == [*early, late[0]]
    assert [job.id for job in bench.claim(3)] == [late[1]]
    assert bench.claim(3) == []


def test_a_claim_takes_the_first_priority_that_has_any(bench: Bench) -> None:
    normal, low, urgent = (bench.add(1, priority=level)[0] for level in (2, 3, 0))
    assert [[job.id for job in bench.claim(5)] for _ in range(4)] == [[urgent], [normal], [low], []]


def test_a_claim_whose_lane_has_no_mark_begins_where_its_look_has_seen_a_row(bench: Bench) -> None:
    below, seen = bench.add(1, due=-9), bench.add(1, due=-5)
    bench.store.look(["default"], full=True)
    bench.store._shared.marks.drop()
    (due,) = bench.row(seen[0], "available_at") or ()
    start = Spot(written(due), seen[0])
    assert [job.id for job in bench.claim(1, priorities=(2,), start=start)] == seen
    assert [job.id for job in bench.claim(1, priorities=(2,))] == below, "no mark was moved over it"


def test_only_the_asked_priorities_are_looked_at(bench: Bench) -> None:
    bench.add(1, priority=0)
    (normal,) = bench.add(1, priority=2)
    assert [job.id for job in bench.claim(5, priorities=(2, 3))] == [normal]


def test_delayed_reserved_blocked_and_foreign_rows_are_left(bench: Bench) -> None:
    bench.add(1, due=60)
    bench.add(1, queue="other")
    bench.add(1, lane=2)
    bench.add(1, lane=1, reserved_by="somebody", due=-60)
    assert bench.claim() == []


def test_a_claimed_row_is_reserved_its_attempt_spent_and_its_lease_runs(bench: Bench) -> None:
    (job_id,) = bench.add(1, payload='{"a": 1.0, "a": 2}')
    token = new_token()
    (job,) = bench.claim(1, token=token, lease=30.0)
    assert (job.id, job.queue, job.type, job.payload) == (job_id, "default", "noop", '{"a": 1.0, "a": 2}')
    assert (job.attempt, job.crashes, job.max_attempts, job.token, job.lease) == (1, 0, None, token, 30.0)
    assert bench.row(job_id, "lane", "attempts", "reserved_by") == (1, 1, token)
    left = bench.one("SELECT available_at > reserved_at FROM qd_jobs WHERE id = %s", job_id)
    assert left == 1
    assert abs((datetime.now(timezone.utc) - job.created_at).total_seconds()) < 60


def test_waited_is_the_time_from_due_to_claim_without_a_wished_delay(bench: Bench) -> None:
    bench.add(1, due=-40)
    (job,) = bench.claim(1)
    assert 39.9 < job.waited < 60


def test_two_stores_never_get_the_same_row(bench: Bench) -> None:
    ids = bench.add(30)
    other = bench.new_store("other")
    taken = [job.id for _ in range(5) for store in (bench.store, other) for job in bench.claim(3, store)]
    assert sorted(taken) == ids


def test_a_row_on_its_last_attempt_comes_first_and_alone_or_waits(bench: Bench) -> None:
    plain, last, after = bench.add(1)[0], bench.add(1, attempts=2)[0], bench.add(1)[0]
    assert [job.id for job in bench.claim(5)] == [plain, after]
    assert [job.id for job in bench.claim(5)] == [last]


def test_rows_with_one_attempt_or_with_crashes_come_one_by_one(bench: Bench) -> None:
    once, crashed, plain = bench.add(2, max_attempts=1), bench.add(2, crashes=1), bench.add(2)
    sizes = [[job.id for job in bench.claim(10)] for _ in range(6)]
    assert sizes == [[once[0]], [once[1]], [crashed[0]], [crashed[1]], plain, []]


def test_a_row_that_was_passed_over_is_found_by_the_next_claim_also_behind_full_batches(bench: Bench) -> None:
    plain = bench.add(2)
    (last,) = bench.add(1, attempts=2)
    more = bench.add(4)
    first = [job.id for job in bench.claim(3)]
    assert first[:2] == plain
    assert last not in first
    assert [job.id for job in bench.claim(3)] == [last]
    assert [job.id for job in bench.claim(9)] == [job_id for job_id in more if job_id not in first]


def test_the_rows_own_limit_goes_before_the_queues(bench: Bench) -> None:
    generous, _ = bench.add(1, attempts=2, max_attempts=9)[0], bench.add(1, attempts=1)[0]
    assert bench.claim(5)[0].id == generous
    assert bench.claim(5) == []


def test_a_row_whose_attempts_are_all_spent_goes_to_the_dead_letters_and_the_claim_goes_on(bench: Bench) -> None:
    (spent,) = bench.add(1, attempts=7, last_error="the last one", payload='{"k": 1}')
    (good,) = bench.add(1)
    claimed = [job.id for _ in range(2) for job in bench.claim(5)]
    assert claimed == [good]
    assert bench.row(spent, "id") is None
    rows = bench.sql("SELECT job_id, attempts, reason, error, payload FROM qd_failed_jobs")
    assert rows == [(spent, 7, "error", "the last one", '{"k": 1}')]
    assert [event.job_id for event in bench.events(JobDeadLettered)] == [spent]


def test_a_job_that_was_given_back_can_be_claimed_again_under_another_token(bench: Bench) -> None:
    bench.add(1)
    (job,) = bench.claim(1)
    bench.store.settle([ended(job, Action.RELEASE)])
    (again,) = bench.claim(1)
    assert (again.id, again.attempt) == (job.id, 1)
    assert again.token != job.token


def test_a_large_batch_is_taken_whole(bench: Bench) -> None:
    ids = bench.add(450)
    assert [job.id for job in bench.claim(450)] == ids
    assert bench.one("SELECT COUNT(*) FROM qd_jobs WHERE lane = 1 AND attempts = 1") == 450


def test_posts_are_never_claimed_even_if_moved(server_bench: Bench) -> None:
    server_bench.store.ensure_posts(["default"])
    server_bench.sql("UPDATE qd_jobs SET available_at = NOW(6) - INTERVAL 1 HOUR WHERE type = 'qd.post'")
    (job_id,) = server_bench.add(1)
    assert [job.id for job in server_bench.claim()] == [job_id]
    assert server_bench.claim() == []


def test_a_row_that_is_committed_late_or_dated_back_is_found_by_the_full_look(bench: Bench) -> None:
    bench.add(3)
    bench.claim(3)
    bench.store.look(["default"], full=False)
    (old,) = bench.add(1, due=-3600)
    assert bench.store.look(["default"], full=False).hits == {}
    assert bench.store.look(["default"], full=True).hits["default"][2].id == old
    assert [job.id for job in bench.claim()] == [old]
