"""A stop is bounded, can be hurried, and takes all engines at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import pytest

from qd.clock import monotonic
from qd.config.model import Config
from qd.daemon import stop as stop_module
from qd.daemon.stop import Stop
from tests.support.waiting import wait_for
from tests.unit.daemon.fakes import FakeEngine, Heard, Made, setup_of

if TYPE_CHECKING:
    from qd.daemon.engine import Engine


def engines(count: int) -> list[FakeEngine]:
    made, setup = Made(), setup_of(Config())
    for _ in range(count):
        made(setup.config, setup.registry, setup.database, Heard().events)
    return made


def begin(of: list[FakeEngine], grace: float, wake: threading.Event | None = None) -> Stop:
    return Stop(cast("list[Engine]", of), grace, (wake or threading.Event()).set)


def test_idle_engines_stop_at_once_and_say_so() -> None:
    two, woken = engines(2), threading.Event()
    stop = begin(two, 60.0, woken)
    assert woken.wait(5)
    wait_for(stop.over, 5, "the end of the stop")
    assert stop.unfinished() == 0 and [engine.did for engine in two] == [["retire", "stop", "stopped"]] * 2


def test_all_engines_are_told_to_claim_no_more_before_one_is_waited_for() -> None:
    two = engines(2)
    two[0].jobs = 1
    stop = begin(two, 60.0)
    assert all(engine.retired for engine in two) and not stop.over()
    two[0].jobs = 0
    wait_for(stop.over, 5, "the end of the stop")


def test_running_jobs_are_waited_for_until_the_end_of_the_grace() -> None:
    one = engines(1)
    one[0].jobs = 1
    stop = begin(one, 0.2)
    assert not stop.over() and stop.left() > 0.2
    wait_for(stop.over, 5, "the end of the grace")
    assert monotonic() >= stop.began + 0.2


def test_a_second_request_leaves_running_jobs_only_a_moment() -> None:
    one = engines(1)
    one[0].jobs = 1
    stop = begin(one, 3600.0)
    stop.hurry()
    assert stop.deadline <= monotonic() + 1.0
    wait_for(stop.over, 5, "the end of the hurried stop")
    assert "hurry" in one[0].did


def test_a_request_late_in_the_grace_gives_no_time_back() -> None:
    one = engines(1)
    stop = begin(one, 0.1)
    deadline = stop.deadline
    stop.hurry()
    assert stop.deadline == deadline


def test_an_engine_that_breaks_its_promise_does_not_keep_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_module, "BOUND", 0.1)
    one = engines(1)
    one[0].hangs = True
    stop = begin(one, 0.1)
    wait_for(stop.over, 5, "the bound of the stop")
    assert stop.unfinished() == 1
    one[0].hangs = False


def test_nothing_to_stop_is_over_at_once() -> None:
    assert begin([], 3600.0).over()
