"""What a daemon's count tells apart: its own queues; all others are added up, and a few are named."""

from __future__ import annotations

from collections.abc import Iterator

from qd.outcome import Action
from qd.store.protocol import Count, QueueDepth
from tests.contract.bench import Bench, ended


def filled(bench: Bench) -> Iterator[QueueDepth]:
    """Three queues, two of which nobody knows; what each has."""
    bench.add(3, due=-30)
    bench.add(2, queue="mial", due=-60)
    bench.add(1, queue="mial", due=60)
    bench.add(4, queue="ab", due=-10)
    bench.add(1, queue="ab", lane=2)
    stale, dead = bench.claim(2, queue="ab")
    bench.shift(stale.id, -5)
    bench.store.settle([ended(dead, Action.BURY)])
    bench.store.pause("ab")
    yield from bench.store.depths()


def test_other_queues_are_added_up_state_by_state(bench: Bench) -> None:
    each = {depth.queue: depth for depth in filled(bench)}
    known = {depth.queue: depth for depth in bench.store.count(["default", "empty"]).depths}
    assert set(known) == {"default", "_other"}
    others = known["_other"]
    assert known["default"].ready == 3
    for state in ("ready", "delayed", "reserved", "stale", "failed", "blocked"):
        assert getattr(others, state) == getattr(each["mial"], state) + getattr(each["ab"], state)
    assert (others.ready, others.delayed, others.stale, others.failed, others.blocked) == (4, 1, 1, 1, 1)
    assert 59 < others.oldest_ready_age < 90
    assert not known["default"].paused


def others(bench: Bench, *known: str) -> QueueDepth:
    """What a daemon that knows these counts of all others."""
    (found,) = (depth for depth in bench.store.count(["default", *known]).depths if depth.queue == "_other")
    return found


def test_a_paused_queue_among_the_others_hides_none_that_has_jobs(bench: Bench) -> None:
    bench.add(1, queue="old", due=-3600)
    bench.store.pause("old")
    assert others(bench).paused, "nothing waits but where a person holds it back"
    assert 3599 < others(bench).oldest_ready_age < 3700
    bench.add(2, queue="mial", due=-60)
    assert (others(bench).ready, others(bench).paused) == (3, False)
    assert 59 < others(bench).oldest_ready_age < 90, "not that of what a person holds back"
    bench.sql("UPDATE qd_jobs SET available_at = '2038-01-01 00:00:00' WHERE queue = 'mial'")
    assert (others(bench).paused, others(bench).oldest_ready_age) == (False, 0.0), "it waits all the same"
    bench.store.pause("mial")
    assert others(bench).paused and others(bench).oldest_ready_age > 3599
    bench.store.resume("mial")
    bench.sql("DELETE FROM qd_jobs WHERE queue = 'mial'")
    assert others(bench).paused


def test_one_that_is_paused_and_empty_hides_none_and_known_ones_stay_themselves(bench: Bench) -> None:
    bench.store.pause("old")
    bench.store.pause("held")
    bench.store.resume("held")
    assert others(bench) == QueueDepth("_other", paused=True)
    bench.add(1, queue="mial", due=-60)
    bench.add(1, queue="held", due=-90)
    assert (others(bench).ready, others(bench).paused) == (2, False)
    counted = {depth.queue: depth for depth in bench.store.count(["default", "old", "held"]).depths}
    assert counted["old"] == QueueDepth("old", paused=True)
    assert (counted["_other"].ready, counted["_other"].paused) == (1, False)
    assert bench.store.count(["default"]).others == ("held", "mial")


def test_a_few_of_the_other_queues_that_have_jobs_are_named_and_no_others(bench: Bench) -> None:
    list(filled(bench))
    bench.store.ensure_posts(["default", "posts-only"])
    bench.store.pause("paused-only")
    assert bench.store.count(["default"]).others == ("ab", "mial")
    assert bench.store.count(["default", "ab", "mial"]).others == ()
    for number in range(30):
        bench.add(1, queue=f"b{number:02}", due=-5)
    assert bench.store.count(["default"]).others == ("ab", "b00", "mial"), "however many there are"


def test_a_database_without_jobs_has_nothing_to_add_up(bench: Bench) -> None:
    assert bench.store.count(["default"]) == Count([])
