"""A private PostgreSQL, durable as it ships, run as a user without rights where we are root.

May import: backend, processes; the tests' free port and wait.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from benchmarks.backends.backend import START, Backend, programs, which
from benchmarks.processes import NotRun, Process
from tests.support.private import free_port
from tests.support.waiting import wait_for

ADMIN = "bench"


class Postgres(Backend):
    """A PostgreSQL on a port of its own, with its own defaults but for the memory, which is as large as MariaDB's."""

    name = "PostgreSQL"
    durability = "as shipped: fsync and synchronous_commit on; a committed job survives a power cut"

    def __init__(self) -> None:
        self._port = free_port()
        self._user = _user()
        self._folder: Path | None = None
        self._process: Process | None = None
        self._psql: subprocess.Popen[str] | None = None
        self._numbers = itertools.count(1)
        self.database = ""

    @property
    def url(self) -> str:
        """Where clients go, the database of the contestant whose turn it is."""
        return f"postgresql://{ADMIN}@127.0.0.1:{self._port}/{self.database}"

    def start(self) -> None:
        """See Backend."""
        if self._folder is None:
            self._folder = self._installed()
        options = {"D": str(self._folder / "data"), "k": "", "h": "127.0.0.1", "p": str(self._port)}
        argv = [_program("postgres"), "-c", "shared_buffers=1GB"]
        argv += [word for option, value in options.items() for word in (f"-{option}", value)]
        self._process = Process(
            argv, log=self._folder / "log", cwd=self._folder, user=self._user, folder=self._folder,
            gently=signal.SIGINT,  # PostgreSQL's fast shutdown
        )  # fmt: skip
        self.running = True
        try:
            wait_for(self._answers, START, "PostgreSQL")
        except AssertionError as error:
            raise NotRun(f"PostgreSQL doesn't start: {self._process.last_words()}") from error

    def _installed(self) -> Path:
        initdb = _program("initdb")
        folder = Path(tempfile.mkdtemp(prefix="qd-bench-pg-"))
        if self._user:
            shutil.chown(folder, self._user)
        argv = [initdb, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", f"--username={ADMIN}", folder / "data"]
        own = {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": ()} if self._user else {}
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, **own)  # type: ignore[call-overload]
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise NotRun(f"initdb: {' '.join(done.stderr.split())[-300:]}")
        return folder

    def _answers(self) -> bool:
        assert self._process is not None
        if not self._process.alive():
            raise NotRun(f"PostgreSQL ended: {self._process.last_words()}")
        return subprocess.run([*self._client("postgres"), "-c", "SELECT 1"], capture_output=True).returncode == 0

    def _client(self, database: str) -> list[str]:
        place = ["-h", "127.0.0.1", "-p", str(self._port), "-U", ADMIN, "-d", database]
        return [_program("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", *place]

    def new_database(self) -> None:
        """Makes the next contestant's database, and removes the one before."""
        self._hang_up()
        old, self.database = self.database, f"bench{next(self._numbers)}"
        for statement in [f"DROP DATABASE {old} WITH (FORCE)"] * bool(old) + [f"CREATE DATABASE {self.database}"]:
            subprocess.run([*self._client("postgres"), "-c", statement], check=True, capture_output=True)

    def ask(self, sql: str) -> str:
        """The one value that a statement gives, over a connection that stays."""
        if self._psql is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._psql = subprocess.Popen(self._client(self.database), text=True, **pipes)  # type: ignore[call-overload]
        assert self._psql is not None and self._psql.stdin is not None and self._psql.stdout is not None
        self._psql.stdin.write(sql + ";\n")
        self._psql.stdin.flush()
        return self._psql.stdout.readline().strip()

    def version(self) -> str:
        """See Backend."""
        done = subprocess.run([_program("postgres"), "--version"], capture_output=True, text=True, check=True)
        return done.stdout.split()[2]

    def stop(self) -> None:
        """See Backend."""
        self.running = False
        self._hang_up()
        if self._process is not None:
            self._process.end(30)
            self._process = None

    def discard(self) -> None:
        """See Backend."""
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _hang_up(self) -> None:
        psql, self._psql = self._psql, None
        if psql is not None:
            psql.communicate(timeout=10)


def _program(name: str) -> str:
    return programs("postgres", lambda: which(name, places=_places()))


def _places() -> tuple[str, ...]:
    """Where Debian keeps the programs, the newest first; looked for anew each time, as they may just be installed."""
    return tuple(str(place) for place in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))


def _user() -> str | None:
    """Whom it runs as: it refuses to be root's."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"
