"""Who holds what: jobs under a living lease by process, and unique keys by job."""

from __future__ import annotations

import pytest

from qd.store.protocol import StaleRow
from tests.contract.admin.desk import Desk


def test_jobs_are_counted_by_the_thread_that_holds_them_under_a_living_lease(desk: Desk) -> None:
    for number, owner in enumerate(("web1:7:x:w-1:1", "web1:7:x:w-1:1", "web1:7:x:other:2", "web2:9:y:a:b+c-3:1")):
        desk.job("reserved", reserved_by=owner, queue="mails" if number else "default", priority=number % 4)
    desk.sql(f"UPDATE qd_jobs SET reserved_at = {desk.moment(-90)} WHERE reserved_by = 'web1:7:x:other:2'")
    desk.job("stale", reserved_by="gone:1:z:w:1")
    desk.job("ready"), desk.job("delayed")
    other, first, second = desk.store().holders(["mails", "default", "empty"])
    found = [(held.name, held.thread, held.jobs, set(held.queues)) for held in (other, first, second)]
    assert found == [
        ("web1:7:x", "other", 1, {"mails"}), ("web1:7:x", "w-1", 2, {"mails", "default"}),
        ("web2:9:y", "a:b+c-3", 1, {"mails"}),
    ]  # fmt: skip
    assert 89 < other.longest < 120 and first.longest == second.longest == 0.0
    assert [holder.name for holder in desk.store().holders(["default"])] == ["web1:7:x"]
    assert desk.store().holders([]) == []


def test_a_unique_key_is_held_within_its_queue_by_one_job_or_nobody(desk: Desk) -> None:
    job = desk.job("ready", queue="mails", unique_key="daily 'é'")
    store = desk.store()
    assert store.key_holder("mails", "daily 'é'") == job
    assert store.key_holder("default", "daily 'é'") is None
    assert store.key_holder("mails", "Daily 'é'") is None


def test_a_row_that_a_stranger_has_locked_is_not_free_to_be_claimed(desk: Desk) -> None:
    if desk.server is None:
        pytest.skip("SQLite has no locks on rows")
    locked, free = desk.job(), desk.job()
    with desk.connect() as stranger, stranger.cursor(buffered=True) as cursor:
        cursor.execute("START TRANSACTION")
        cursor.execute("SELECT id FROM qd_jobs WHERE id = %s FOR UPDATE", (locked,))
        rows = [StaleRow(job, "default", "send", "", "", 0) for job in (locked, free)]
        assert desk.store().free(rows) == {rows[1]}
        stranger.rollback()
