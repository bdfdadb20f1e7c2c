"""`qd work` ends when it has done its duty, whatever its handlers have left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.cli_shell import Shell
from tests.support.waiting import wait_for

HANDLERS = """
import concurrent.futures, ctypes, multiprocessing, os, pathlib, threading, time
import qd

def nothing():
    pass

@qd.handler("leaves_a_thread")
def leaves_a_thread(job):
    threading.Thread(target=threading.Event().wait).start()

@qd.handler("leaves_an_executor")
def leaves_an_executor(job):
    concurrent.futures.ThreadPoolExecutor(1).submit(threading.Event().wait)

@qd.handler("leaves_a_child")
def leaves_a_child(job):
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    pathlib.Path("child").write_text(str(child.pid))

@qd.handler("uses_a_pool")
def uses_a_pool(job):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.apply(nothing)

@qd.handler("deaf")
def deaf(job):
    pathlib.Path("started").touch()
    ctypes.CDLL(None).sleep(600)
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """On the embedded store, with one queue of short time-outs."""
    queues = {"default": {"timeout": "1s", "backoff": {"base": "60s", "jitter": 0}}}
    more = {"queues": queues, "workers": [{"queues": ["default"]}], "shutdown": {"grace": "1s"}}
    shell = Shell(tmp_path, {"driver": "sqlite", "path": "qd.sqlite3"}, **more)
    (tmp_path / "shell_handlers.py").write_text(HANDLERS)
    shell.ok("migrate")
    return shell


@pytest.mark.parametrize("type_", ["leaves_a_thread", "leaves_an_executor", "leaves_a_child", "uses_a_pool"])
def test_what_a_handler_leaves_behind_does_not_keep_the_process(shell: Shell, type_: str) -> None:
    shell.ok("enqueue", type_)
    said = shell.folder / "said"
    try:  # not a pipe: the child that is left would hold it open
        with said.open("w") as out, shell.start("work", "--once", "--fail", stderr=out) as worker:
            try:
                status = worker.wait(30)
            finally:
                worker.kill()
        assert (status, "1 succeeded" in said.read_text()) == (0, True), said.read_text()
    finally:
        left = shell.folder / "child"
        if left.exists():
            with suppress(ProcessLookupError):
                os.kill(int(left.read_text()), signal.SIGKILL)


def test_a_handler_that_hangs_is_given_back_as_timed_out_by_a_process_that_is_gone(shell: Shell) -> None:
    job = shell.ok("enqueue", "deaf").strip()
    with shell.start("work", "--once", stderr=subprocess.PIPE) as worker:
        try:
            wait_for((shell.folder / "started").exists, 20, "it to run")
            wait_for(lambda: "worker.replaced" in (worker.stderr.readline() if worker.stderr else ""), 30, "its time")
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(20) == 0
        finally:
            worker.kill()
    shown = json.loads(shell.ok("jobs", "show", job, "--json"))
    assert (shown["state"], shown["attempts"]) == ("delayed", 1) and "timed out" in shown["last_error"]
