"""Which setbacks come to a standstill, what is said of it, and who goes on with it after a reload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from qd.config.model import WorkerConfig
from qd.daemon.tender import Tender
from qd.events import ClaimsResumed, ClaimsStalled, Problem
from qd.gate import Gate
from qd.pool import WorkerPool
from qd.setback import LASTING, Setback
from tests.unit.engine.fakes import Heard, listening
from tests.unit.engine.test_setback import Clock


@dataclass
class OneThread:
    """As much of a worker as its pool asks for."""

    setback: Setback
    state: str = "idle"
    dismissed: bool = False
    alive: bool = True
    thread: Any = field(init=False)

    def __post_init__(self) -> None:
        self.thread = SimpleNamespace(is_alive=lambda: self.alive)
        self.runner = SimpleNamespace(attempt=None)
        self.idle_since = float("inf")


class Floor:
    """Pools of such threads, their tender, and a clock that goes on by hand."""

    def __init__(self, *sizes: int) -> None:
        self.clock, self.gate, self.up = Clock(), Gate(), True
        self.events, self.heard = listening()
        self.pools = [self._pool(f"pool{number}", size) for number, size in enumerate(sizes)]
        self.tender = self.new_tender()

    def new_tender(self) -> Tender:
        tender = Tender(self.pools, self.events, lambda: self.up, lambda: self.gate.closed)
        tender.looking = Setback(self.clock)
        return tender

    def _pool(self, name: str, size: int) -> WorkerPool:
        shop = SimpleNamespace(gate=self.gate, events=self.events)
        pool = WorkerPool(WorkerConfig(name=name, threads=size), cast(Any, None), cast(Any, shop))
        pool._workers = cast(Any, [OneThread(Setback(self.clock)) for _ in range(size)])
        return pool

    def threads(self, pool: int = 0) -> list[OneThread]:
        return cast("list[OneThread]", self.pools[pool]._workers)

    def pass_(self, seconds: float) -> None:
        self.clock.now += seconds

    def turn(self, times: int = 1) -> str | None:
        for _ in range(times):
            self.tender.run_once()
        return self.tender.standstill()


def told(heard: Heard) -> list[type]:
    return [type(event) for event in heard]


def test_a_standstill_of_any_pool_is_said_once_and_so_is_its_end() -> None:
    floor = Floor(1, 2)
    for thread in floor.threads(1):
        thread.setback.met("a lock")
    floor.pass_(LASTING)
    assert floor.turn(3) == "worker pool1: nothing could be claimed for 10s: a lock"
    floor.threads(1)[0].setback.overcome()
    assert floor.turn(3) is None
    assert told(floor.heard) == [ClaimsStalled, ClaimsResumed]


def busy(thread: OneThread) -> None:
    thread.setback.overcome()
    thread.state = "busy"


def at_rest(thread: OneThread) -> None:
    thread.setback.overcome()


def failing(thread: OneThread) -> None:
    thread.setback.met("a lock")


def new(thread: OneThread) -> None:
    """Its first try is under way."""


def gone(thread: OneThread) -> None:
    thread.setback.met("a lock")
    thread.alive = False


def dismissed(thread: OneThread) -> None:
    thread.setback.met("a lock")
    thread.dismissed = True


@pytest.mark.parametrize(
    ("threads", "looks_fail", "stands"),
    [
        ([failing], False, True),
        ([failing, failing], False, True),
        ([failing, at_rest], False, False),
        ([failing, busy], False, True),  # nobody who wants to claim can
        ([failing, new], False, True),
        ([busy], False, False),
        ([busy], True, False),  # at work: it wants nothing
        ([at_rest], False, False),
        ([at_rest], True, True),
        ([at_rest, busy], True, True),
        ([new], False, False),
        ([gone, at_rest], False, False),
        ([gone], False, False),
        ([dismissed, at_rest], False, False),
    ],
)
def test_a_pool_stands_still_where_none_that_wants_to_claim_has_been_answered_for_a_while(
    threads: list[Callable[[OneThread], None]], looks_fail: bool, stands: bool
) -> None:
    floor = Floor(len(threads))
    for act, thread in zip(threads, floor.threads(), strict=True):
        act(thread)
    if looks_fail:
        floor.tender.looking.met("a lock")
    floor.pass_(LASTING)
    assert (floor.tender.standstill() is not None) == stands
    if stands:
        assert "nothing could be claimed for 10s: a lock" in (floor.tender.standstill() or "")


def test_where_threads_claim_what_they_find_failing_looks_are_no_standstill_and_said_once() -> None:
    floor = Floor(2)
    floor.tender.looking.met("max_statement_time exceeded")
    for _ in range(3):
        floor.pass_(LASTING)
        floor.threads()[0].setback.overcome()
        assert floor.turn() is None
    (said,) = floor.heard
    assert isinstance(said, Problem)
    assert (said.where, said.error) == ("poller", "idle threads aren't woken for 10s: max_statement_time exceeded")


def test_a_pool_that_rests_while_looks_fail_and_another_claims_is_told_of_in_words_of_its_own() -> None:
    floor = Floor(1, 1)
    floor.tender.looking.met("max_statement_time exceeded")
    floor.pass_(LASTING)
    floor.threads(0)[0].setback.overcome()
    floor.threads(1)[0].setback.overcome()
    assert floor.tender.standstill() is None
    floor.pass_(LASTING)
    floor.threads(0)[0].setback.overcome()
    assert floor.tender.standstill() == "worker pool1: idle threads aren't woken for 20s: max_statement_time exceeded"


@pytest.mark.parametrize("how", ["down", "closed"])
def test_nothing_is_told_while_the_database_is_down_or_nothing_is_to_be_claimed(how: str) -> None:
    floor = Floor(1)
    failing(floor.threads()[0])
    floor.pass_(LASTING)
    floor.up = how != "down"
    if how == "closed":
        floor.gate.close()
    floor.turn(3)
    assert told(floor.heard) == []


def test_who_takes_over_in_a_standstill_goes_on_with_it_until_it_has_claimed() -> None:
    floor = Floor(1)
    failing(floor.threads()[0])
    floor.pass_(LASTING)
    floor.turn()
    before, floor.tender = floor.tender, floor.new_tender()
    trouble = floor.tender.take_over(before)
    assert trouble is floor.threads()[0].setback
    successor = OneThread(Setback(floor.clock))
    successor.setback.take_over(trouble)
    floor.pools[0]._workers = cast(Any, [successor])
    floor.pass_(5)
    assert "for 15s: a lock" in (floor.turn(3) or "")
    successor.setback.overcome()
    floor.turn(3)
    assert told(floor.heard) == [ClaimsStalled, ClaimsResumed]


def test_who_takes_over_from_one_that_claims_begins_afresh() -> None:
    floor = Floor(2)
    failing(floor.threads()[0])
    at_rest(floor.threads()[1])
    floor.pass_(LASTING)
    assert floor.new_tender().take_over(floor.tender) is None
