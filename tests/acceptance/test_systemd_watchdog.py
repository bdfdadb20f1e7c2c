"""The watchdog of a real systemd: who is killed by it, who isn't, and where every thread was then."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from qd.clock import monotonic
from tests.support.mariadb import MariaDB
from tests.support.unit import Unit
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
Units = Callable[..., Unit]

PERIOD = 4.0
"""Seconds of the watchdog here; the units' own is a minute."""


def watched(unit: Unit) -> Unit:
    """Starts it with a watchdog of PERIOD."""
    unit.drop_in("watchdog", WatchdogSec=f"{PERIOD:g}s")
    unit.control("start")
    return unit


ABORTED, FAULTED = "status=6/ABRT", "status=11/SEGV"
"""How one ends that the watchdog has aborted. Its faulthandler walks the frames of threads that don't stand still:
those of a frozen process run again once systemd has let it go on, and a frame that goes meanwhile may be read as it
goes. Then it is a fault that ends the process, and the stacks end there. Where one hangs, the others run as ever. Only
where the interpreter's lock is held all others wait for it."""


def killed_by_the_watchdog(unit: Unit, pid: int, *, still: bool = False) -> str:
    """That process ended by it, and another works; which of the two ends it was.

    Args:
        still: its threads stood still, so that it can't have faulted.
    """
    unit.wait_restarted(1, 30)
    assert unit.pid() not in (0, pid)
    about = [line.text for line in unit.journal("_PID=1")]
    assert any("Watchdog timeout" in text for text in about), about
    ends = [end for end in (ABORTED, FAULTED) if any(end in text for text in about)]
    assert ends == [ABORTED] or (ends == [FAULTED] and not still), about
    (job,) = unit.enqueue("nap", seconds=0)
    wait_for(lambda: unit.ran("end", job), 20, "a job to run")
    return ends[0]


def dumped(unit: Unit, pid: int) -> str:
    """The stacks that a process left when it was ended."""
    text = "\n".join(line.text for line in unit.journal(f"_PID={pid}"))
    return text.partition("Fatal Python error: Aborted")[2]


def all_stacks(unit: Unit, pid: int, threads: int, file: str, end: str) -> bool:
    """Whether they are those of all threads, one of them in this file; of one that faulted at least one is there."""
    stacks = dumped(unit, pid)
    shown = len(re.findall(r"^(?:Thread|Current thread) 0x", stacks, re.MULTILINE))
    if end == FAULTED:
        return shown >= 1
    return shown == threads and all(
        f'/{name}", line ' in stacks for name in (file, "service.py", "worker.py", "http.py")
    )


def test_a_frozen_daemon_and_one_whose_interpreter_is_held_are_killed_show_all_stacks_and_come_back(
    unit: Units,
) -> None:
    frozen, held = watched(unit("frozen")), unit("held")
    held.write(handlers={"modules": ["tests.acceptance.hard_handlers"]})
    watched(held)
    pids = {one.name: (one.pid(), int(one.value("TasksCurrent"))) for one in (frozen, held)}
    held.enqueue("hold_interpreter", seconds=60)
    frozen.kill("STOP")
    for one, file in ((frozen, "supervisor.py"), (held, "hard_handlers.py")):
        pid, threads = pids[one.name]
        end = killed_by_the_watchdog(one, pid, still=one is held)
        assert all_stacks(one, pid, threads, file, end), dumped(one, pid)


def test_of_a_wedged_a_busy_and_a_cut_off_daemon_only_the_wedged_one_is_killed(
    unit: Units, own_mariadb: Callable[..., MariaDB]
) -> None:
    server = own_mariadb()
    cut_off, busy, wedged = watched(unit("cut-off", server)), watched(unit("busy")), watched(unit("wedged"))
    pids = {one.name: one.pid() for one in (cut_off, busy, wedged)}
    busy.enqueue("nap", seconds=60)
    busy.enqueue("spin", seconds=60)
    wedged.enqueue("freeze_a_loop")
    server.freeze()
    began = monotonic()
    (withheld,) = wait_for(lambda: wedged.lines("watchdog.withheld"), 40, "the loop to be noticed")
    assert "loop=poller" in withheld.text and withheld.priority == 3
    end = killed_by_the_watchdog(wedged, pids[wedged.name])
    named = [line.text for line in wedged.lines("daemon.stack_shown") if line.pid == pids[wedged.name]]
    assert any('thread="qd poller"' in text and " hang < " in text for text in named), named
    assert "in hang" in (stacks := dumped(wedged, pids[wedged.name])) or (end == FAULTED and "Thread 0x" in stacks)
    wait_for(lambda: monotonic() > began + 4 * PERIOD, 4 * PERIOD, "four periods of outage and work")
    for one in (cut_off, busy):
        shown = one.machine.show(one.name, "ActiveState", "NRestarts", "MainPID")
        assert shown == {"ActiveState": "active", "NRestarts": "0", "MainPID": str(pids[one.name])}
    assert cut_off.lines("database.lost") and busy.ran("start") and not busy.ran("end")
    server.thaw()
