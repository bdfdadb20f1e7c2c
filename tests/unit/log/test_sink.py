"""A log that can't be written must not stop the work."""

from __future__ import annotations

import os
import select
import threading
from pathlib import Path

import pytest

from qd.clock import monotonic
from qd.log.sink import Sink


def test_a_closed_other_end_is_counted_and_not_raised() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    sink = Sink(writing)
    sink.write("line")
    os.close(writing)
    sink.write("line")
    assert sink.dropped == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_counted_and_not_raised() -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    sink = Sink(fd)
    sink.write("line")
    assert sink.dropped == 1
    os.close(fd)


def test_a_reader_that_has_stopped_delays_one_line_and_no_other() -> None:
    reading, writing = os.pipe()
    sink = Sink(writing, patience=0.05)
    began = monotonic()
    for number in range(2000):
        sink.write(f"{number} " + "x" * 1000)
    assert sink.dropped > 1800 and monotonic() - began < 30
    os.read(reading, 1 << 20)
    before = sink.dropped
    sink.write("back again")
    assert os.read(reading, 100).endswith(b"back again\n") and sink.dropped == before
    os.close(reading)
    os.close(writing)


def test_a_line_that_was_torn_ends_before_the_next() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    sink = Sink(writing, patience=0.05)
    sink.write("x" * 1_000_000)
    assert sink.dropped == 1
    while select.select([reading], [], [], 0)[0]:
        os.read(reading, 65536)
    sink.write("whole")
    assert os.read(reading, 100) == b"\nwhole\n"
    os.close(reading)
    os.close(writing)


def test_a_lone_surrogate_does_not_cost_the_line(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        sink = Sink(file.fileno())
        sink.write("a\udcffb")
    assert (tmp_path / "log").read_text() == "a\\udcffb\n" and sink.dropped == 0


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
