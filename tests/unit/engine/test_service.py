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
