"""A private MariaDB: its own folder, loopback or socket only, gone afterwards.

Imports nothing of qd but its errors and clock, so that a test suite may use it too. Owns the
server's process and its folder. Needs the programs `mariadbd` and `mariadb-install-db` of the
distribution's packages (no service, no settings of the machine are touched).
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any

from qd.clock import monotonic
from qd.errors import QdError

PACKAGES = "mariadb-server-core mariadb-client-core"
"""The distribution's packages that hold the programs."""

SMALL = ("--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--skip-name-resolve")
_SEARCH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])


class ServerUnavailable(QdError):
    """The private server can't be had; the text is one line that says what to do."""


def program(name: str) -> str:
    """The path of one of MariaDB's programs.

    Raises:
        ServerUnavailable: it isn't installed.
    """
    found = shutil.which(name, path=_SEARCH)
    if found is None:
        raise ServerUnavailable(f"{name} isn't installed: apt-get install {PACKAGES}, or what your system calls them")
    return found


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PrivateMariaDB:
    """A server of our own. As a context manager: started, then stopped and removed.

    Args:
        folder: where it lives; made if missing, removed by `remove`. Its path plus `s.sock` has
            to fit a socket's 107 bytes.
        port: TCP port on 127.0.0.1, or None: the socket only.
        options: more options for mariadbd.

    Attributes:
        socket: path of its Unix socket.
        root_password: of root@localhost, made up for this server.
    """

    def __init__(self, folder: Path, port: int | None = None, options: Sequence[str] = ()) -> None:
        self.folder, self.port, self.options = folder, port, tuple(options)
        self.socket = folder / "s.sock"
        self.root_password = secrets.token_hex(16)
        self.process: subprocess.Popen[bytes] | None = None
        self._owner = _unprivileged()

    def start(self, within: float = 60.0) -> None:
        """Makes the data folder if there is none, starts the server, waits until it answers.

        Args:
            within: seconds that it may take.

        Raises:
            ServerUnavailable: not installed, or it didn't come up (with its last words).
        """
        if not (self.folder / "data" / "mysql").exists():
            self._install()
        command = [program("mariadbd"), "--no-defaults", *self._places(), *SMALL, *self._listen(), *self.options]
        with open(self.folder / "out.log", "ab") as out:
            self.process = subprocess.Popen(
                [*self._as_owner(), *command],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        self._await_answer(within)

    def stop(self, within: float = 20.0) -> None:
        """Stops the server; kills it if it hasn't ended within these seconds. No error if it isn't running."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def remove(self) -> None:
        """Stops the server and removes its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, *statements: str) -> list[Any]:
        """Runs statements as root over the socket; the rows of the last one."""
        connection = self.connect()
        try:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def connect(self, **settings: Any) -> Any:
        """A DB-API connection over the socket: root's, unless the settings say otherwise."""
        import mysql.connector

        return mysql.connector.connect(
            **{
                "unix_socket": str(self.socket), "user": "root", "password": self.root_password,
                "autocommit": True, "connection_timeout": 5, "collation": "utf8mb4_bin", **settings,
            }
        )  # fmt: skip

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
        data, error = self.folder / "data", self.folder / "error.log"
        return [f"--datadir={data}", f"--socket={self.socket}", f"--pid-file={self.folder / 'pid'}",
                f"--log-error={error}", f"--tmpdir={self.folder}", f"--init-file={self.folder / 'init.sql'}"]  # fmt: skip

    def _listen(self) -> list[str]:
        return ["--skip-networking"] if self.port is None else ["--bind-address=127.0.0.1", f"--port={self.port}"]

    def _install(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        init = self.folder / "init.sql"
        init.write_text(
            f"ALTER USER root@localhost IDENTIFIED BY '{self.root_password}';\n"
            "DROP USER IF EXISTS root@'127.0.0.1', root@'::1';\n"
        )
        if self._owner is not None:
            for path in (self.folder, init):
                os.chown(path, self._owner.pw_uid, self._owner.pw_gid)
        command = [
            program("mariadb-install-db"), "--no-defaults", f"--datadir={self.folder / 'data'}", "--skip-test-db",
            "--auth-root-authentication-method=normal", "--skip-name-resolve", "--innodb-log-file-size=16M",
        ]  # fmt: skip
        done = subprocess.run([*self._as_owner(), *command], cwd="/", capture_output=True, check=False)
        if done.returncode != 0:
            raise ServerUnavailable(f"mariadb-install-db failed: {_last_words(done.stdout + done.stderr)}")

    def _as_owner(self) -> list[str]:
        """MariaDB refuses to run as root, and needn't. It ends with us, however we end."""
        if self._owner is not None:
            ids = [f"--reuid={self._owner.pw_uid}", f"--regid={self._owner.pw_gid}", "--clear-groups"]
            return ["setpriv", *ids, "--pdeathsig", "TERM"]
        return ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []

    def _await_answer(self, within: float) -> None:
        assert self.process is not None
        deadline, pause = monotonic() + within, Event()
        while monotonic() < deadline:
            if self.process.poll() is not None:
                break
            if self._answers():
                return
            pause.wait(0.05)
        log = self.folder / "error.log"
        said = _last_words(log.read_bytes()) if log.exists() else _last_words((self.folder / "out.log").read_bytes())
        self.stop()
        raise ServerUnavailable(f"the private MariaDB didn't come up: {said}")

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except Exception:  # not yet: the driver's error says no more than that
            return False
        return True


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom the server runs as where we are root; None: as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("mysql", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServerUnavailable("as root a private MariaDB needs a user named mysql or nobody, and there is none")


def _last_words(output: bytes) -> str:
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-3:]) or "it said nothing"


def kill(server: PrivateMariaDB) -> None:
    """Ends the server as a power cut would (SIGKILL); `start` brings it back with its data."""
    if server.process is not None:
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        server.process = None
