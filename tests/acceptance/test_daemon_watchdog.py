"""WATCHDOG=1 of a running daemon: never missing while all is well, missing when a loop stands still."""

from __future__ import annotations

import os
from itertools import pairwise

from qd.clock import monotonic
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB
from tests.support.waiting import wait_for

PERIOD = 2.0


def watched(qd: Qd) -> Daemon:
    """A daemon that systemd would kill after PERIOD seconds of silence."""
    return qd.start(watchdog_usec=int(PERIOD * 1e6))


def longest_gap(daemon: Daemon, since: float, seconds: float) -> float:
    """The longest silence from `since` on, watched for `seconds`."""
    wait_for(lambda: monotonic() >= since + seconds, seconds + 1, "the time to pass")
    times = [since, *[at for at in daemon.notify.times("WATCHDOG=1") if at > since], monotonic()]
    return max(later - earlier for earlier, later in pairwise(times))


def test_it_is_fed_in_time_and_not_in_a_hot_loop_while_idle(qd: Qd) -> None:
    daemon = watched(qd)
    began = monotonic()
    assert longest_gap(daemon, began, 4) <= PERIOD / 2
    assert len(daemon.notify.times("WATCHDOG=1")) <= 10 * (monotonic() - began + 1)
    assert all(text == "WATCHDOG=1" for text in daemon.notify.with_line("WATCHDOG=1"))


def test_handlers_that_keep_the_interpreter_busy_do_not_stop_it(qd: Qd) -> None:
    daemon = watched(qd)
    qd.enqueue("spin", 2, seconds=5)
    wait_for(lambda: len(qd.ran("start")) == 2, 10, "both handlers")
    assert longest_gap(daemon, monotonic(), 5) < PERIOD


def test_neither_a_long_handler_nor_an_outage_is_a_reason_to_withhold_it(frail: Qd) -> None:
    assert isinstance(frail.server, MariaDB)
    daemon = watched(frail)
    frail.enqueue("nap", seconds=14)
    wait_for(lambda: frail.ran("start"), 5, "the handler")
    frail.server.freeze()  # for longer than any loop's round may take
    assert longest_gap(daemon, monotonic(), 12) <= PERIOD / 2
    frail.server.thaw()
    frail.server.stop()
    assert longest_gap(daemon, monotonic(), 3) <= PERIOD / 2
    assert daemon.get("/livez")[0] == 200 and not daemon.lines("watchdog.withheld")


def test_it_goes_on_during_a_stop(qd: Qd) -> None:
    daemon = watched(qd)
    qd.enqueue("nap", seconds=5)
    wait_for(lambda: qd.ran("start"), 5, "the handler")
    began = monotonic()
    assert daemon.stop() == 0
    times = [began, *[at for at in daemon.notify.times("WATCHDOG=1") if at > began]]
    assert max(later - earlier for earlier, later in pairwise(times)) <= PERIOD / 2
    assert len(times) > 3


def test_a_loop_that_stands_still_stops_it_and_is_named_once(qd: Qd) -> None:
    daemon = watched(qd)
    qd.enqueue("freeze_a_loop")
    wait_for(lambda: daemon.lines("watchdog.withheld"), 40, "the loop to be noticed")
    status, text = daemon.get("/livez")
    assert status == 503 and "poller" in text
    last = daemon.notify.times("WATCHDOG=1")[-1]
    wait_for(lambda: monotonic() > last + 2 * PERIOD, 10, "two periods of silence")
    assert daemon.notify.times("WATCHDOG=1")[-1] == last
    (line,) = daemon.lines("watchdog.withheld")
    assert "poller" in line


def test_a_watchdog_that_is_meant_for_another_process_is_not_fed(qd: Qd) -> None:
    daemon = qd.start(watchdog_usec=500_000, OTHER_PID=str(os.getpid()))
    wait_for(lambda: daemon.notify.with_line("STATUS=ready"), 7, "a status")
    began = monotonic()
    wait_for(lambda: monotonic() > began + 2, 3, "two seconds")
    assert not daemon.notify.times("WATCHDOG=1")
