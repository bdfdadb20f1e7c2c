"""The full look holds up nothing, takes its share of the time and no more, and is missed aloud."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from qd.errors import ConnectionLost, LockWait, StoreError, TransactionFailed
from qd.events import LooksCutShort, LooksRestored
from qd.maintenance.full_look import FULL_LOOK_EVERY, FullLook
from qd.store.protocol import Look, Spot
from tests.unit.engine.fakes import FakeStore, listening

TOO_DEAR = TransactionFailed("max_statement_time exceeded", 1969)
SPOT = Spot("2026-01-01 00:00:00.000000", 1)


class Looks(FakeStore):
    """A store whose looks take what the test says, in seconds of a clock of its own, and fail if it says so."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.take, self.error = 1000.0, 0.001, cast("StoreError | None", None)
        self.hits = {"a": {2: SPOT}}
        self.found: list[Look] = []
        events, self.heard = listening()
        self.full = FullLook(cast(Any, self), ["a"], self.found.append, events, lambda: self.now)

    def look(self, queues: Sequence[str], *, full: bool) -> Look:
        self.now += self.take
        if self.error is not None:
            raise self.error
        return super().look(queues, full=full)


def test_what_it_sees_is_passed_on_and_while_it_is_cheap_it_comes_every_second() -> None:
    looks = Looks()
    assert [looks.full.run_once() for _ in range(3)] == [FULL_LOOK_EVERY] * 3
    assert looks.looks == [True] * 3 and len(looks.found) == 3 and looks.heard == []


def test_what_a_dear_one_saw_is_old_by_its_end_and_not_passed_on() -> None:
    looks = Looks()
    looks.take = 10.0
    looks.full.run_once()
    assert looks.looks == [True] and looks.found == []


@pytest.mark.parametrize("error", [TOO_DEAR, None], ids=["that its time limit ends", "that succeeds"])
def test_a_dear_one_comes_so_rarely_that_it_takes_2_percent_of_the_time(error: StoreError | None) -> None:
    looks = Looks()
    looks.take, looks.error = 1.1, error
    looks.full.run_once()
    assert [looks.full.run_once() for _ in range(3)] == pytest.approx([55.0] * 3)


def test_the_first_which_opens_the_connection_puts_off_no_other() -> None:
    looks = Looks()
    looks.take = 5.0
    assert looks.full.run_once() == FULL_LOOK_EVERY


def test_that_it_can_not_end_is_said_once_and_so_is_that_it_can_again() -> None:
    looks = Looks()
    looks.take, looks.error = 10.0, TOO_DEAR
    for _ in range(3):
        looks.full.run_once()
    looks.now += 500.0
    looks.take, looks.error = 0.001, None
    for _ in range(3):
        looks.full.run_once()
    assert looks.heard == [LooksCutShort(10.0, str(TOO_DEAR)), LooksRestored(pytest.approx(520.001))]


@pytest.mark.parametrize(
    ("take", "error", "unreachable"),
    [
        (16.0, TOO_DEAR, LockWait("the table", 1205)),
        (20.0, ConnectionLost("cut", 2013), None),
        (0.001, ConnectionLost("refused", 2003), None),
    ],
    ids=["locked", "cut", "away"],
)
def test_an_outage_is_no_matter_of_cost_and_after_it_looks_are_quick_again(
    take: float, error: StoreError, unreachable: StoreError | None
) -> None:
    looks = Looks()
    looks.full.run_once()
    looks.take, looks.error, looks.unreachable = take, error, unreachable
    for _ in range(3):
        with pytest.raises(StoreError):
            looks.full.run_once()
    looks.take, looks.error = 0.001, None
    assert looks.full.run_once() == FULL_LOOK_EVERY and looks.heard == []
