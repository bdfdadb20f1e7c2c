"""`qd check` beside handlers' modules that do more than register: it says what it has found, and ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import ROOT

REGISTERS = "import os, subprocess, sys, threading, time\n\nimport qd\n\nqd.handler('send')(print)\n"


def check(folder: Path, does: str, *args: str) -> subprocess.CompletedProcess[str]:
    """A check in a process of its own, of a module that does this when it is imported."""
    (folder / "beside_jobs.py").write_text(REGISTERS + does)
    (folder / "qd.yaml").write_text(
        "database: {driver: sqlite, path: qd.sqlite3}\nhandlers: {modules: [beside_jobs]}\n"
    )
    return subprocess.run(
        [sys.executable, "-m", "qd", "--config", "qd.yaml", "check", "--offline", *args],
        cwd=folder, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_a_thread_that_a_module_leaves_behind_keeps_nothing_from_ending(tmp_path: Path) -> None:
    done = check(tmp_path, "threading.Thread(target=time.sleep, args=(3600,)).start()\n")
    assert done.returncode == 0, done.stderr
    assert "ok    handlers: 1: send" in done.stdout and "ok    time limits: " in done.stdout


@pytest.mark.parametrize(
    "does",
    [
        "print('hello')\n",
        "os.write(1, b'hello')\n",
        "subprocess.run(['echo', 'hello'])\n",
        "threading.Timer(0.05, print, ['hello']).start()\n",
    ],
)
def test_what_a_module_writes_to_stdout_is_no_part_of_the_json(tmp_path: Path, does: str) -> None:
    done = check(tmp_path, does, "--json")
    assert json.loads(done.stdout)["ok"] is True
    assert "hello" in done.stderr
    assert "hello" not in check(tmp_path, does).stdout


@pytest.mark.parametrize(
    ("does", "how"),
    [
        ("os._exit(0)\n", "with status 0"),
        ("import posix\nposix._exit(3)\n", "with status 3"),
        ("os.execv('/bin/true', ['true'])\n", "with status 0"),
        ("os.kill(os.getpid(), 9)\n", "by a signal, Killed"),
        ("threading.Thread(target=os._exit, args=(0,)).start()\ntime.sleep(5)\n", "with status 0"),
        ("os._exit(0) if os.fork() else None\n", "with status 0"),
        ("raise KeyboardInterrupt\n", "with status 1"),
    ],
)
def test_a_module_that_ends_the_process_is_told(tmp_path: Path, does: str, how: str) -> None:
    done = check(tmp_path, does, "--json")
    assert done.returncode == 78
    [told] = [found for found in json.loads(done.stdout)["findings"] if found["what"] == "handlers"]
    assert told["level"] == "FAIL"
    assert told["detail"] == f"the check ended before its end: a module ended the process ({how})"
    assert f"FAIL  handlers: {told['detail']}\n" in check(tmp_path, does).stdout


@pytest.mark.parametrize(
    "does",
    [
        "child = os.fork()\nif not child:\n    os._exit(0)\nos.waitpid(child, 0)\n",
        "child = os.fork()\nif not child:\n    sys.exit(0)\nos.waitpid(child, 0)\n",
        "os.fork()\n",
        "from multiprocessing import get_context\nwith get_context('fork').Pool(2) as them:\n    them.map(abs, [1])\n",
        "import atexit\natexit.register(os._exit, 3)\n",
    ],
)
def test_processes_that_a_module_forks_tell_nothing_and_end_as_they_like(tmp_path: Path, does: str) -> None:
    done = check(tmp_path, does, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] is True, "one document"
    assert check(tmp_path, does).stdout.count("handlers: 1: send\n") == 1


def test_a_reader_that_has_gone_ends_it_without_a_word(tmp_path: Path) -> None:
    check(tmp_path, "")
    line = f"{sys.executable} -m qd --config qd.yaml check --offline | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.stdout, done.stderr) in (("141\n", ""), ("0\n", "")), "all was written before the reader went"
