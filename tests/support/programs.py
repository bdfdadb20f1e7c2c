"""Programs of the distribution that tests run: where they are, and those that serve HTTP until the test ends.

May import: nothing of qd. Owns their processes: they end with the test, also where that is killed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from tests.support.private import free_port
from tests.support.reaping import ends_with_us
from tests.support.server import ROOT, ServerMissing
from tests.support.waiting import wait_for

TOOLS = ROOT / "var" / "tools"
"""Where .ci/prometheus puts what it takes out of packages."""

START = 60.0
"""Seconds until a program answers, on a busy machine."""


def find(*names: str) -> str:
    """The path of a program, by the first of its names that there is.

    Raises:
        ServerMissing: it isn't there.
    """
    places = os.pathsep.join([str(TOOLS), os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    for name in names:
        found = shutil.which(name, path=places)
        if found is not None:
            return found
    raise ServerMissing(f"no {names[0]} on this machine (.ci/prometheus takes it out of Debian's package)")


class HttpProgram(ABC):
    """A program that answers on a free port of 127.0.0.1.

    Args:
        folder: its own, made here; its log will be there.
        names: of the program, the first that there is.
        ready: a path that is answered with 200 once it works.

    Attributes:
        port: where it listens, the same over restarts.
    """

    def __init__(self, folder: Path, names: tuple[str, ...], ready: str) -> None:
        self.program, self._ready = find(*names), ready
        self.folder, self.port = folder, free_port()
        folder.mkdir()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @abstractmethod
    def arguments(self) -> list[str]:
        """What it is started with; its folder must be among it."""

    def start(self) -> None:
        """Starts it and waits until it answers."""
        assert self._process is None, f"{self.program} is running already"
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.program, *self.arguments()], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, cwd=Path(self.program).parent,  # for .ci/prometheus' Alertmanager
            )  # fmt: skip
        ends_with_us(self._process.pid, self.folder)
        wait_for(self._answers, START, f"{self.program}; it said: {self.said()}")

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends it; its data stays, so that `start` goes on with them. No harm where it doesn't run."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(30)

    def said(self) -> str:
        """The end of its log."""
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def get(self, path: str, **parameters: str | float) -> Any:
        """The JSON of an answer.

        Raises:
            AssertionError: it refused; what it said is told.
        """
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        return json.loads(self._ask(path + query))

    def post(self, path: str) -> None:
        """Tells it something that has no answer."""
        self._ask(path, b"")

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", body, timeout=30) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as refused:
            said = refused.read().decode(errors="replace")
            raise AssertionError(f"{path}: {refused.code} {said}; its log: {self.said()}") from None

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, f"{self.program} ended: {self.said()}"
        try:
            with urllib.request.urlopen(f"http://{self.address}{self._ready}", timeout=5):
                return True
        except OSError:
            return False
