"""WATCHDOG=1 is sent in time while every loop keeps its deadline, and only then."""

from __future__ import annotations

from typing import cast

import pytest

from qd.daemon import watchdog
from qd.daemon.notify import Notifier
from qd.daemon.watchdog import Overdue, Proof, Watchdog
from qd.events import Event, Events
from qd.pulse import Pulse


class Clock:
    """Time that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Sent:
    """Stands for the way to systemd: when WATCHDOG=1 was sent."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.times = clock, list[float]()

    def watchdog(self) -> None:
        self.times.append(self._clock.now)


class Loop:
    """A loop that is as late as the test says."""

    def __init__(self, name: str, late: float = 0.0) -> None:
        self.name, self.late = name, late

    def overdue(self) -> float:
        return self.late


class Bench:
    """A watchdog with a clock, loops and ears."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, period: float, *loops: Loop) -> None:
        self.clock, self.heard = Clock(), list[Event]()
        monkeypatch.setattr(watchdog, "monotonic", self.clock)
        self.sent = Sent(self.clock)
        proof = Proof(lambda: cast("list[Pulse]", list(loops)))
        self.shown = 0
        self.watchdog = Watchdog(cast(Notifier, self.sent), proof, Events(self.heard.append), period, self.show)

    def show(self) -> None:
        self.shown += 1

    def live(self, seconds: float) -> None:
        """The main loop turns whenever the watchdog is due."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now += self.watchdog.wait() + 0.001
            self.watchdog.turn()

    def lines(self) -> list[tuple[str, float]]:
        """What was said of withheld ones."""
        return [(event.loop, event.overdue) for event in self.heard]  # type: ignore[attr-defined]


@pytest.mark.parametrize("period", [0.15, 0.5, 2.0, 30.0])
def test_never_over_half_of_the_period_apart_nor_more_than_ten_a_second(
    monkeypatch: pytest.MonkeyPatch, period: float
) -> None:
    bench = Bench(monkeypatch, period, Loop("keeper"))
    bench.live(10 * period)
    gaps = [later - earlier for earlier, later in zip(bench.sent.times, bench.sent.times[1:], strict=False)]
    assert max(gaps) <= period / 2 + 0.002
    assert period < 0.2 or min(gaps) >= 0.1


def test_a_loop_that_is_overdue_stops_it_and_is_named_once_with_all_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Loop("poller")
    bench = Bench(monkeypatch, 2.0, Loop("keeper"), slow)
    bench.live(2)
    slow.late, sent = 0.7, len(bench.sent.times)
    bench.live(6)
    assert len(bench.sent.times) == sent
    assert bench.lines() == [("poller", 0.7)] and bench.shown == 1


def test_it_is_fed_again_when_the_loop_is_back_and_said_anew_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Loop("poller", 1.0)
    bench = Bench(monkeypatch, 2.0, slow)
    bench.live(2)
    slow.late = 0.0
    bench.live(2)
    assert bench.sent.times
    slow.late = 3.0
    bench.live(2)
    assert bench.lines() == [("poller", 1.0), ("poller", 3.0)]


def test_a_stall_of_the_whole_process_is_no_loops_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop("keeper")
    bench = Bench(monkeypatch, 2.0, loop)
    bench.live(2)
    bench.clock.now, loop.late, sent = bench.clock.now + 30, 25.0, len(bench.sent.times)
    bench.watchdog.turn()
    assert len(bench.sent.times) == sent + 1 and not bench.lines()
    bench.clock.now += 30
    bench.watchdog.turn()
    assert len(bench.sent.times) == sent + 1 and bench.lines() == [("keeper", 25.0)]


def test_without_a_watchdog_nothing_is_sent_but_a_hanging_loop_is_still_said(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, 0.0, Loop("sampler", 4.0))
    bench.live(5)
    assert not bench.sent.times and bench.lines() == [("sampler", 4.0)] and bench.shown == 1


def test_the_loop_furthest_behind_is_named() -> None:
    loops = [Loop("keeper", 0.0), Loop("poller", 2.0), Loop("sweep", 9.0), Loop("sampler", 1.0)]
    assert Proof(lambda: cast("list[Pulse]", loops)).worst() == Overdue("sweep", 9.0)


def test_loops_that_keep_their_deadline_are_no_news() -> None:
    assert Proof(lambda: [Pulse("keeper", 60.0)]).worst() is None
    assert Proof(list).worst() is None
