"""A bench's daemon, from inside: the very daemon of `qd run`, with a configuration that comes through a pipe.

stdin: one line of JSON, `Order`, then `go`; its end is the end of the bench, and so of this process. stdout:
lines of JSON, `{"say": ...}`; stderr: the daemon's log. So the password stands in no file, environment or
argument. May import: daemon, config, the plan and the timeline. Owns: the thread that listens to the bench.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from qd.bench.plan import Plan, daemon_config
from qd.bench.timeline import Seen, Timeline
from qd.config.model import Config, DatabaseConfig
from qd.daemon.app import serve
from qd.daemon.signals import Signals, install
from qd.readiness import readable

RUNTIME = "QD_RUNTIME_DIR"
"""The variable that says where daemons' sockets are; a bench makes a folder for its own."""

TELL_EVERY = 0.05
"""Seconds between two reports to the bench, where there is something to tell."""

END_WITHIN = 15.0
"""Seconds that the daemon gets to stop in order once the bench has gone."""


def order(database: DatabaseConfig, password: str | None, plan: Plan, *, starts: bool) -> bytes:
    """The line that a daemon's life begins with.

    Args:
        password: as it was read; the child reads no file of secrets.
        starts: whether it tells each job's start.
    """
    known = {**database.model_dump(mode="json"), "password": password, "password_file": None}
    return json.dumps({"database": known, "plan": asdict(plan), "starts": starts}).encode() + b"\n"


class Given:
    """A configuration that is there already; a reload finds it as it was."""

    file = "given by qd bench"

    def __init__(self, config: Config) -> None:
        self._config = config

    def read(self) -> Config:
        """The configuration."""
        return self._config


class Line:
    """The way to the bench. `listen` belongs to a thread of its own.

    Args:
        stdin: what is heard there.
        stdout: where it is told.

    Attributes:
        forsaken: the bench has gone before us, so it can't clear up any more.
    """

    def __init__(self, stdin: int, stdout: int, timeline: Timeline, signals: Signals) -> None:
        self._stdin, self._stdout, self._timeline, self._signals = stdin, stdout, timeline, signals
        self._released = threading.Event()
        self.forsaken = False
        self._reporting = threading.Lock()
        self._told = Seen()

    def hold(self, address: str | None) -> None:
        """Says that all is ready but the engine, and waits for the word to go on, or for a stop."""
        self.tell("held", http=address)
        while not self._released.wait(0.05) and not self._signals.stop_asked():
            pass

    def listen(self) -> None:
        """Until the bench has gone, or this process has."""
        while self._hear():
            self.report()
        self.forsaken = True
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(END_WITHIN)
        os._exit(1)

    def report(self) -> None:
        """Tells what has happened since the last time."""
        with self._reporting:
            seen = self._timeline.seen()
            if seen != self._told:
                self._told = seen
                self.tell("seen", **asdict(seen))
            if starts := self._timeline.take_starts():
                self.tell("started", jobs=starts)
            for kind, why in self._timeline.take_troubles():
                self.tell(kind, why=why)

    def tell(self, say: str, **fields: Any) -> None:
        """Writes one message; where nobody reads any more, `listen` finds out."""
        with suppress(OSError):
            os.write(self._stdout, json.dumps({"say": say, **fields}).encode() + b"\n")

    def _hear(self) -> bool:
        """Waits for a word, but not for long; False: the bench has gone."""
        if not readable(self._stdin, within=TELL_EVERY):
            return True
        word = os.read(self._stdin, 64)
        if b"go" in word:
            self._released.set()
        return word != b""


def main() -> int:
    """Runs the daemon; its exit status."""
    signals = install()
    ordered = _first_line(0)
    if not ordered:  # the bench had ended before
        _remove_runtime()
        return 0
    given = json.loads(ordered)
    database = DatabaseConfig.model_validate_json(json.dumps(given["database"]))
    config = daemon_config(database, Plan(**given["plan"]))
    timeline = Timeline(starts=given["starts"])
    line = Line(0, _own_stdout(), timeline, signals)
    threading.Thread(target=line.listen, name="qd bench", daemon=True).start()
    status = serve(Given(config), config, timeline, hold=line.hold)
    line.report()  # why it ends, which its thread may not have come to
    if line.forsaken:
        _remove_runtime()
    return status


def _remove_runtime() -> None:
    """What the bench can't do any more."""
    with suppress(OSError):  # another daemon's socket is still in it: that one will do it
        os.rmdir(os.environ[RUNTIME])


def _first_line(fd: int) -> bytes:
    """Up to the line's end and no further: what follows is for `Line`."""
    read = bytearray()
    while not read.endswith(b"\n") and (byte := os.read(fd, 1)):
        read += byte
    return bytes(read)


def _own_stdout() -> int:
    """The way to the bench, kept from everybody else in this process: their stdout is their stderr."""
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    return own
