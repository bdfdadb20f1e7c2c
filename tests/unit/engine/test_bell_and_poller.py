"""Waking idle threads: one for each queue with work, and one poller that looks for all."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from qd.bell import Bell, Waiter
from qd.config.model import PollConfig
from qd.poller import Poller, full_look_pause
from qd.sight import Sight
from qd.store.protocol import Look, Spot
from tests.support.waiting import wait_for
from tests.unit.engine.fakes import FakeStore

SPOT = Spot("2026-01-01 00:00:00.000000", 1)


def sight(*queues: str) -> Sight:
    return Sight(Look({queue: {2: SPOT} for queue in queues}, frozenset(), SPOT.due))


class Sleeper:
    """A thread that waits at the bell."""

    def __init__(self, bell: Bell, *queues: str) -> None:
        self.got: list[Sight | None] = []
        self.thread = threading.Thread(target=lambda: self.got.append(bell.wait(Waiter(queues), 10)), daemon=True)
        self.thread.start()


def test_one_thread_is_woken_for_a_queue_and_the_others_sleep_on() -> None:
    bell = Bell()
    sleepers = [Sleeper(bell, "a"), Sleeper(bell, "a"), Sleeper(bell, "b")]
    wait_for(lambda: len(bell._waiting) == 3, 5, "three to wait")
    assert bell.ring(sight("a")) == set()
    wait_for(lambda: sum(len(s.got) for s in sleepers) == 1, 5, "one to wake")
    assert len(bell._waiting) == 2
    bell.close()


def test_queues_that_nobody_is_free_for_are_named() -> None:
    bell = Bell()
    Sleeper(bell, "a")
    wait_for(bell.idle, 5, "it to wait")
    assert bell.ring(sight("a", "b")) == {"b"}


def test_closing_wakes_all_without_a_look_and_lets_nobody_wait_again() -> None:
    bell = Bell()
    sleeper = Sleeper(bell, "a")
    wait_for(bell.idle, 5, "it to wait")
    bell.close()
    wait_for(lambda: sleeper.got == [None], 5, "it to wake")
    late = Sleeper(bell, "a")
    wait_for(lambda: late.got == [None], 5, "one who comes later not to wait")


def poller(store: FakeStore, bell: Bell, grown: list[set[str]]) -> Poller:
    return Poller(cast(Any, store), ["a"], bell, PollConfig(), grown.append)


def test_nothing_is_asked_between_full_looks_while_nobody_waits() -> None:
    store = FakeStore()
    poll = poller(store, Bell(), [])
    for _ in range(5):
        poll.run_once()
    assert store.looks == [True]


def test_empty_looks_become_rarer_up_to_the_configured_pause() -> None:
    store, bell = FakeStore(), Bell()
    Sleeper(bell, "a")
    wait_for(bell.idle, 5, "it to wait")
    poll = poller(store, bell, [])
    bell.worked_at = -10.0
    pauses = [poll.run_once() for _ in range(15)]
    assert pauses == sorted(pauses) and pauses[-1] == 0.25
    assert store.looks.count(False) == 14


def test_work_that_nobody_is_free_for_asks_the_pools_to_grow() -> None:
    store, grown = FakeStore(), cast("list[set[str]]", [])
    store.hits = {"a": {2: SPOT}}
    poller(store, Bell(), grown).run_once()
    assert grown == [{"a"}]


@pytest.mark.parametrize(
    ("costs", "pause"), [((0.001, 0.0), 1.0), ((0.7, 0.001), 1.0), ((0.1, 0.2), 5.0), ((9.0, 9.0), 30.0)]
)
def test_full_looks_become_rarer_when_they_are_dear_twice_running(costs: tuple[float, float], pause: float) -> None:
    assert full_look_pause(*costs) == full_look_pause(*reversed(costs)) == pause


def test_the_first_full_look_which_opens_the_connection_puts_off_no_other() -> None:
    store = FakeStore()
    slow = threading.Event()
    quick, store.look = store.look, lambda *some, **more: (slow.wait(0.2), quick(*some, **more))[1]  # type: ignore[method-assign]
    poll = poller(store, Bell(), [])
    poll.run_once()
    wait_for(lambda: poll.run_once() and len(store.looks) == 2, 8, "the next full look")
