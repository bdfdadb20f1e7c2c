"""The thread around a service survives whatever its rounds raise, and keeps its pulse."""

from __future__ import annotations

import contextlib

from qd.backoff import Backoff
from qd.errors import ConnectionLost
from qd.events import Problem
from qd.maintenance.duties import Duties
from qd.maintenance.service import ServiceThread
from qd.pulse import Pulse
from tests.support.waiting import wait_for
from tests.unit.engine.fakes import listening


class Places:
    """A service that waits at a place of its own, which is broken for a while."""

    name = "places"

    def __init__(self, *raised: Exception) -> None:
        self.raised, self.done, self.closed = list(raised), 0, False

    def run_once(self) -> float:
        self.done += 1
        return 0.001

    def wait(self, seconds: float) -> bool:
        if self.raised:
            raise self.raised.pop(0)
        return True

    def close(self) -> None:
        self.closed = True


class Rounds:
    """A service whose rounds raise what they are told to."""

    name = "rounds"

    def __init__(self, *raised: Exception) -> None:
        self.raised, self.done, self.closed = list(raised), 0, False

    def run_once(self) -> float:
        if self.raised:
            raise self.raised.pop(0)
        self.done += 1
        return 0.001

    def close(self) -> None:
        self.closed = True


def test_a_service_goes_on_after_the_database_was_away_and_after_a_bug() -> None:
    events, heard = listening()
    service = Rounds(ConnectionLost("away"), KeyError("a bug"))
    thread = ServiceThread(service, events, patience=5.0)
    thread.start()
    wait_for(lambda: service.done > 3, 10, "rounds after the failures")
    assert thread.pulse.overdue() == 0.0
    assert [event for event in heard if isinstance(event, Problem)] == [Problem("rounds", "KeyError: 'a bug'")]
    thread.stop()
    assert thread.join(5) and service.closed


def test_a_bug_delays_the_next_round_no_longer_than_an_outage_would() -> None:
    events, _ = listening()
    service = Rounds(*[KeyError("a bug")] * 5)
    thread = ServiceThread(service, events, patience=5.0, away=Backoff(base=0.01, factor=1.0))
    thread.start()
    wait_for(lambda: service.done, 4, "a round after five bugs")
    thread.stop()
    assert thread.join(5)


def test_a_service_whose_wait_fails_goes_on_and_is_told_of() -> None:
    events, heard = listening()
    service = Places(ValueError("filedescriptor out of range in select()"), ConnectionLost("away"))
    thread = ServiceThread(service, events, patience=5.0)
    thread.start()
    wait_for(lambda: service.done > 4, 10, "rounds after the failures")
    assert thread.pulse.overdue() == 0.0
    assert heard == [Problem("places", "ValueError: filedescriptor out of range in select()")]
    thread.stop()
    assert thread.join(5) and service.closed


def test_a_service_that_can_never_wait_is_no_hot_loop() -> None:
    events, _ = listening()
    service = Places(*[ValueError("broken")] * 10_000)
    away = Backoff(base=30.0, factor=1.0)
    thread = ServiceThread(service, events, patience=5.0, away=away)
    thread.start()
    wait_for(lambda: len(service.raised) < 10_000, 10, "the first wait")
    thread.stop()
    assert thread.join(5) and service.done == 1


def test_who_was_never_started_has_ended() -> None:
    thread = ServiceThread(Rounds(), listening()[0], patience=5.0)
    thread.stop()
    assert thread.join(0) and not thread.alive()


def test_a_database_that_is_away_at_the_end_is_no_bug() -> None:
    class Last(Rounds):
        def close(self) -> None:
            super().close()
            raise ConnectionLost("away")

    events, heard = listening()
    service = Last()
    thread = ServiceThread(service, events, patience=5.0)
    thread.start()
    thread.stop()
    assert thread.join(5) and service.closed and heard == []


def test_a_duty_that_fails_does_not_cost_the_others_theirs() -> None:
    first, second = Rounds(ConnectionLost("away")), Rounds()
    duties = Duties([first, second], lambda: None)
    with contextlib.suppress(ConnectionLost):
        duties.run_once()
    assert second.done == 1
    wait_for(lambda: duties.run_once() and first.done, 5, "the failed duty to have its turn")


def test_a_broken_promise_is_overdue_until_the_next_beat() -> None:
    pulse = Pulse("loop", within=0.0)
    wait_for(pulse.overdue, 2, "the promise to be broken")
    pulse.beat(60)
    assert pulse.overdue() == 0.0
