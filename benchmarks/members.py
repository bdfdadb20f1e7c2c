"""The servers that sections run on: private and durable, by the names of `Plan.servers`.

Development only: stands on the tests' own servers, the machine's MariaDB and those that `make test-servers` fetches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.measured import DURABLE
from tests.servers.kinds import kind_named
from tests.support.mariadb import new_server
from tests.support.private import PrivateServer

OWN = "mariadb"
"""The machine's own server; every other name is a kind of `tests.servers`."""

MYSQL = (
    *(option for option in DURABLE if "log-file-size" not in option),
    "--innodb-redo-log-capacity=512M",
    "--sync-binlog=1",
)
"""MySQL sizes its redo log by another option, and its binary log, which is on by default, is synced by default."""


@contextmanager
def running(name: str) -> Iterator[PrivateServer]:
    """A server of that kind with nothing in it; ended and removed afterwards.

    Raises:
        ServerMissing: the machine has none, or it can't be fetched.
    """
    server = _started(name)
    try:
        yield server
    finally:
        server.discard()


def _started(name: str) -> PrivateServer:
    if name == OWN:
        return new_server(*DURABLE)
    kind = kind_named(name)
    kind.fetch()
    return kind.new_server(*(MYSQL if name.startswith("mysql") else DURABLE))


def title(server: PrivateServer) -> str:
    """What it calls itself, e.g. `MariaDB 10.11.14`."""
    version = str(server.run("SELECT VERSION()")[0][0])
    return f"MariaDB {version.split('-')[0]}" if "MariaDB" in version else f"MySQL {version}"
