"""A log that can't be written must not stop the work."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from qd.clock import monotonic
from qd.log.sink import Sink

Ends = tuple[int, int]


@pytest.fixture(params=["pipe", "socket", "pipe that can't be opened again"])
def ends(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    """A reading and a writing end of each kind that stderr may be."""
    reading, writing = os.pipe() if request.param != "socket" else (each.detach() for each in socket.socketpair())
    if "again" in request.param:
        monkeypatch.setattr(os, "open", refuse)
    yield reading, writing
    for fd in (reading, writing):
        with suppress(OSError):  # closed by the test
            os.close(fd)


def refuse(*args: object) -> int:
    """What another user's pipe does."""
    raise PermissionError


def empty(fd: int) -> None:
    """Reads all there is."""
    while select.select([fd], [], [], 0)[0]:
        os.read(fd, 1 << 20)


def test_a_closed_other_end_is_counted_and_not_raised(ends: Ends) -> None:
    sink = Sink(ends[1])
    os.close(ends[0])
    sink.write("line")
    sink.write("line")
    assert sink.dropped == 2


def test_a_closed_descriptor_is_counted_and_not_raised() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    sink = Sink(writing)
    sink.write("line")
    assert sink.dropped == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_counted_and_not_raised() -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    sink = Sink(fd)
    sink.write("line")
    assert sink.dropped == 1
    os.close(fd)


@pytest.mark.parametrize("size", [100, 10_000])
def test_a_reader_that_has_stopped_delays_one_line_and_no_other(ends: Ends, size: int) -> None:
    sink = Sink(ends[1], patience=0.05)
    began = monotonic()
    for number in range(5000):
        sink.write(f"{number} " + "x" * size)
    assert sink.dropped > 100 and monotonic() - began < 30
    empty(ends[0])
    before = sink.dropped
    sink.write("back again")
    assert os.read(ends[0], 100).endswith(b"back again\n") and sink.dropped == before
    sink.close()


def test_a_slow_reader_gets_every_line(ends: Ends) -> None:
    sink = Sink(ends[1], patience=30)
    received = bytearray()

    def read() -> None:
        while not received.endswith(b"last\n"):
            received.extend(os.read(ends[0], 1000))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(2000):
        sink.write(f"{number} " + "x" * 300)
    sink.write("last")
    reader.join()
    assert [line.split(b" ")[0] for line in received.splitlines()[:-1]] == [b"%d" % n for n in range(2000)]
    assert sink.dropped == 0
    sink.close()


def test_a_line_that_was_torn_ends_before_the_next(ends: Ends) -> None:
    sink = Sink(ends[1], patience=0.05)
    sink.write("x" * 10_000_000)
    assert sink.dropped == 1
    empty(ends[0])
    sink.write("whole")
    assert os.read(ends[0], 100) == b"\nwhole\n"
    sink.write("and whole")
    assert os.read(ends[0], 100) == b"and whole\n"
    sink.close()


def test_the_descriptor_stays_blocking_for_those_who_share_it(ends: Ends) -> None:
    sink = Sink(ends[1])
    sink.write("line")
    assert os.get_blocking(ends[1])
    sink.close()


def test_a_lone_surrogate_does_not_cost_the_line(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        sink = Sink(file.fileno())
        sink.write("a\udcffb")
    assert (tmp_path / "log").read_text() == "a\\udcffb\n" and sink.dropped == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_writing_in_a_forked_child_needs_no_lock_of_the_parent(tmp_path: Path) -> None:
    path = tmp_path / "log"
    fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    sink = Sink(fd)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            sink.write("parent")

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(20):
        pid = os.fork()
        if pid == 0:
            sink.write("child")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    stop.set()
    thread.join()
    os.close(fd)
    assert path.read_text().splitlines().count("child") == 20
