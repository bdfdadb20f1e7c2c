"""Signals at the worst moments: a full log, a reconnect's pause, a stop under way. Always 0, always in time."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest

from qd.clock import monotonic
from tests.support.answering import AnsweringProxy
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB
from tests.support.waiting import wait_for


def ended_well(daemon: Daemon, within: float) -> None:
    """With 0, in time, and without a trace of a bug."""
    assert daemon.wait_exit(within) == 0, daemon.said()[-3000:]
    for words in ("Traceback", "reentrant", "RuntimeError", "Fatal Python error"):
        assert words not in daemon.said(), daemon.said()[-3000:]
    assert len(daemon.lines("daemon.stopped")) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_signals_while_it_logs_without_pause_end_with_0(qd: Qd, seed: int) -> None:
    chance = random.Random(seed)
    qd.write(log={"level": "debug", "jobs": "all"})
    daemon = qd.start()
    qd.enqueue("nap", 1000, seconds=0)
    for _ in range(200):
        daemon.send(chance.choice([signal.SIGHUP, signal.SIGUSR1]))
        if chance.random() < 0.2:
            daemon.get("/livez")
    daemon.send(signal.SIGTERM)
    ended_well(daemon, 20)
    assert daemon.lines("daemon.reload_applied")
    assert qd.jobs("reserved_by IS NOT NULL") == 0 and sorted(qd.ran("end")) == sorted(set(qd.ran("start")))


@pytest.mark.parametrize("pause", [0.0, 0.02, 0.2])
def test_two_sigterms_close_together_spoil_no_end_that_is_being_written(qd: Qd, pause: float) -> None:
    qd.write(workers=[{"queues": ["default"], "threads": 4}])
    daemon = qd.start()
    qd.enqueue("nap", 400, seconds=0.01)
    wait_for(lambda: len(qd.ran("start")) > 20, 20, "work")
    daemon.send(signal.SIGTERM)
    threading.Event().wait(pause)
    daemon.send(signal.SIGTERM)
    ended_well(daemon, 12)
    assert len(daemon.notify.times("STOPPING=1")) == 1
    done, left = set(qd.ran("end")), {row[0] for row in qd.sql("SELECT id FROM qd_jobs WHERE type = 'nap'")}
    assert not done & left, "a job that ended is offered again"
    assert len(done) + len(left) == 400 and qd.jobs("reserved_by IS NOT NULL OR attempts <> 0") == 0


def test_a_stop_in_the_pauses_of_an_outage_comes_at_once(frail: Qd) -> None:
    assert isinstance(frail.server, MariaDB)
    daemon = frail.start()
    frail.server.stop()
    wait_for(lambda: daemon.lines("database.lost"), 15, "the loss to be noticed")
    began = monotonic()
    wait_for(lambda: monotonic() > began + 4, 10, "the pauses to grow")
    daemon.send(signal.SIGTERM)
    ended_well(daemon, 8)


def test_signals_during_a_stop_do_not_lengthen_or_break_it(qd: Qd) -> None:
    qd.write(shutdown={"grace": "2s"})
    daemon = qd.start()
    (job,) = qd.enqueue("nap", seconds=60)
    wait_for(lambda: qd.ran("start", job), 10, "the job")
    daemon.send(signal.SIGTERM)
    wait_for(lambda: daemon.notify.times("STOPPING=1"), 5, "STOPPING")
    began = monotonic()
    while daemon.alive() and monotonic() < began + 1.5:
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT):
            daemon.send(number)
        threading.Event().wait(0.01)
    ended_well(daemon, 8)
    assert qd.sql("SELECT attempts, reserved_by FROM qd_jobs WHERE id = %s", (job,)) == [(0, None)]


def writing_to(path: Path) -> list[str]:
    """Runs the daemon with all that it says going there, as a shell does."""
    return ["sh", "-c", 'exec "$@" >"$0" 2>&1', str(path)]


READERS = {
    "that never reads": "exec sleep 600",
    "that reads slowly": "while dd bs=200 count=1 2>/dev/null | grep -q .; do sleep 0.05; done",
    "that has gone": "exec true",
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_of_the_log_keeps_neither_work_nor_stop(qd: Qd, reader: str) -> None:
    qd.write(log={"level": "debug", "jobs": "all"})
    fifo = qd.folder / "fifo"
    os.mkfifo(fifo)
    ours = os.open(fifo, os.O_RDWR)
    reading = subprocess.Popen(["sh", "-c", READERS[reader]], stdin=ours, stdout=subprocess.DEVNULL)
    daemon = qd.start(within=writing_to(fifo))
    os.close(ours)  # from now on it is the reader's alone
    try:
        qd.enqueue("nap", 1000, seconds=0)
        wait_for(lambda: qd.jobs() == 0, 60, "a thousand jobs, two thousand lines")
        for _ in range(20):
            daemon.send(signal.SIGHUP)
        assert daemon.get("/livez")[0] == 200
        daemon.send(signal.SIGTERM)
        assert daemon.wait_exit(15) == 0
    finally:
        reading.kill()
        reading.wait()


def test_a_disk_without_room_for_the_log_keeps_neither_work_nor_stop(qd: Qd) -> None:
    qd.write(log={"level": "debug", "jobs": "all"})
    daemon = qd.start(within=writing_to(Path("/dev/full")))
    qd.enqueue("nap", 200, seconds=0)
    wait_for(lambda: qd.jobs() == 0, 60, "the jobs")
    daemon.send(signal.SIGTERM)
    assert daemon.wait_exit(15) == 0


def test_twenty_running_jobs_outlive_every_kind_of_refused_reload_and_their_queues_end(qd: Qd) -> None:
    two = {"default": {"lease": "6s"}, "old": {"lease": "6s"}}
    workers = [{"queues": ["default"], "threads": 10}, {"queues": ["old"], "threads": 10}]
    qd.write(queues=two, workers=workers, batch=1)
    daemon = qd.start()
    ids = [*qd.enqueue("nap", 10, seconds=6), *qd.enqueue("nap", 10, queue="old", seconds=6)]
    wait_for(lambda: len(qd.ran("start")) == 20, 30, "twenty jobs to run")
    good = qd.file.read_text()
    with closing(AnsweringProxy(int(qd.server.port))) as taken:
        for broken in (
            {"database": {**qd.config["database"], "port": 1}},
            {"http": {"listen": f"127.0.0.1:{taken.port}"}},
            {"queues": {"default": {"lease": "1ms"}}},
        ):
            refused = len(daemon.lines("daemon.reload_refused"))
            before = dict(qd.config)
            qd.write(**broken)
            daemon.send(signal.SIGHUP)
            wait_for(lambda: len(daemon.lines("daemon.reload_refused")) > refused, 10, f"{broken} to be refused")  # noqa: B023
            assert daemon.metric("qd_config_last_reload_successful") == 0.0
            qd.config = before
    qd.file.write_text(good)
    qd.write(queues={"default": two["default"]}, workers=[{"queues": ["default"], "threads": 1}])
    daemon.send(signal.SIGHUP)
    wait_for(lambda: daemon.lines("daemon.reload_applied"), 10, "the reload that removes a queue and nine threads")
    wait_for(lambda: qd.jobs() == 0, 30, "all twenty to be settled")
    assert sorted(qd.ran("end")) == ids == sorted(qd.ran("start")) and not qd.ran("cut")
    assert daemon.metric("qd_config_last_reload_successful") == 1.0
    assert daemon.stop() == 0
