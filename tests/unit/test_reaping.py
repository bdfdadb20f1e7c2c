"""What the tests start ends with them, also where they are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.server import ROOT
from tests.support.waiting import wait_for

STARTER = """
import subprocess, sys
from pathlib import Path
from tests.support.reaping import ends_with_us
for mark in sys.argv[1:]:
    argv = [sys.executable, "-c", "import signal; signal.pause()", sys.argv[1]]
    started = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    ends_with_us(started.pid, Path(mark))
    print(started.pid, flush=True)
sys.stdin.read()
"""


def running(pid: int) -> bool:
    """Whether there is such a process, and it isn't dead."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_process_ends_with_a_test_that_is_killed_unless_its_pid_is_anothers_by_then(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", STARTER, str(tmp_path / "its"), str(tmp_path / "other")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as starter:
        assert starter.stdout is not None
        ours, anothers = int(starter.stdout.readline()), int(starter.stdout.readline())
        assert running(ours) and running(anothers)
        starter.kill()
    wait_for(lambda: not running(ours), 10, "it to be killed")
    assert running(anothers)
    os.kill(anothers, 9)
