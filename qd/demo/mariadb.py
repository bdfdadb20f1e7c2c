"""A private MariaDB for the demo: a folder of its own, a Unix socket and no port, gone afterwards.

May import: errors, clock, the demo's processes. Owns the server's process and its folder. Needs the programs of the
distribution's packages; no service and no setting of the machine is touched.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any

from qd.clock import monotonic
from qd.demo import process
from qd.errors import QdError

PACKAGES = "mariadb-server-core mariadb-client-core"
"""The distribution's packages that hold the programs, without a service."""

_SMALL = ("--skip-networking", "--skip-name-resolve", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M")


class ServerUnavailable(QdError):
    """The private server can't be had; the text is one line that says what to do."""


class PrivateMariaDB:
    """A server of our own. As a context manager: started, then stopped and removed.

    Args:
        folder: where it lives; made for it, and removed with all that is in it. Its path has to
            be short: a socket's has at most 107 bytes.

    Attributes:
        socket: the path of its Unix socket.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "s.sock"
        self._root_password = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, within: float = 60.0) -> None:
        """Makes the data folder, starts the server and waits until it answers.

        Args:
            within: seconds that the start may take.

        Raises:
            ServerUnavailable: not installed, or it didn't come up (with its last words).
        """
        server, install = _program("mariadbd"), _program("mariadb-install-db")
        self.folder.mkdir(mode=0o700)
        self._install(install)
        self._process = process.start([server, "--no-defaults", *self._places(), *_SMALL], self.folder / "out.log")
        self._await_answer(within)

    def create(self, database: str, user: str) -> str:
        """Makes a database and a user who may do anything in it; the user's password."""
        password = f"pw-{secrets.token_hex(16)}"  # no YAML reader takes it for a number
        self._run(
            f"CREATE DATABASE {database} CHARACTER SET utf8mb4",
            f"CREATE USER {user}@localhost IDENTIFIED BY '{password}'",
            f"GRANT ALL ON {database}.* TO {user}@localhost",
        )
        return password

    def remove(self) -> None:
        """Stops the server, kills it if it hasn't ended in 20 s, and removes its folder."""
        if self._process is not None:
            process.stop(self._process, within=20)
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> PrivateMariaDB:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.remove()

    def _places(self) -> list[str]:
        places = {"datadir": "data", "socket": "s.sock", "pid-file": "pid", "log-error": "error.log",
                  "init-file": "init.sql", "tmpdir": ""}  # fmt: skip
        return [f"--{option}={self.folder / name}" for option, name in places.items()] + _as_root()

    def _install(self, install: str) -> None:
        init = self.folder / "init.sql"
        init.write_text(f"ALTER USER root@localhost IDENTIFIED BY '{self._root_password}';\n")
        options = [f"--datadir={self.folder / 'data'}", "--skip-test-db", "--skip-name-resolve", *_as_root()]
        options += ["--auth-root-authentication-method=normal", "--innodb-log-file-size=16M"]
        log = self.folder / "install.log"
        if process.run([install, "--no-defaults", *options], log) != 0:
            raise ServerUnavailable(f"mariadb-install-db failed: {process.last_words(log.read_bytes())}")

    def _await_answer(self, within: float) -> None:
        assert self._process is not None
        deadline, pause = monotonic() + within, Event()
        while monotonic() < deadline and self._process.poll() is None:
            if self._answers():
                return
            pause.wait(0.05)
        logs = b"".join(
            log.read_bytes() for log in (self.folder / "out.log", self.folder / "error.log") if log.exists()
        )
        raise ServerUnavailable(f"the private MariaDB didn't come up: {process.last_words(logs)}")

    def _answers(self) -> bool:
        try:
            self._run("SELECT 1")
        except Exception:  # not yet: the driver's error says no more than that
            return False
        return True

    def _run(self, *statements: str) -> None:
        import mysql.connector

        connection: Any = mysql.connector.connect(
            unix_socket=str(self.socket), user="root", password=self._root_password,
            connection_timeout=5, charset="utf8mb4", collation="utf8mb4_bin",
        )  # fmt: skip
        try:
            cursor = connection.cursor(buffered=True)
            for statement in statements:
                cursor.execute(statement)
        finally:
            connection.close()


def _program(name: str) -> str:
    found = shutil.which(name, path=process.SEARCH)
    if found is None:
        raise ServerUnavailable(f"{name} isn't installed: apt-get install {PACKAGES}, or what your system calls them")
    return found


def _as_root() -> list[str]:
    """MariaDB runs as root only where it is told to; its folder is closed to everybody else."""
    return ["--user=root"] if os.geteuid() == 0 else []
