"""Processes of the benchmarks: they and what they start end with the benchmark, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.processes import Process
from tests.support.server import ROOT
from tests.support.waiting import wait_for

PARENT = """
import sys, time
from pathlib import Path
from benchmarks.processes import Process
folder = Path(sys.argv[1])
Process(["sh", "-c", sys.argv[2]], log=folder.parent / "log", cwd=folder, folder=folder)
time.sleep(600)
"""
"""A benchmark that starts one process and is busy."""

DEAF = 'trap "" TERM; sleep 600 & echo "$$ $!" >pids.new; mv pids.new pids; wait; sleep 600'
"""A worker that doesn't end when it is asked to, and has a child."""


def gone(pid: int) -> bool:
    """Whether no process has this id, or only its remains."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def pids_in(folder: Path) -> list[int]:
    """What DEAF wrote once it was ready."""
    wait_for((folder / "pids").exists, 30.0, "the worker")
    return [int(word) for word in (folder / "pids").read_text().split()]


def test_a_worker_that_does_not_end_when_it_is_asked_to_is_killed_with_its_children(tmp_path: Path) -> None:
    worker = Process(["sh", "-c", DEAF], log=tmp_path / "log", cwd=tmp_path)
    pids = pids_in(tmp_path)
    assert worker.alive()
    worker.end(within=0.2)
    wait_for(lambda: all(map(gone, pids)), 30.0, "the worker's end and its child's")


def test_a_worker_that_ends_when_it_is_asked_to_leaves_no_child_behind_either(tmp_path: Path) -> None:
    script = 'sleep 600 & echo "$$ $!" >pids.new; mv pids.new pids; wait'
    worker = Process(["sh", "-c", script], log=tmp_path / "log", cwd=tmp_path)
    pids = pids_in(tmp_path)
    worker.end(within=30.0)
    wait_for(lambda: all(map(gone, pids)), 30.0, "the child's end")


def test_what_a_benchmark_started_ends_with_it_when_it_is_killed_and_its_folder_goes(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    benchmark = subprocess.Popen([sys.executable, "-c", PARENT, str(folder), DEAF], env=env)
    try:
        pids = pids_in(folder)
        benchmark.send_signal(signal.SIGKILL)
    finally:
        benchmark.kill()
        benchmark.wait()
    wait_for(lambda: all(map(gone, pids)), 60.0, "the end of what the benchmark had started")
    wait_for(lambda: not folder.exists(), 30.0, "its folder's end")


def test_the_end_of_the_log_tells_why_a_worker_ended(tmp_path: Path) -> None:
    worker = Process(["sh", "-c", "echo first; echo last words >&2; exit 1"], log=tmp_path / "log")
    wait_for(lambda: not worker.alive(), 30.0, "the worker's end")
    assert worker.last_words() == "first last words"
    assert worker.last_words(5) == "words"
    worker.end()
