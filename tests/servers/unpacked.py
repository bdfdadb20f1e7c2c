"""Single servers out of Debian's suites: MariaDB 10.5, 10.11 and 11.8, MySQL 9.7."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.servers.fetching import CACHE, Programs, fetch, fetched
from tests.support.mariadb import FAST, FAST_MARIADB
from tests.support.private import INIT_SQL, OneProcess, as_user, lock, started
from tests.support.server import ServerMissing

CLOCK = "libfaketime"
"""For tests that set a server's clock: it has to fit the server's libc."""

FAST_MYSQL = (*FAST, "--innodb-redo-log-capacity=16M", "--mysqlx=OFF", "--secure-file-priv=NULL")


class Unpacked(OneProcess):
    """A server of another suite's programs.

    Args:
        kind: which.
    """

    def __init__(
        self, kind: UnpackedKind, folder: Path, options: tuple[str, ...] = (), zone: str | None = None
    ) -> None:
        super().__init__(folder, options, zone)
        self.kind = kind

    def start(self) -> None:
        """Starts it and waits until it answers; accounts may then log in without TLS as before."""
        super().start()
        self.log_in_once()

    def command(self) -> list[str]:
        own = [f"--port={self.port}", f"--tmpdir={self.folder}"]
        return self.kind.command(*self.paths(), *own, *self.kind.fast, *self.options)


@dataclass(frozen=True)
class UnpackedKind:
    """A kind that is one program of a Debian suite."""

    name: str
    title: str
    suite: str
    packages: tuple[str, ...]
    program: str
    fast: tuple[str, ...]

    def fetch(self) -> None:
        """Downloads and unpacks it, and makes the data directory that its servers are copied from."""
        fetch(self.name, self.suite, self.packages)
        self.template()

    def new_server(self, *options: str, zone: str | None = None) -> Unpacked:
        """One that runs."""
        server = self.made(*options, zone=zone)
        started(server)
        return server

    def made(self, *options: str, zone: str | None = None) -> Unpacked:
        """One that doesn't run yet: its folder, with a fresh data directory, is there."""
        template = self.template()
        folder = Path(tempfile.mkdtemp(prefix="qd-db-"))
        shutil.copytree(template, folder / "data")
        (folder / "init.sql").write_text(INIT_SQL)
        return Unpacked(self, folder, options, zone)

    @property
    def programs(self) -> Programs:
        """Where it was unpacked."""
        return fetched(self.name)

    def command(self, *options: str) -> list[str]:
        """The server with these options, and those that tell it where its own files are."""
        root = self.programs.root
        share = self.programs.one("usr/share/m*/charsets").parent
        own = [f"--basedir={root / 'usr'}", f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"]
        own += [f"--plugin-dir={root / 'usr/lib/mysql/plugin'}"]  # there or not, but not the system's
        return self.programs.command(self.program, "--no-defaults", *as_user(), *own, *options)

    def template(self) -> Path:
        """A data directory with the system tables alone, made once."""
        folder = CACHE / self.name / "template"
        with lock(CACHE / f"{self.name}.lock"):
            if not (folder / "complete").exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                self._install(folder / "data")
                (folder / "complete").touch()
        return folder / "data"

    def _install(self, data: Path) -> None:
        options = [f"--datadir={data}", *self.fast, f"--log-error={data.parent / 'install.log'}"]
        if self.program.endswith("mysqld"):
            self._run(self.command(*options, "--initialize-insecure"), "")
            return
        (data / "mysql").mkdir(parents=True)
        share = self.programs.one("usr/share/m*/fill_help_tables.sql").parent
        parts = ("system_tables", "performance_tables", "system_tables_data")
        scripts = [self.programs.one(f"usr/share/m*/m*_{part}.sql") for part in parts]
        sql = "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n"
        sql += "".join(script.read_text() for script in [*scripts, share / "fill_help_tables.sql"])
        self._run(self.command(*options, "--bootstrap"), sql)

    def _run(self, command: Sequence[str], sql: str) -> None:
        done = subprocess.run(command, input=sql, capture_output=True, text=True)
        if done.returncode:
            log = CACHE / self.name / "template/install.log"
            raise ServerMissing(f"{self.title} could not make its system tables, see {log}: {done.stderr[-300:]}")


def _mariadb(version: str, suite: str, *packages: str) -> UnpackedKind:
    name, title = f"mariadb{version.replace('.', '')}", f"MariaDB {version}"
    return UnpackedKind(name, title, suite, (*packages, CLOCK), "usr/sbin/mariadbd", FAST_MARIADB)


KINDS = (
    _mariadb("10.5", "bullseye", "mariadb-server-core-10.5"),
    _mariadb("10.11", "bookworm", "mariadb-server-core"),
    _mariadb("11.8", "trixie", "mariadb-server-core"),
    UnpackedKind("mysql97", "MySQL 9.7", "sid", ("mysql-server-core", CLOCK), "usr/sbin/mysqld", FAST_MYSQL),
)


def kind(name: str) -> UnpackedKind:
    """The kind of that name."""
    return next(kind for kind in KINDS if kind.name == name)
