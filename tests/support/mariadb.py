"""A private MariaDB from the machine's own mariadbd, the kind that QD_TEST_SERVER names, or QD_TEST_DSN's.

The template data directory is made once and kept in the temp folder under a lock; a server is a
copy of it on a free port in a folder of its own, gone when the process that started it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tests.servers.kinds import kind_named
from tests.support.private import INIT_SQL, OneProcess, PrivateServer, as_user, lock, started
from tests.support.private import free_port as free_port
from tests.support.server import Server, ServerMissing, server_from_dsn

FAST = (
    "--innodb-buffer-pool-size=64M",
    # 2: commits survive a kill of the server, which is what tests do; not a power cut
    "--innodb-flush-log-at-trx-commit=2",
    "--sync-binlog=0",
    "--skip-name-resolve",
    "--bind-address=127.0.0.1",
)
"""What makes any server small and quick enough for tests."""

FAST_MARIADB = (*FAST, "--innodb-log-file-size=8M", "--performance-schema=OFF")


class MariaDB(OneProcess):
    """A private server of the machine's own programs."""

    def command(self) -> list[str]:
        own = [f"--port={self.port}", f"--tmpdir={self.folder}"]
        return ["mariadbd", "--no-defaults", *as_user(), *self.paths(), *own, *FAST_MARIADB, *self.options]


def new_server(*options: str, zone: str | None = None) -> PrivateServer:
    """A private server that runs; the caller calls `discard()`.

    Args:
        options: further options of the server, e.g. `--max-connections=5`.
        zone: its system time zone, as TZ has it, e.g. `CET-1CEST,M3.5.0,M10.5.0/3`.

    Raises:
        ServerMissing: there is no mariadbd on this machine, or QD_TEST_SERVER names a kind that
            wasn't fetched.
    """
    name = os.environ.get("QD_TEST_SERVER")
    if name:
        return kind_named(name).new_server(*options, zone=zone)
    if shutil.which("mariadbd") is None or shutil.which("mariadb-install-db") is None:
        raise ServerMissing("no mariadbd on this machine (Debian: apt-get install mariadb-server), no QD_TEST_DSN")
    folder = Path(tempfile.mkdtemp(prefix="qd-db-"))
    shutil.copytree(_template(), folder / "data")
    (folder / "init.sql").write_text(INIT_SQL)
    return started(MariaDB(folder, options, zone))


def shared_server() -> Server:
    """The server of QD_TEST_DSN if that is set, else a new private one."""
    dsn = os.environ.get("QD_TEST_DSN")
    return server_from_dsn(dsn) if dsn else new_server()


def _template() -> Path:
    """The data directory that servers are copied from, made once per machine and version."""
    version = subprocess.run(["mariadbd", "--version"], capture_output=True, text=True, check=True).stdout
    name = version.split("Ver ")[-1].split()[0]
    folder = Path(tempfile.gettempdir()) / f"qd-template-{os.getuid()}-{name}"
    with lock(folder.with_name(folder.name + ".lock")):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _install(folder)
    return folder / "data"


def _install(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    options = ["--skip-test-db", "--auth-root-authentication-method=normal", "--innodb-log-file-size=8M"]
    command = ["mariadb-install-db", "--no-defaults", *as_user(), f"--datadir={folder / 'data'}", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"mariadb-install-db: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    (folder / "complete").write_text(time.strftime("%Y-%m-%d %H:%M:%S\n"))
