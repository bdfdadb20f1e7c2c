"""Queues, daemons and recovery, on every database."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from qd.errors import BadInput
from qd.store.protocol import DaemonRow
from tests.contract.admin.desk import Desk


def paused(desk: Desk) -> set[str]:
    return {depth.queue for depth in desk.store().depths() if depth.paused}


def test_a_pause_lasts_until_the_resume_and_keeps_its_first_time(desk: Desk) -> None:
    store = desk.store()
    store.pause("mails")
    since = desk.sql("SELECT paused_at FROM qd_queues WHERE name = 'mails'")
    store.pause("mails")
    assert desk.sql("SELECT paused_at FROM qd_queues WHERE name = 'mails'") == since
    assert paused(desk) == {"mails"}
    store.resume("mails")
    store.resume("mails")
    store.resume("never-paused")
    assert paused(desk) == set()


@pytest.mark.parametrize("queue", ["", "two words", "é", "x" * 65])
def test_a_queue_that_cannot_be_is_not_paused(desk: Desk, queue: str) -> None:
    with pytest.raises(BadInput):
        desk.store().pause(queue)


def test_recover_takes_back_every_stale_job_and_buries_the_spent(desk: Desk) -> None:
    back = [desk.job("stale", queue="a", attempts=1), desk.job("stale", queue="b", attempts=4, max_attempts=5)]
    spent = [desk.job("stale", queue="a", attempts=2), desk.job("stale", queue="unknown", attempts=3)]
    desk.job("stale", queue="a", type="qd.post", due=-10)
    untouched = [desk.job("reserved", queue="a"), desk.job("delayed", queue="a")]
    assert desk.store().recover(None, {"a": 2, "b": 2}, 3) == (2, 2)
    assert [desk.store().job(job_id).state for job_id in back + untouched] == ["ready", "ready", "reserved", "delayed"]
    assert [desk.store().failed(job_id).reason for job_id in spent] == ["lost", "lost"]
    assert desk.store().recover(None, {}, 3) == (0, 0)


def test_recover_of_one_queue_leaves_the_others(desk: Desk) -> None:
    mine, other = desk.job("stale", queue="a", attempts=1), desk.job("stale", queue="b", attempts=1)
    assert desk.store().recover("a", {}, 3) == (1, 0)
    assert (desk.store().job(mine).state, desk.store().job(other).state) == ("ready", "stale")


def test_recover_passes_a_locked_row_over_and_ends(desk: Desk) -> None:
    if not desk.mysql:
        pytest.skip("SQLite has one writer at a time by design")
    locked, free = desk.job("stale", attempts=1), desk.job("stale", attempts=1)
    other = desk.connect(autocommit=False)
    try:
        cursor = other.cursor()
        cursor.execute("SELECT id FROM qd_jobs WHERE id = %s FOR UPDATE", (locked,))
        cursor.fetchall()
        assert desk.store().recover(None, {}, 3) == (1, 0)
    finally:
        other.rollback()
        other.close()
    assert (desk.store().job(locked).state, desk.store().job(free).state) == ("stale", "ready")


def test_a_daemon_runs_while_it_has_been_seen_within_a_minute(desk: Desk) -> None:
    store = desk.store()
    store.announce(DaemonRow("d1", "web1", 7, "1.0.0", ("mails", "default"), ("send",)))
    store.announce(DaemonRow("d2", "web2", 8, "1.0.0", (), ()))
    desk.sql(f"UPDATE qd_daemons SET seen_at = {desk.moment(-61)} WHERE id = 'd2'")
    [row] = store.daemons()
    assert (row.id, row.host, row.pid, row.queues, row.types) == ("d1", "web1", 7, ("mails", "default"), ("send",))
    assert row.seen_at is not None
    assert row.seen_at.tzinfo is not None
    assert 0 <= row.seen_ago < 30
    desk.sql(f"UPDATE qd_daemons SET seen_at = {desk.moment(-40)} WHERE id = 'd1'")
    [row] = store.daemons()
    assert row.silent and 39 < row.seen_ago < 60


def test_now_is_the_databases_in_utc(desk: Desk) -> None:
    assert abs((desk.store().now() - datetime.now(timezone.utc)).total_seconds()) < 30
