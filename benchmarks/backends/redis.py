"""A private Redis, with the settings that it ships with or with every write synced.

May import: backend, processes; the tests' free port and wait.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
from pathlib import Path
from typing import BinaryIO

from benchmarks.backends.backend import START, Backend, programs, which
from benchmarks.processes import NotRun, Process
from tests.support.private import free_port
from tests.support.waiting import wait_for

SHIPPED = "as shipped: a snapshot a minute at best, no AOF; a crash or power cut loses the jobs added since"
SYNCED = "appendonly yes, appendfsync always: a job that was added survives a power cut"


class Redis(Backend):
    """A Redis on a port of its own.

    Args:
        synced: appendfsync always instead of what is shipped.
    """

    name = "Redis"

    def __init__(self, *, synced: bool = False) -> None:
        self.durability = SYNCED if synced else SHIPPED
        self.beside = ", every write synced" if synced else ", as shipped: a crash loses a minute's jobs or more"
        self._options = ("--appendonly", "yes", "--appendfsync", "always") if synced else ()
        self._port = free_port()
        self._folder: Path | None = None
        self._process: Process | None = None
        self._socket: socket.socket | None = None
        self._answers: BinaryIO

    @property
    def url(self) -> str:
        """Where clients go."""
        return f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        """See Backend; it begins empty each time."""
        program = programs("redis", lambda: which("redis-server", "redis-check-rdb"))
        self._folder = Path(tempfile.mkdtemp(prefix="qd-bench-redis-"))
        own = ["--port", str(self._port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        # Debian's redis-check-rdb is the server when it is called so
        argv = ["redis-server", *own, *self._options]
        self._process = Process(argv, executable=program, log=self._folder / "log", folder=self._folder)
        try:
            wait_for(self._connected, START, "Redis")
        except AssertionError as error:
            raise NotRun(f"Redis doesn't start: {self._process.last_words()}") from error
        self.running = True

    def _connected(self) -> bool:
        assert self._process is not None
        if not self._process.alive():
            raise NotRun(f"Redis ended: {self._process.last_words()}")
        try:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=10)
        except OSError:
            return False
        self._answers = self._socket.makefile("rb")
        return True

    def ask(self, *words: str) -> str:
        """The answer to a command that is answered by one line: a status, a number."""
        assert self._socket is not None
        self._socket.sendall(" ".join(words).encode() + b"\r\n")
        answer = self._answers.readline().decode().strip()
        if answer.startswith("-"):
            raise RuntimeError(f"Redis, {words[0]}: {answer}")
        return answer[1:]

    def count(self, *words: str) -> int:
        """The number that a command gives."""
        return int(self.ask(*words))

    def clear(self) -> None:
        """Removes everything."""
        self.ask("FLUSHALL")

    def version(self) -> str:
        """See Backend."""
        assert self._socket is not None
        self._socket.sendall(b"INFO server\r\n")
        length = int(self._answers.readline()[1:])
        text = self._answers.read(length + 2).decode()
        return next(line.partition(":")[2] for line in text.splitlines() if line.startswith("redis_version:"))

    def stop(self) -> None:
        """See Backend."""
        self.discard()

    def discard(self) -> None:
        """See Backend."""
        self.running = False
        if self._socket is not None:
            self._answers.close()
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.end()
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
