"""Depths, posts, the table of daemons, the purge, the look's paused queues."""

from __future__ import annotations

import pytest

from qd.outcome import Action
from qd.store.protocol import DaemonRow, QueueDepth
from tests.contract.bench import Bench, ended


def test_depths_count_each_state_of_each_queue(bench: Bench) -> None:
    bench.add(3, due=-30)
    bench.add(2, due=60, priority=0)
    bench.add(2, queue="other", due=60)
    bench.add(1, queue="other", lane=2)
    bench.add(3, queue="held")
    stale, _, dead = bench.claim(3, queue="held")
    bench.shift(stale.id, -5)
    bench.store.settle([ended(dead, Action.BURY)])
    bench.store.pause("empty")
    depths = {depth.queue: depth for depth in bench.store.depths()}
    assert set(depths) == {"default", "other", "held", "empty"}
    assert (depths["default"].ready, depths["default"].delayed) == (3, 2)
    assert 29 < depths["default"].oldest_ready_age < 60
    assert (depths["other"].ready, depths["other"].delayed, depths["other"].blocked) == (0, 2, 1)
    assert depths["other"].oldest_ready_age == 0.0
    assert (depths["held"].reserved, depths["held"].stale, depths["held"].failed) == (1, 1, 1)
    assert depths["empty"] == QueueDepth("empty", paused=True)


def test_an_empty_database_has_no_depths(bench: Bench) -> None:
    assert bench.store.depths() == []


def test_a_queue_that_was_resumed_is_not_paused(bench: Bench) -> None:
    bench.add(1)
    bench.store.pause("default")
    look = bench.store.look(["default"], full=False)
    assert (look.hits, look.paused) == ({}, frozenset({"default"}))
    bench.store.resume("default")
    look = bench.store.look(["default"], full=False)
    assert (list(look.hits), look.paused) == (["default"], frozenset())


def test_what_waits_in_a_paused_queue_is_found_by_a_quick_look_after_it(bench: Bench) -> None:
    """The mark must not move on over rows that nobody may claim yet."""
    (job_id,) = bench.add(1, due=-3600)
    bench.store.pause("default")
    for _ in range(3):
        bench.store.look(["default"], full=False)
        bench.store.look(["default"], full=True)
    bench.store.resume("default")
    assert bench.store.look(["default"], full=False).hits["default"][2].id == job_id


def test_a_look_shows_the_first_row_of_each_lane_and_only_of_the_asked_queues(bench: Bench) -> None:
    bench.add(2)
    (urgent,) = bench.add(1, priority=0)
    bench.add(1, queue="other")
    look = bench.store.look(["default", "empty"], full=True)
    assert {priority: spot.id for priority, spot in look.hits["default"].items()} == {0: urgent, 2: urgent - 2}
    assert set(look.hits) == {"default"}
    assert look.now > look.hits["default"][2].due


def test_a_look_takes_any_number_of_queues(bench: Bench) -> None:
    bench.add(1, queue="q249")
    queues = [f"q{number}" for number in range(250)]
    assert list(bench.store.look(queues, full=False).hits) == ["q249"]
    assert bench.store.stale(queues, 10) == []
    assert bench.store.look([], full=True).hits == {}


def test_posts_are_put_back_and_shown_by_nothing(server_bench: Bench) -> None:
    store = server_bench.store
    assert store.ensure_posts(["default", "other"]) == 8
    assert store.ensure_posts(["default", "other"]) == 0
    server_bench.sql("DELETE FROM qd_jobs WHERE unique_key = 'qd.post:1' AND queue = 'default'")
    server_bench.sql("UPDATE qd_jobs SET available_at = NOW(6) WHERE unique_key = 'qd.post:2' AND queue = 'other'")
    server_bench.sql("UPDATE qd_jobs SET priority = 0 WHERE unique_key = 'qd.post:3' AND queue = 'other'")
    assert store.look(["default", "other"], full=True).hits == {}
    assert store.ensure_posts(["default", "other"]) == 3
    assert store.ensure_posts(["default", "other"]) == 0
    assert server_bench.one("SELECT COUNT(*) FROM qd_jobs WHERE type = 'qd.post'") == 8
    assert store.depths() == []
    assert store.look(["default", "other"], full=True).hits == {}


def test_a_post_that_was_reserved_by_hand_is_put_back(server_bench: Bench) -> None:
    server_bench.store.ensure_posts(["default"])
    server_bench.sql("UPDATE qd_jobs SET lane = 1, reserved_by = 'x' WHERE unique_key = 'qd.post:0'")
    assert server_bench.store.ensure_posts(["default"]) == 1
    assert server_bench.one("SELECT lane FROM qd_jobs WHERE unique_key = 'qd.post:0'") == 0


def test_a_users_job_that_bears_a_posts_key_is_left_alone(server_bench: Bench) -> None:
    (job_id,) = server_bench.add(1, unique_key="qd.post:0")
    assert server_bench.store.ensure_posts(["default"]) == 3
    assert server_bench.row(job_id, "type", "lane", "priority") == ("noop", 0, 2)


def test_sqlite_needs_no_posts(bench: Bench) -> None:
    assert bench.store.ensure_posts(["default"]) == (0 if bench.kind == "sqlite" else 4)


def test_a_daemon_is_shown_while_it_is_seen_and_forgotten_after_a_day(bench: Bench) -> None:
    daemon = DaemonRow("one", "höst", 4711, "1.0", ("default", "mails"), ("send", "noop"))
    bench.store.announce(daemon)
    bench.store.announce(DaemonRow("two", "host", 1, "1.0", (), ()))
    bench.store.announce(daemon)
    shown = {row.id: row for row in bench.store.daemons()}
    assert set(shown) == {"one", "two"}
    assert (shown["one"].host, shown["one"].queues, shown["one"].types) == ("höst", daemon.queues, daemon.types)
    day = "NOW(6) - INTERVAL 2 DAY" if bench.server else "strftime('%Y-%m-%d %H:%M:%f', 'now', '-2 days')"
    bench.sql(f"UPDATE qd_daemons SET seen_at = {day} WHERE id = 'two'")
    bench.store.announce(daemon)
    assert bench.sql("SELECT id FROM qd_daemons") == [("one",)]
    bench.store.withdraw("one")
    assert bench.store.daemons() == []


def test_a_daemons_start_is_that_of_its_process(bench: Bench) -> None:
    bench.store.announce(DaemonRow("one", "h", 1, "1", (), ()), 3 * 3600.0)
    (row,) = bench.store.daemons()
    assert row.started_at is not None and row.seen_at is not None
    assert (row.seen_at - row.started_at).total_seconds() == pytest.approx(3 * 3600, abs=0.01)


def test_a_daemons_start_is_kept_by_its_later_signs_of_life(bench: Bench) -> None:
    bench.store.announce(DaemonRow("one", "h", 1, "1", (), ()))
    day = "NOW(6) - INTERVAL 1 DAY" if bench.server else "strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 days')"
    bench.sql(f"UPDATE qd_daemons SET started_at = {day}")
    bench.store.announce(DaemonRow("one", "h", 1, "1", (), ()))
    (row,) = bench.store.daemons()
    assert row.started_at is not None and row.seen_at is not None
    assert (row.seen_at - row.started_at).total_seconds() > 86_000


def _buried(bench: Bench, count: int, *, ago: int = 0) -> None:
    bench.add(count)
    bench.store.settle([ended(job, Action.BURY) for job in bench.claim(count)])
    if ago:
        past = f"NOW(6) - INTERVAL {ago} SECOND" if bench.server else f"strftime('%Y-%m-%d %H:%M:%f', 'now', '-{ago} seconds')"  # noqa: E501  # fmt: skip
        bench.sql(f"UPDATE qd_failed_jobs SET failed_at = {past}")


def test_the_purge_takes_old_dead_letters_a_bounded_number_at_once(bench: Bench) -> None:
    _buried(bench, 7, ago=3600)
    _buried(bench, 2)
    assert [bench.store.purge_failed(1800.0, 5) for _ in range(3)] == [5, 2, 0]
    assert bench.dead() == 2


def test_the_purge_leaves_what_was_retried_between_its_look_and_its_act(bench: Bench) -> None:
    _buried(bench, 3, ago=3600)
    job_id = bench.one("SELECT MIN(job_id) FROM qd_failed_jobs")
    assert bench.store.retry_failed(job_id) == job_id
    assert bench.store.purge_failed(1800.0, 10) == 2
    assert bench.row(job_id, "lane", "attempts") == (0, 0)
