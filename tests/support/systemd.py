"""A machine with a real systemd as process 1, booted for the tests in namespaces of this one.

What happens in it stays in it: its root is a throw-away overlay of ours, its processes end with it, and it
ends with the process that booted it, however that ends. The network is ours, so servers on loopback are reached.
May import: nothing of qd. Owns: machine/start.sh, which does the work.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.missing import without
from tests.support.server import ROOT, ServerMissing
from tests.support.waiting import wait_for

BOOT = 60.0
"""Seconds that a boot may take, on a busy machine; alone it takes half of one."""

CHECKOUT, VENV, PYTHON, PROGRAM = "/opt/checkout", "/opt/venv", "/opt/python", "/opt/qd"
"""Where a machine has this checkout, the tests' packages, their Python (if it isn't the system's), and qd."""

SYSTEMD = "/lib/systemd/systemd"
NEEDS = ("unshare", "nsenter", "setpriv", "mount", "systemctl", "journalctl")


@dataclass(frozen=True)
class Line:
    """One entry of the journal."""

    text: str
    priority: int
    pid: int
    fields: Mapping[str, Any]


class Machine:
    """One machine. Call `end` when done with it.

    Attributes:
        folder: its own, on the host.

    Raises:
        ServerMissing: it can't be booted here; the text says why.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qd-m-"))
        own_python = [] if sys.base_prefix in ("/usr", "/usr/local") else [sys.base_prefix, PYTHON]
        given = [sys.executable, str(ROOT), CHECKOUT, sys.prefix, VENV, *own_python]
        script = Path(__file__).parent / "machine" / "start.sh"
        self._log = self.folder / "machine.log"
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # what start.sh has to complain of
        self._process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", str(script), str(self.folder), *given],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._errors, start_new_session=True,
        )  # fmt: skip
        try:
            self._enter = wait_for(self._entrance, BOOT, "the machine's first process")
            wait_for(self._is_up, BOOT, "systemd to have booted")
            self.run("systemctl", "log-target", "journal-or-kmsg")  # until now it went to machine.log
        except BaseException:
            self.end()
            raise

    def _entrance(self) -> list[str]:
        """What a command is to be put behind to run inside; empty until there is an inside."""
        if self._process.poll() is not None or (self.folder / "ended").exists():
            raise ServerMissing(f"systemd can't be booted in namespaces here: {self._said() or 'it said nothing'}")
        with suppress(OSError):
            pid = (self.folder / "pid").read_text().strip()
            return ["nsenter", "--target", pid, "-m", "-p", "-u", "-i", "-C", "-r", "-w"]
        return []

    def _is_up(self) -> bool:
        self._entrance()
        return self.run("systemctl", "is-active", "machine.target", check=False).stdout == "active\n"

    def _said(self) -> str:
        self._errors.seek(0)
        said = self._errors.read()
        with suppress(OSError):
            said += self._log.read_text(errors="replace")
        return " ".join(said.split())[-500:]

    def end(self) -> None:
        """Ends it and all that runs in it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ------------------------------------------------------------------ inside

    def run(
        self, *command: str, check: bool = True, input: str = "", within: float = 120.0, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command as the machine's root.

        Args:
            check: whether it has to succeed.
            input: its stdin.
            within: seconds that it may take.
            env: more for its environment.
        """
        done = subprocess.run(
            [*self._enter, *command], input=input, capture_output=True, text=True, timeout=within, env=self.env(**env)
        )
        assert done.returncode == 0 or not check, f"{command}: status {done.returncode}: {done.stdout}{done.stderr}"
        return done

    @property
    def enter(self) -> list[str]:
        """What runs the rest of its arguments inside."""
        return self._enter

    @staticmethod
    def env(**more: str) -> dict[str, str]:
        """The environment of root's login, with what pip needs of ours."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("QD_", "PYTHON", "CI"))}
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {**kept, "PATH": path, "HOME": "/root", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "", **more}

    def sh(self, script: str, check: bool = True, **env: str) -> str:
        """Runs a script, which ends at its first error; what it printed, errors too."""
        return self.run("sh", "-euc", f"exec 2>&1\n{script}", check=check, **env).stdout

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Makes or replaces a file, and its folders."""
        make = 'mkdir -p "${1%/*}" && cat >"$1.new" && chmod "$2" "$1.new" && mv "$1.new" "$1"'
        self.run("sh", "-euc", make, "write", path, f"{mode:o}", input=text)

    def read(self, path: str) -> str:
        """A file's content; empty where there is none."""
        return self.run("cat", path, check=False).stdout

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Properties of a unit, e.g. MainPID."""
        said = self.run("systemctl", "show", unit, *(f"--property={name}" for name in names)).stdout
        return dict(line.split("=", 1) for line in said.splitlines())

    def value(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.show(unit, name)[name]

    def journal(self, unit: str, *matches: str) -> list[Line]:
        """What a unit's processes, and systemd about it, have written."""
        said = self.run("journalctl", "--output=json", "--all", f"--unit={unit}", *matches).stdout
        return [_line(json.loads(entry)) for entry in said.splitlines()]

    def limits_memory(self) -> bool:
        """Whether a service's MemoryMax is more than a word here."""
        v1, v2 = "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/system.slice/memory.max"
        return self.run("test", "-e", v1, "-o", "-e", v2, check=False).returncode == 0

    def install_program(self) -> None:
        """Puts this checkout's qd, with the tests' Python and packages, where the units expect it."""
        home = "/usr/bin" if sys.base_prefix in ("/usr", "/usr/local") else f"{PYTHON}/bin"
        if sys.base_prefix == "/usr/local":
            home = "/usr/local/bin"
        packages = Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.write(f"{PROGRAM}/pyvenv.cfg", f"home = {home}\n")
        self.write(
            f"{PROGRAM}/bin/qd",
            f"#!/bin/sh\nexport PYTHONPATH={CHECKOUT} LD_LIBRARY_PATH={home}/../lib\n"
            f'exec {PROGRAM}/bin/python -m qd "$@"\n',
            mode=0o755,
        )
        self.sh(
            f"ln -s {home}/{name} {PROGRAM}/bin/python\n"
            f"mkdir -p {PROGRAM}/{packages.parent}\n"
            f"ln -s {VENV}/{packages} {PROGRAM}/{packages.parent}/"
        )


def boot() -> Machine:
    """Boots a machine.

    Raises:
        ServerMissing: this one lacks what it takes; the text says what.
    """
    if os.getuid() != 0:
        raise ServerMissing("booting systemd in namespaces takes root")
    lacking = [name for name in NEEDS if shutil.which(name) is None]
    if lacking or not os.path.exists(SYSTEMD):
        raise ServerMissing(f"no {', '.join([*lacking, SYSTEMD])} on this machine (Debian: apt-get install systemd)")
    return Machine()


def booted() -> Iterator[Machine]:
    """A fixture's machine; where there can be none the test is one without."""
    try:
        machine = boot()
    except ServerMissing as missing:
        without(missing)
    try:
        yield machine
    finally:
        machine.end()


def _line(entry: dict[str, Any]) -> Line:
    text = entry.get("MESSAGE") or ""
    if isinstance(text, list):  # bytes that aren't UTF-8
        text = bytes(text).decode(errors="replace")
    return Line(text, int(entry.get("PRIORITY", -1)), int(entry.get("_PID", 0)), entry)
