"""A private MariaDB that syncs its log at every commit, the same for qd, the raw loop and Django's tasks.

May import: backend, processes, measured; the tests' private server.
"""

from __future__ import annotations

from contextlib import closing

from benchmarks.backends.backend import Backend, programs, which
from benchmarks.measured import DURABLE
from benchmarks.processes import NotRun
from tests.support.mariadb import new_server
from tests.support.private import PrivateServer
from tests.support.server import ServerMissing
from tests.support.waiting import wait_for

PURGED = 1_000
"""Transactions whose dead rows may still wait for the purge when the next contestant begins."""


class MariaDB(Backend):
    """A MariaDB on a port of its own; a database for each contestant's turn."""

    name = "MariaDB"
    durability = "innodb_flush_log_at_trx_commit=1: a committed job survives a power cut"

    def __init__(self) -> None:
        self._server: PrivateServer | None = None
        self.database = ""

    @property
    def server(self) -> PrivateServer:
        """The server, which was started."""
        assert self._server is not None, "MariaDB wasn't started"
        return self._server

    def start(self) -> None:
        """See Backend."""
        if self._server is not None:
            self._server.start()
        else:
            programs("mariadb", lambda: which("mariadbd") and which("mariadb-install-db"))
            try:
                self._server = new_server(*DURABLE)
            except ServerMissing as missing:
                raise NotRun(str(missing)) from missing
        self.running = True
        flush = self.server.run("SELECT @@innodb_flush_log_at_trx_commit")[0][0]
        if int(flush) != 1:  # the tests' own options, which come before, say 2
            raise NotRun(f"innodb_flush_log_at_trx_commit is {flush}, not 1")

    def new_database(self) -> None:
        """Makes the next contestant's database with qd's tables, and removes the one before."""
        if self.database:
            self.server.drop_database(self.database)
        self.database = self.server.new_database()
        wait_for(self._purged, 30.0, "the purge of what the contestant before has deleted")

    def _purged(self) -> bool:
        return int(self.server.run("SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'")[0][1]) < PURGED

    def count(self, sql: str) -> int:
        """The number that a statement gives."""
        with closing(self.server.connect(self.database)) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(sql)
            return int(cursor.fetchone()[0])

    def version(self) -> str:
        """See Backend."""
        return str(self.server.run("SELECT VERSION()")[0][0]).split("-")[0]

    def stop(self) -> None:
        """See Backend."""
        self.running = False
        if self._server is not None and self._server.running():
            self._server.stop()

    def discard(self) -> None:
        """See Backend."""
        self.running = False
        if self._server is not None:
            self._server.discard()
            self._server = None
