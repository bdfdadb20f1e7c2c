"""The thread around a service survives whatever its rounds raise, and keeps its pulse."""

from __future__ import annotations

import contextlib

import pytest

from qd.backoff import Backoff
from qd.errors import ConnectionLost, LockWait, StoreError, TransactionFailed
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


class Dear(Rounds):
    """A duty whose failures take seconds of a clock that is moved by hand."""

    def __init__(self, takes: float, *raised: Exception) -> None:
        super().__init__(*raised)
        self.takes, self.now = takes, 1000.0

    def clock(self) -> float:
        return self.now

    def run_once(self) -> float:
        self.now += self.takes if self.raised else 0.0
        return super().run_once()


def test_a_duty_that_fails_does_not_cost_the_others_theirs() -> None:
    first, second = Rounds(*[ConnectionLost("away")] * 1_000_000), Rounds()
    duties = Duties([first, second], lambda: None)

    def done() -> int:
        with contextlib.suppress(ConnectionLost):
            duties.run_once()
        return second.done

    wait_for(lambda: done() > 3, 10, "the other duty to have its turns")
    first.raised.clear()
    wait_for(lambda: done() and first.done, 5, "the failed duty to have its turn")


def test_a_turn_is_one_duty_so_that_it_lasts_no_longer_than_its_statements_may() -> None:
    services = [Rounds(), Rounds(), Rounds()]
    duties = Duties(services, lambda: None)
    duties.run_once()
    assert sum(service.done for service in services) == 1
    duties.run_once()
    duties.run_once()
    assert [service.done for service in services] == [1, 1, 1]


@pytest.mark.parametrize(("takes", "wait"), [(0.7, 30.0), (0.55, 27.5), (16.0, 30.0)])
def test_a_duty_that_fails_late_waits_in_proportion_up_to_half_a_minute(takes: float, wait: float) -> None:
    duty = Dear(takes, *[TransactionFailed("max_statement_time exceeded", 1969)] * 2)
    duties = Duties([duty], lambda: None, duty.clock)
    with pytest.raises(TransactionFailed):
        duties.run_once()
    assert duties.run_once() == pytest.approx(wait) and len(duty.raised) == 1
    duty.now += wait
    with pytest.raises(TransactionFailed):
        duties.run_once()


@pytest.mark.parametrize(
    ("takes", "error"),
    [(16.0, LockWait("a lock", 1205)), (20.0, ConnectionLost("cut", 2013)), (0.01, TransactionFailed("dead", 1213))],
)
def test_a_duty_that_waited_for_a_lock_or_a_server_or_failed_at_once_has_its_turn_again_soon(
    takes: float, error: StoreError
) -> None:
    duty = Dear(takes, error)
    duties = Duties([duty], lambda: None, duty.clock)
    with pytest.raises(StoreError):
        duties.run_once()
    duties.run_once()
    assert duty.done == 1


def test_a_broken_promise_is_overdue_until_the_next_beat() -> None:
    pulse = Pulse("loop", within=0.0)
    wait_for(pulse.overdue, 2, "the promise to be broken")
    pulse.beat(60)
    assert pulse.overdue() == 0.0
