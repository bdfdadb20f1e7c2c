"""A standstill that is no outage: since when a loop gets nowhere, told only once it has lasted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from qd.bell import Bell
from qd.config.model import PollConfig
from qd.errors import TransactionFailed
from qd.poller import Poller
from qd.setback import LASTING, Setback
from qd.store.protocol import Look
from tests.unit.engine.fakes import FakeStore


class Clock:
    """Seconds that go on by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_setback_is_told_of_once_it_has_lasted_with_its_last_reason() -> None:
    clock = Clock()
    setback = Setback(clock)
    setback.met("a lock wait")
    clock.now += LASTING - 0.1
    assert setback.lasting() is None
    setback.met("the table is locked")
    clock.now += 0.1
    assert setback.lasting() == "nothing could be claimed for 10s: the table is locked"


def test_a_round_that_is_through_ends_it() -> None:
    clock = Clock()
    setback = Setback(clock)
    setback.met("a lock wait")
    clock.now += LASTING - 1
    setback.overcome()
    setback.met("another")
    clock.now += 2
    assert setback.lasting() is None


def test_a_poller_whose_looks_fail_has_a_setback_until_one_is_answered() -> None:
    clock = Clock()
    setback, failing = Setback(clock), [True]

    class Looking(FakeStore):
        def look(self, queues: Sequence[str], *, full: bool) -> Look:
            if failing:
                raise TransactionFailed("the table is locked")
            return super().look(queues, full=full)

    poller = Poller(cast(Any, Looking()), ["default"], Bell(), PollConfig(), lambda queues: None, setback=setback)
    with pytest.raises(TransactionFailed):
        poller.run_once()
    clock.now += LASTING
    assert "the table is locked" in (setback.lasting() or "")
    failing.clear()
    poller.run_once()
    assert setback.lasting() is None


def test_an_outage_is_no_setback_and_what_is_wrong_after_it_counts_from_its_end() -> None:
    clock, up = Clock(), list[bool]()
    setback = Setback(clock, lambda: bool(up))
    setback.met("the connection was lost")
    clock.now += 60
    setback.met("the server can't be reached")
    assert setback.lasting() is None
    up.append(True)
    setback.met("the table is locked")
    clock.now += LASTING - 0.1
    assert setback.lasting() is None
    clock.now += 0.1
    assert setback.lasting() == "nothing could be claimed for 10s: the table is locked"


def test_an_outage_ends_what_had_lasted_until_then() -> None:
    clock, up = Clock(), [True]
    setback = Setback(clock, lambda: bool(up))
    setback.met("the table is locked")
    clock.now += LASTING
    up.clear()
    setback.met("the connection was lost")
    up.append(True)
    assert setback.lasting() is None
