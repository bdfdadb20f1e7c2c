"""What systemd is told arrives as systemd wants it, and never blocks the daemon."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qd.daemon.notify import Notifier


class Listener:
    """A notify socket as systemd has one."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.socket.settimeout(5)

    def next(self) -> str:
        """The next datagram."""
        return self.socket.recv(65536).decode()

    def rest(self) -> list[str]:
        """All datagrams that are there."""
        self.socket.setblocking(False)
        got = []
        while True:
            try:
                got.append(self.next())
            except BlockingIOError:
                self.socket.settimeout(5)
                return got


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    return str(tmp_path / "notify")


@pytest.fixture
def systemd(address: str) -> Iterator[Listener]:
    listener = Listener(address)
    yield listener
    listener.socket.close()


def test_ready_and_its_status_are_one_datagram(systemd: Listener) -> None:
    Notifier().ready("waiting for database")
    assert systemd.next() == "READY=1\nSTATUS=waiting for database"


def test_reloading_carries_the_moment_in_the_same_datagram(systemd: Listener) -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    Notifier().reloading()
    match = re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", systemd.next())
    assert match and before <= int(match[1]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def test_stopping_asks_for_the_time_that_the_stop_may_take(systemd: Listener) -> None:
    Notifier().stopping("stopping", 35.5)
    assert systemd.next() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=35500000\nSTATUS=stopping"


def test_a_status_is_ascii_and_one_line(systemd: Listener) -> None:
    Notifier().ready("Größe \U0001f4a5\nREADY=0")
    assert systemd.next() == "READY=1\nSTATUS=Gr??e ? READY=0"


def test_a_status_that_is_cut_says_so(systemd: Listener) -> None:
    Notifier().ready("ready, " + "x" * 500)
    status = systemd.next().removeprefix("READY=1\nSTATUS=")
    assert len(status) == 200 and status.startswith("ready, x") and status.endswith("x ...")


def test_an_unchanged_status_is_not_told_again(systemd: Listener) -> None:
    notifier = Notifier()
    for status in ("3 jobs running", "3 jobs running", "4 jobs running"):
        notifier.status(status)
    assert systemd.rest() == ["STATUS=3 jobs running", "STATUS=4 jobs running"]


def test_watchdog_is_a_datagram_of_its_own(systemd: Listener) -> None:
    Notifier().watchdog()
    assert systemd.rest() == ["WATCHDOG=1"]


def test_an_abstract_socket_is_reached(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"@qd-test-{os.getpid()}"
    listener = Listener(name)
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    Notifier().ready("up")
    assert listener.next() == "READY=1\nSTATUS=up"
    listener.socket.close()


def test_without_a_socket_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notifier = Notifier()
    notifier.ready("up")
    notifier.watchdog()


def test_a_socket_that_nobody_listens_at_is_as_none(address: str) -> None:
    Notifier().ready("up")


def test_a_listener_with_a_full_queue_blocks_nobody_and_misses_nothing(systemd: Listener) -> None:
    notifier = Notifier()
    for number in range(40):  # net.unix.max_dgram_qlen is 10 by default
        notifier.ready(f"ready {number}")
        notifier.watchdog()
    got: list[str] = []
    for _ in range(40):
        got += systemd.rest()
        notifier.flush()
    assert [line for line in got if "READY" in line] == [f"READY=1\nSTATUS=ready {number}" for number in range(40)]


def test_a_socket_that_systemd_made_anew_is_found_again(systemd: Listener, address: str) -> None:
    notifier = Notifier()
    systemd.socket.close()
    os.unlink(address)
    again = Listener(address)
    notifier.ready("still here")
    assert again.next() == "READY=1\nSTATUS=still here"
    again.socket.close()


def test_a_forked_child_tells_systemd_nothing(systemd: Listener) -> None:
    notifier = Notifier()
    child = os.fork()
    if child == 0:
        notifier.ready("I am a child")
        os._exit(0)
    os.waitpid(child, 0)
    assert systemd.rest() == []


@pytest.mark.parametrize(
    ("usec", "pid", "period"),
    [
        ("2000000", "", 2000000),
        ("2000000", "ours", 2000000),
        ("2000000", "1", 0),
        ("", "", 0),
        ("-1", "", 0),
        ("soon", "", 0),
    ],
)
def test_the_watchdogs_period_counts_only_if_it_is_meant_for_this_process(
    address: str, monkeypatch: pytest.MonkeyPatch, usec: str, pid: str, period: int
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "ours" else pid)
    assert Notifier().watchdog_usec == period
