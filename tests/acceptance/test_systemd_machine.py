"""The machine with a real systemd is the tests' own: it leaves nothing behind, and says what it lacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.server import ROOT
from tests.support.systemd import Machine
from tests.support.waiting import wait_for

BOOTS = """
import sys
from tests.support.systemd import boot
machine = boot()
print(machine.enter[2], machine.folder, flush=True)
sys.stdin.read()
"""


def booting(*before: str) -> subprocess.Popen[str]:
    """A process that boots a machine and waits."""
    return subprocess.Popen(
        [*before, sys.executable, "-c", BOOTS], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def groups() -> Iterator[str]:
    """The control groups that processes are in."""
    for process in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            yield process.read_text()
        except OSError:
            continue


def test_it_ends_with_who_booted_it_also_where_that_is_killed(machine: Machine) -> None:
    process = booting()
    assert process.stdout is not None
    pid, folder = process.stdout.readline().split()
    assert Path(f"/proc/{pid}/comm").read_text() == "systemd\n" and Path(folder).is_dir()
    assert any(f"/{Path(folder).name}/" in group for group in groups())
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_for(lambda: not Path(f"/proc/{pid}").exists() and not Path(folder).exists(), 20, "the machine to go")
    assert not any(f"/{Path(folder).name}/" in group for group in groups())
    assert folder not in Path("/proc/self/mountinfo").read_text()


def test_what_happens_in_it_stays_in_it(machine: Machine) -> None:
    machine.write("/etc/made-on-the-machine", "x")
    machine.sh("hostname machine; mkdir -p /made-on-the-machine; mount -t tmpfs tmpfs /made-on-the-machine")
    assert not os.path.exists("/etc/made-on-the-machine") and not os.path.exists("/made-on-the-machine")
    assert os.uname().nodename != "machine"
    inside = set(machine.run("ps", "-e", "-o", "comm=").stdout.split())
    assert {"systemd", "systemd-journal"} <= inside and "python" not in inside


def test_where_it_cannot_be_booted_the_reason_is_said(machine: Machine) -> None:
    said = booting("setpriv", "--bounding-set", "-sys_admin").communicate()[1]
    assert "systemd can't be booted in namespaces here: unshare: " in said.splitlines()[-1], said
