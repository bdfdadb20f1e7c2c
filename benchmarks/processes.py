"""Processes that the benchmarks start: they end with the benchmark, however that ends.

May import: nothing of the project. Owns: the small process that sees to it.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_REAPER = """
read -r _
kill -s "$3" -- "$1"
sleep 2
kill -s KILL -- "-$1"
[ -z "$2" ] || rm -rf -- "$2"
"""
"""Acts once its standard input ends, as it does when the benchmark dies: asks the process, then kills its group."""


class NotRun(Exception):
    """Something that was to be measured can't be; the text says why, for the table."""


class Process:
    """A program in a process group of its own.

    Args:
        argv: the program and its arguments.
        log: where its output goes, replaced at each start.
        env: replaces the environment.
        user: a name; None: ours.
        executable: the file, where it isn't `argv[0]`.
        folder: removed if we die.
        gently: the signal that ends it in order.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        executable: str | None = None,
        folder: Path | None = None,
        gently: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.log, self._gently = log, gently
        account = pwd.getpwnam(user) if user else None
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                argv,
                executable=executable,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=() if account else None,
            )
        self._reaper = subprocess.Popen(
            ["sh", "-c", _REAPER, "reaper", str(self.pid), str(folder or ""), gently.name.removeprefix("SIG")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id, and its group's."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs. Its exit status is left to `end`: until then nothing else can have its id."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def end(self, within: float = 10.0) -> None:
        """Ends it and what it started: in order if that takes no longer than `within` seconds, else by force."""
        os.kill(self.pid, self._gently)
        until = time.monotonic() + within
        while self.alive() and time.monotonic() < until:
            time.sleep(0.01)
        os.killpg(self.pid, signal.SIGKILL)  # also what it has left behind
        self._process.wait(within)
        self._reaper.kill()  # before the pid could be another's
        self._reaper.wait(within)
        assert self._reaper.stdin is not None
        self._reaper.stdin.close()

    def last_words(self, characters: int = 500) -> str:
        """The end of its log, on one line."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return " ".join(text.split())[-characters:]
