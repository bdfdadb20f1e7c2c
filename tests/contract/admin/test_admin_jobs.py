"""What people may do with waiting and running jobs, on every database."""

from __future__ import annotations

import pytest

from qd.errors import BadInput, NotFound, Refused
from qd.store.protocol import Filter
from tests.contract.admin.desk import OWNER, Desk


@pytest.mark.parametrize("state", ["ready", "delayed", "reserved", "stale", "blocked"])
def test_each_row_is_in_one_state_by_the_databases_clock(desk: Desk, state: str) -> None:
    job_id = desk.job(state)
    store = desk.store()
    assert store.job(job_id).state == state
    for asked in ("ready", "delayed", "reserved", "stale", "blocked"):
        assert len(store.list_jobs(Filter(state=asked))) == (asked == state)


def test_a_list_is_paged_by_id_and_filtered(desk: Desk) -> None:
    ids = [desk.job(queue=queue, type=kind) for queue, kind in [("a", "x"), ("b", "x"), ("a", "y"), ("a", "x")]]
    store = desk.store()
    assert [row.id for row in store.list_jobs(Filter(limit=3))] == ids[:3]
    assert [row.id for row in store.list_jobs(Filter(limit=3, after=ids[2]))] == ids[3:]
    assert [row.id for row in store.list_jobs(Filter(queue="a", type="x"))] == [ids[0], ids[3]]


def test_a_name_that_no_row_can_have_is_refused_not_searched(desk: Desk) -> None:
    with pytest.raises(BadInput, match="'é'"):
        desk.store().list_jobs(Filter(queue="é"))
    with pytest.raises(BadInput, match="no state 'odd'"):
        desk.store().list_jobs(Filter(state="odd"))


def test_posts_are_no_jobs_for_any_verb(desk: Desk) -> None:
    store = desk.store()
    store.ensure_posts(["default"])
    desk.job(queue="default", type="qd.post", due=1e8, state="delayed")
    post = int(desk.sql("SELECT MAX(id) FROM qd_jobs WHERE type = 'qd.post'")[0][0])
    before = desk.sql("SELECT COUNT(*) FROM qd_jobs WHERE type = 'qd.post'")
    assert store.list_jobs(Filter()) == []
    assert store.count_jobs(Filter()) == (0, 0)
    assert store.job_ids(Filter(queue="default")) == []
    assert store.delete_jobs([post], Filter()) == 0
    for act in (store.job, store.release_job, store.delete_job, store.position):
        with pytest.raises(NotFound):
            act(post)
    assert desk.sql("SELECT COUNT(*) FROM qd_jobs WHERE type = 'qd.post'") == before


def test_an_unknown_id_is_not_found(desk: Desk) -> None:
    store = desk.store()
    for act in (store.job, store.release_job, store.delete_job, store.position):
        with pytest.raises(NotFound, match="999999"):
            act(999999)


def test_release_makes_a_delayed_job_due_now_and_changes_nothing_else(desk: Desk) -> None:
    job_id = desk.job("delayed", attempts=1, last_error="boom")
    desk.store().release_job(job_id)
    row = desk.store().job(job_id)
    assert (row.state, row.attempts, row.last_error, row.crashes) == ("ready", 1, "boom", 0)


def test_release_leaves_a_ready_job_its_place(desk: Desk) -> None:
    job_id = desk.job("ready")
    due = desk.row(job_id, "available_at")
    desk.store().release_job(job_id)
    assert desk.row(job_id, "available_at") == due


def test_release_takes_a_stale_job_back_with_its_lost_run_in_the_history(desk: Desk) -> None:
    job_id = desk.job("stale", attempts=1)
    desk.store().release_job(job_id, 3)
    row = desk.store().job(job_id)
    assert (row.state, row.reserved_by, row.reserved_at, row.attempts, row.crashes) == ("ready", None, None, 1, 1)
    assert row.history[-1]["outcome"] == "lost"


@pytest.mark.parametrize(("own", "policy"), [(1, 5), (None, 1)])
def test_release_never_gives_a_second_start_to_a_job_that_may_have_one(
    desk: Desk, own: int | None, policy: int
) -> None:
    job_id = desk.job("stale", attempts=1, max_attempts=own)
    with pytest.raises(Refused, match="last of its 1 attempts"):
        desk.store().release_job(job_id, policy)
    assert desk.store().job(job_id).state == "stale"


def test_release_and_delete_refuse_a_living_lease_and_say_whose(desk: Desk) -> None:
    job_id = desk.job("reserved", due=60, attempts=1)
    before = desk.row(job_id, "available_at", "reserved_by", "attempts", "lane")
    for act in (desk.store().release_job, desk.store().delete_job):
        with pytest.raises(Refused, match=OWNER):
            act(job_id)
    assert desk.store().delete_jobs([job_id], Filter()) == 0
    assert desk.row(job_id, "available_at", "reserved_by", "attempts", "lane") == before


@pytest.mark.parametrize("state", ["ready", "delayed", "stale", "blocked"])
def test_delete_removes_what_nobody_holds(desk: Desk, state: str) -> None:
    job_id = desk.job(state)
    desk.store().delete_job(job_id)
    assert desk.ids() == []


def test_deleting_many_keeps_to_the_filter_at_the_moment_of_the_delete(desk: Desk) -> None:
    mine, other, running, ready = (
        desk.job("delayed", queue="a"), desk.job("delayed", queue="b"), desk.job("reserved", queue="a"),
        desk.job("ready", queue="a"),
    )  # fmt: skip
    where = Filter(queue="a", state="delayed")
    store = desk.store()
    assert store.count_jobs(where) == (1, mine)
    assert store.count_jobs(Filter(queue="a")) == (3, ready)
    assert store.job_ids(Filter(queue="a", after=mine, limit=1)) == [running]
    assert store.delete_jobs([mine, other, running, ready], where) == 1
    assert desk.ids() == [other, running, ready]


def test_position_counts_only_what_is_claimed_before(desk: Desk) -> None:
    desk.job(queue="a", priority=1)
    desk.job(queue="a", priority=2, due=-20)
    mine = desk.job(queue="a", priority=2, due=-10)
    desk.job(queue="a", priority=2, due=-5)
    desk.job(queue="a", priority=3, due=-60)
    desk.job("delayed", queue="a", priority=0)
    desk.job("reserved", queue="a", priority=0)
    desk.job(queue="b", priority=0)
    assert desk.store().position(mine) == 2


def test_the_order_of_equal_due_times_is_that_of_the_ids(desk: Desk) -> None:
    ids = [desk.job(queue="a") for _ in range(3)]
    desk.sql("UPDATE qd_jobs SET available_at = (SELECT m FROM (SELECT MIN(available_at) AS m FROM qd_jobs) x)")
    assert [desk.store().position(job_id) for job_id in ids] == [0, 1, 2]


def test_a_huge_payload_is_cut_in_a_list_and_whole_alone(desk: Desk) -> None:
    payload = '"' + "é" * 100_000 + '"'
    job_id = desk.job(payload=payload)
    [listed] = desk.store().list_jobs(Filter())
    assert listed.payload == payload[:1000]
    assert listed.payload_bytes == len(payload.encode())
    assert desk.store().job(job_id).payload == payload


def test_a_history_that_is_none_is_shown_instead_of_failing(desk: Desk) -> None:
    for history in ("not json", '{"a": 1}', "[1, null]", "[" * 5000, '[{"a": ' + "[" * 900 + "]" * 900 + "}]"):
        job_id = desk.job(history=history)
        assert len(desk.store().job(job_id).history) >= 1


def test_acts_do_not_wait_for_the_open_inserts_of_others(desk: Desk) -> None:
    if not desk.mysql:
        pytest.skip("SQLite has one writer at a time by design")
    job_id, stale, doomed = desk.job("delayed"), desk.job("stale", attempts=1), desk.job()
    other = desk.connect(autocommit=False)
    try:
        other.cursor().execute("INSERT INTO qd_jobs (type) VALUES ('send')")
        store = desk.store()
        store.release_job(job_id)
        store.release_job(stale, 3)
        store.delete_job(doomed)
        assert store.delete_jobs([job_id], Filter()) == 1
        assert store.recover(None, {}, 3) == (0, 0)
    finally:
        other.rollback()
        other.close()
    assert desk.ids() == [stale]
