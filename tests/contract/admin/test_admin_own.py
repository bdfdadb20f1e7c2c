"""Queues that are qd's own: found, and cleared of all that they have. And what a database tells of its work."""

from __future__ import annotations

import json

import pytest

from qd.errors import Refused
from qd.store.admin import own
from qd.store.protocol import DaemonRow
from tests.contract.admin.desk import Desk

OWN, OTHER_OWN = "qd.bench.1", "qd.bench.10"


def daemon(number: int, *queues: str) -> DaemonRow:
    return DaemonRow(f"host:{number}:x:1", "host", number, "1.0.0", queues, ("qd.bench",))


def queues_left(desk: Desk) -> set[str]:
    found = {row[0] for table in own.TABLES for row in desk.sql(f"SELECT queue FROM {table}")}
    return found | {name for row in desk.sql("SELECT queues FROM qd_daemons") for name in json.loads(row[0])}


def test_clearing_a_queue_of_its_own_leaves_nothing_of_it_and_all_else(desk: Desk) -> None:
    store = desk.store()
    for queue in (OWN, OTHER_OWN, "default"):
        for state in ("ready", "delayed", "reserved", "stale", "blocked"):
            desk.job(state, queue=queue)
        desk.dead(queue=queue)
    posts = store.ensure_posts([OWN, OTHER_OWN])
    store.announce(daemon(1, OWN))
    store.announce(daemon(2, OWN, "default"))
    store.announce(daemon(3, OTHER_OWN))
    before = len(desk.sql("SELECT id FROM qd_jobs")), len(desk.sql("SELECT id FROM qd_failed_jobs"))
    assert store.clear_own(OWN) == 5 + posts // 2 + 1
    after = len(desk.sql("SELECT id FROM qd_jobs")), len(desk.sql("SELECT id FROM qd_failed_jobs"))
    assert after == (before[0] - 5 - posts // 2, before[1] - 1)
    assert desk.sql("SELECT id FROM qd_jobs WHERE queue = %s", OWN) == []
    assert sorted(row.id for row in store.daemons()) == ["host:2:x:1", "host:3:x:1"]
    assert store.clear_own(OWN) == 0, "a second time there is nothing left to do"


def test_more_rows_than_one_transaction_takes_are_cleared_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "FOUND_AT_ONCE", 7)
    monkeypatch.setattr(own, "DELETED_AT_ONCE", 3)
    for _ in range(20):
        desk.job(queue=OWN)
    assert desk.store().clear_own(OWN) == 20
    assert desk.ids() == []


def test_users_queues_are_refused_and_left_as_they_are(desk: Desk) -> None:
    desk.job(queue="default")
    for act in (desk.store().clear_own, desk.store().own_queues):
        with pytest.raises(Refused, match="qd's own"):
            act("default")
    assert len(desk.ids()) == 1


def test_queues_of_its_own_are_found_by_whatever_is_left_in_them(desk: Desk) -> None:
    store = desk.store()
    assert store.own_queues("qd.bench.") == []
    desk.job(queue="default")
    desk.job("reserved", queue="qd.bench.a")
    desk.dead(queue="qd.bench.b")
    store.ensure_posts(["qd.bench.c"])
    store.announce(daemon(4, "qd.bench.d"))
    desk.job(queue="qd.benchmark")
    posted = ["qd.bench.c"] if desk.mysql else []
    assert store.own_queues("qd.bench.") == ["qd.bench.a", "qd.bench.b", *posted, "qd.bench.d"]
    for queue in store.own_queues("qd.bench."):
        store.clear_own(queue)
    assert queues_left(desk) == {"default", "qd.benchmark"}


def test_rows_read_are_those_of_the_stores_own_connection(desk: Desk) -> None:
    store, other = desk.store("one"), desk.store("two")
    if not desk.mysql:
        assert store.rows_read() is None
        return
    for _ in range(50):
        desk.job()
    first = store.rows_read()
    other.depths()
    second = store.rows_read()
    store.depths()
    third = store.rows_read()
    assert first is not None and second is not None and third is not None
    asking = second - first
    assert 50 <= third - second - asking < 150, "its own walk over 50 rows, and not the other's"


def test_the_settings_that_make_a_commit_dear_are_told(desk: Desk) -> None:
    found = desk.store().settings()
    if desk.mysql:
        assert found["innodb_flush_log_at_trx_commit"] in ("0", "1", "2")
        assert found["isolation"] == "READ-COMMITTED"
        assert {"sync_binlog", "log_bin"} <= found.keys()
    else:
        assert found["journal_mode"] == "wal" and found["synchronous"] in ("1", "2")
