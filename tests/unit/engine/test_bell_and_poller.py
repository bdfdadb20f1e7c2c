"""Waking idle threads: one for each queue with work, and one poller that looks for all."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from qd.bell import Bell, Waiter
from qd.config.model import PollConfig
from qd.errors import StoreError
from qd.poller import UNASKED, Poller
from qd.setback import Setback
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


class Clock:
    """Seconds that go on by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Looking:
    """A poller with a bell, and the store that it looks into."""

    def __init__(self) -> None:
        self.store, self.bell, self.clock, self.grown = FakeStore(), Bell(), Clock(), cast("list[set[str]]", [])
        self.poller = Poller(cast(Any, self.store), ["a"], self.bell, PollConfig(), self.grown.append, clock=self.clock)

    def somebody_waits(self) -> None:
        Sleeper(self.bell, "a")
        wait_for(self.bell.idle, 5, "it to wait")

    def rounds(self, number: int) -> list[float]:
        """That many, each after the pause that the one before it asked for."""
        pauses = []
        for _ in range(number):
            pauses.append(self.poller.run_once())
            self.clock.now += pauses[-1]
        return pauses


def test_looks_are_rare_while_nobody_waits() -> None:
    looking = Looking()
    begun = looking.clock.now
    looking.rounds(300)
    assert len(looking.store.looks) <= 1 + (looking.clock.now - begun) / UNASKED


def test_empty_looks_become_rarer_up_to_the_configured_pause() -> None:
    looking = Looking()
    looking.somebody_waits()
    pauses = looking.rounds(15)
    assert pauses == sorted(pauses) and pauses[-1] == 0.25
    assert looking.store.looks == [False] * 15


def test_work_that_nobody_is_free_for_asks_the_pools_to_grow() -> None:
    looking = Looking()
    looking.store.hits = {"a": {2: SPOT}}
    looking.rounds(1)
    assert looking.grown == [{"a"}]


def test_what_a_full_look_has_just_seen_is_not_asked_again_at_once() -> None:
    looking = Looking()
    looking.somebody_waits()
    looking.rounds(15)
    looking.clock.now += 0.1
    looking.poller.heed(Look({}, frozenset(), SPOT.due))
    looking.clock.now += 0.1
    looked = len(looking.store.looks)
    assert looking.poller.run_once() == pytest.approx(0.15)
    assert len(looking.store.looks) == looked
    looking.clock.now += 0.15
    looking.poller.run_once()
    assert len(looking.store.looks) == looked + 1


def test_after_a_look_that_failed_the_next_is_its_own_whatever_full_looks_have_seen() -> None:
    looking = Looking()
    setback = Setback(clock=looking.clock)
    poll = PollConfig(max="5s")  # type: ignore[arg-type]
    store = Failing()
    poller = Poller(cast(Any, store), ["a"], looking.bell, poll, looking.grown.append, None, setback, looking.clock)
    store.fails = True
    with pytest.raises(StoreError):
        poller.run_once()
    store.fails = False
    poller.heed(Look({}, frozenset(), SPOT.due))
    looking.clock.now += 0.05
    poller.run_once()
    assert store.looks == [False] and setback.seconds() == 0.0


class Failing(FakeStore):
    fails = False

    def look(self, queues: Any, *, full: bool) -> Look:
        if self.fails:
            raise StoreError("no")
        return super().look(queues, full=full)


def test_what_a_full_look_finds_wakes_who_waits() -> None:
    looking = Looking()
    sleeper = Sleeper(looking.bell, "a")
    wait_for(looking.bell.idle, 5, "it to wait")
    looking.poller.heed(Look({"a": {2: SPOT}}, frozenset(), SPOT.due))
    wait_for(lambda: sleeper.got, 5, "it to wake")
