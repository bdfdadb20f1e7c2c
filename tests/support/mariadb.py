"""A private MariaDB from the machine's own mariadbd, or the server that QD_TEST_DSN names.

The template data directory is made once and kept in the temp folder under a lock; a server is a
copy of it on a free port in a folder of its own, gone when the process that started it is.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.support.server import ADMIN, PASSWORD, Server, ServerMissing, server_from_dsn
from tests.support.waiting import wait_for

START = 30.0
"""Seconds that a server may take to answer, on a busy machine."""

_FAST = (
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-size=64M",
    # 2: commits survive a kill of the server, which is what tests do; not a power cut
    "--innodb-flush-log-at-trx-commit=2",
    "--sync-binlog=0",
    "--skip-name-resolve",
    "--bind-address=127.0.0.1",
    "--performance-schema=OFF",
)


class MariaDB(Server):
    """A private server.

    Attributes:
        socket: the path of its unix socket.
        folder: where its data and its log (`error.log`) are.
    """

    def __init__(self, folder: Path, options: tuple[str, ...] = (), zone: str | None = None) -> None:
        super().__init__("127.0.0.1", free_port(), ADMIN, PASSWORD)
        self.folder = folder
        self.socket = str(folder / "s.sock")
        self.options, self.zone = options, zone
        self._process: subprocess.Popen[bytes] | None = None
        self._reaper: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        """Starts it on its port and waits until it answers."""
        assert self._process is None, "the server is running already"
        self._process = subprocess.Popen(
            self._command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | ({"TZ": self.zone} if self.zone else {}),
            start_new_session=True,
        )
        self._reaper = _reap_with_us(self._process.pid, self.folder)
        wait_for(self._answers, START, f"MariaDB on port {self.port}, see {self.folder / 'error.log'}")

    def _command(self) -> list[str]:
        files = {"datadir": "data", "socket": "s.sock", "pid-file": "pid", "log-error": "error.log"}
        files["init-file"] = "init.sql"
        paths = [f"--{option}={self.folder / name}" for option, name in files.items()]
        own = [f"--port={self.port}", f"--tmpdir={self.folder}"]
        return ["mariadbd", "--no-defaults", *_as_user(), *paths, *own, *_FAST, *self.options]

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"mariadbd ended: {(self.folder / 'error.log').read_text()[-2000:]}"
        return self.answers()

    def stop(self) -> None:
        """Shuts it down in order; its data stays."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it without warning (SIGKILL); what was committed stays."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start on the same port."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """It keeps its connections and answers nothing (SIGSTOP)."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """The opposite of freeze."""
        os.kill(self.pid, signal.SIGCONT)

    def running(self) -> bool:
        """Whether it was started and not ended since."""
        return self._process is not None

    def discard(self) -> None:
        """Ends it and removes its folder."""
        if self.running():
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        os.kill(process.pid, signal.SIGCONT)
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
    return subprocess.Popen(
        ["sh", "-c", script, "reaper", str(pid), str(folder)],
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


def new_server(*options: str, zone: str | None = None) -> MariaDB:
    """A private server that runs; the caller calls `discard()`.

    Args:
        options: further options of mariadbd, e.g. `--max-connections=5`.
        zone: its system time zone, as TZ has it, e.g. `CET-1CEST,M3.5.0,M10.5.0/3`.

    Raises:
        ServerMissing: there is no mariadbd on this machine.
    """
    if shutil.which("mariadbd") is None or shutil.which("mariadb-install-db") is None:
        raise ServerMissing("no mariadbd on this machine (Debian: apt-get install mariadb-server), no QD_TEST_DSN")
    folder = Path(tempfile.mkdtemp(prefix="qd-db-"))
    shutil.copytree(_template(), folder / "data")
    (folder / "init.sql").write_text(
        f"CREATE OR REPLACE USER {ADMIN}@'%' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT ALL ON *.* TO {ADMIN}@'%' WITH GRANT OPTION;\n"
    )
    server = MariaDB(folder, options, zone)
    try:
        server.start()
    except BaseException:
        server.discard()
        raise
    return server


def shared_server() -> Server:
    """The server of QD_TEST_DSN if that is set, else a new private one."""
    dsn = os.environ.get("QD_TEST_DSN")
    return server_from_dsn(dsn) if dsn else new_server()


def _template() -> Path:
    """The data directory that servers are copied from, made once per machine and version."""
    version = subprocess.run(["mariadbd", "--version"], capture_output=True, text=True, check=True).stdout
    name = version.split("Ver ")[-1].split()[0]
    folder = Path(tempfile.gettempdir()) / f"qd-template-{os.getuid()}-{name}"
    with _lock(folder.with_name(folder.name + ".lock")):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _install(folder)
    return folder / "data"


def _install(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    options = ["--skip-test-db", "--auth-root-authentication-method=normal", "--innodb-log-file-size=8M"]
    command = ["mariadb-install-db", "--no-defaults", *_as_user(), f"--datadir={folder / 'data'}", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"mariadb-install-db: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    (folder / "complete").write_text(time.strftime("%Y-%m-%d %H:%M:%S\n"))


def _as_user() -> tuple[str, ...]:
    return ("--user=root",) if os.getuid() == 0 else ()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
