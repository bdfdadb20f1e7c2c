"""Servers that belong to the tests: started on a free port, killed, frozen, thrown away.

`PrivateServer` is what a test may do to one, whatever it is made of; `OneProcess` is one that is a
single program. It ends with the process that started it, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.support.server import ADMIN, PASSWORD, Server, ServerMissing
from tests.support.waiting import wait_for

START = 240.0
"""Seconds that a server may take to answer, on a busy machine; MySQL by another clock takes a minute on a calm one."""

INIT_SQL = (
    f"CREATE USER IF NOT EXISTS {ADMIN}@'%' IDENTIFIED BY '{PASSWORD}';\n"
    f"GRANT ALL ON *.* TO {ADMIN}@'%' WITH GRANT OPTION;\n"
)
"""What a server runs at each start, so that tests can log in."""


class PrivateServer(Server, ABC):
    """A server that the test may harm.

    Attributes:
        host, port: where clients go; they stay the same over restarts.
        folder: where its data and logs are.
    """

    folder: Path

    @property
    def ports(self) -> tuple[int, ...]:
        """Where clients may go at the same time: more than one only where each node takes writes."""
        return (self.port,)

    @abstractmethod
    def start(self) -> None:
        """Starts it on its port and waits until it answers."""

    @abstractmethod
    def stop(self) -> None:
        """Shuts it down in order; its data stays."""

    @abstractmethod
    def kill(self) -> None:
        """Ends it without warning (SIGKILL); what was committed stays."""

    @abstractmethod
    def freeze(self) -> None:
        """It keeps its connections and answers nothing (SIGSTOP)."""

    @abstractmethod
    def thaw(self) -> None:
        """The opposite of freeze; no harm where it isn't frozen."""

    @abstractmethod
    def running(self) -> bool:
        """Whether it was started and not ended since."""

    def restart(self) -> None:
        """Stop and start on the same port."""
        self.stop()
        self.start()

    def discard(self) -> None:
        """Ends it and removes its folder."""
        if self.running():
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class OneProcess(PrivateServer):
    """A server that is one program.

    Args:
        folder: its own; `error.log` will be there.
        command: the program and its arguments, made anew at each start; called with this server.

    Attributes:
        socket: the path of its unix socket.
        options: further options that the test asked for.
    """

    def __init__(self, folder: Path, options: tuple[str, ...] = (), zone: str | None = None) -> None:
        super().__init__("127.0.0.1", free_port(), ADMIN, PASSWORD)
        self.folder = folder
        self.socket = str(folder / "s.sock")
        self.options, self.zone = options, zone
        self._process: subprocess.Popen[bytes] | None = None
        self._reaper: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """The program and all its arguments."""

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        """Starts it on its port and waits until it answers."""
        self.launch()
        wait_for(self._answers, START, f"the server on port {self.port}, see {self.folder / 'error.log'}")

    def launch(self) -> None:
        """Starts it, without waiting."""
        assert self._process is None, "the server is running already"
        self._process = subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | ({"TZ": self.zone} if self.zone else {}),
            start_new_session=True,
        )
        self._reaper = _reap_with_us(self._process.pid, self.folder)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the server ended: {self._last_words()}"
        return self.answers()

    def _last_words(self) -> str:
        log = self.folder / "error.log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else "without a log"

    def stop(self) -> None:
        """Shuts it down in order; its data stays."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it without warning (SIGKILL); what was committed stays."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """It keeps its connections and answers nothing (SIGSTOP)."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """The opposite of freeze."""
        if self.running():
            os.kill(self.pid, signal.SIGCONT)

    def running(self) -> bool:
        """Whether it was started and not ended since."""
        return self._process is not None

    def paths(self) -> list[str]:
        """Options that name its files, in its own folder."""
        files = {"datadir": "data", "socket": "s.sock", "pid-file": "pid", "log-error": "error.log"}
        files["init-file"] = "init.sql"
        return [f"--{option}={self.folder / name}" for option, name in files.items()]

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)  # no harm where it has ended by itself
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
        if self._reaper is not None:
            self._reaper.kill()  # before its pid could be another's
            self._reaper.wait(5)
            assert self._reaper.stdin is not None
            self._reaper.stdin.close()


def _reap_with_us(pid: int, folder: Path) -> subprocess.Popen[bytes]:
    """A small process that ends the server when this one dies however: its stdin then ends."""
    script = 'read -r _; kill -9 "$1"; rm -rf "$2"'
    own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # it is for the server's libc
    return subprocess.Popen(
        ["sh", "-c", script, "reaper", str(pid), str(folder)],
        env=own,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def free_port() -> int:
    """A TCP port that nobody listens on now, below those that outgoing connections are given.

    So a server that was stopped finds its port free when it is started again.
    """
    for port in random.sample(range(15000, 32000), 100):
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ServerMissing("no free TCP port between 15000 and 32000")


def started(server: PrivateServer) -> PrivateServer:
    """Starts a new one; thrown away where that fails."""
    try:
        server.start()
    except BaseException:
        server.discard()
        raise
    return server


def as_user() -> tuple[str, ...]:
    """The option that lets root run a server."""
    return ("--user=root",) if os.getuid() == 0 else ()


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Holds a file's lock: of several processes one does the work that the others then find done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
