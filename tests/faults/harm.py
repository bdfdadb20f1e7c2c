"""Everything that is done to the daemons and to their server, each thing short and undone at its end."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from contextlib import closing, suppress

import mysql.connector

from tests.faults.fleet import LEASE, Fleet
from tests.support.proxy import Link


class Harm:
    """Harms a fleet, as a seeded generator of chance decides.

    Args:
        kinds: names of the methods to choose from.
    """

    def __init__(self, fleet: Fleet, rng: random.Random, kinds: list[str]) -> None:
        self._fleet, self._rng = fleet, rng
        self._kinds: list[Callable[[], None]] = [getattr(self, kind) for kind in kinds]
        self._later: list[threading.Timer] = []

    def one(self) -> None:
        """Does one thing of the kinds that were asked for."""
        with suppress(mysql.connector.Error):  # our own connections suffer too
            self._rng.choice(self._kinds)()

    def over(self) -> None:
        """Waits until all is undone."""
        for timer in self._later:
            timer.join()
        self._fleet.proxy.rule = _harmless

    # ------------------------------------------------------------------ the server and the way to it

    def cut(self) -> None:
        """For a while connections are cut: before, in, or after any statement, COMMITs above all."""
        often = self._rng.choice([0.005, 0.02])
        chance = random.Random(self._rng.random())

        def rule(link: Link, statement: bytes) -> str | None:
            commits = bool(link.transaction) and statement.lower() == b"commit"
            harmed = chance.random() < (often * 5 if commits else often)
            return chance.choice(["before", "after", "half"]) if harmed else None

        self._fleet.proxy.rule = rule
        self._then(0.2, 1.5, lambda: setattr(self._fleet.proxy, "rule", _harmless))

    def cut_all(self) -> None:
        """All connections end at once."""
        self._fleet.proxy.cut_all()

    def kill_connections(self) -> None:
        """Some connections, or what they are at, are killed by the server."""
        server = self._fleet.server
        ids = server.run("SELECT id FROM information_schema.processlist WHERE user = %s", (self._fleet.user,))
        for (number,) in self._rng.sample(ids, min(len(ids), self._rng.choice([1, 3, 40]))):
            with suppress(mysql.connector.Error):  # it has gone by itself
                server.run(f"KILL {self._rng.choice(['CONNECTION', 'QUERY'])} {number}")

    def read_only(self) -> None:
        """The server takes no writes for a while."""
        self._fleet.server.run("SET GLOBAL read_only = 1")
        self._then(0.1, 1.5, lambda: self._fleet.server.run("SET GLOBAL read_only = 0"))

    def lock_rows(self) -> None:
        """A stranger locks rows, or a whole stretch of the index, and keeps his transaction open."""
        connection = self._fleet.server.connect(self._fleet.database, autocommit=False)
        stretch = "WHERE queue = 'default' AND priority = 2 ORDER BY lane, available_at LIMIT 20 FOR UPDATE"
        some = "ORDER BY RAND() LIMIT 3 FOR UPDATE"
        with closing(connection.cursor(buffered=True)) as cursor:
            cursor.execute(f"SELECT id FROM qd_jobs {self._rng.choice([stretch, some])} SKIP LOCKED")
        self._then(0.3, 4.0, connection.close)

    def open_insert(self) -> None:
        """A stranger has put a job in, and rolls back much later."""
        connection = self._fleet.server.connect(self._fleet.database, autocommit=False)
        with closing(connection.cursor()) as cursor:
            cursor.execute("INSERT INTO qd_jobs (type) VALUES ('work')")
        self._then(0.3, 4.0, connection.close)

    # ------------------------------------------------------------------ the daemons

    def reload(self) -> None:
        """A daemon gets another configuration."""
        self._fleet.reload(self._any(), self._rng.choice(["auto", 5, 50]))

    def kill(self) -> None:
        """A daemon is killed, and started again."""
        self._fleet.kill(self._any())

    def freeze(self) -> None:
        """A daemon stands still for up to two leases, which is long enough to lose them."""
        daemon = self._fleet.freeze(self._any())
        self._then(0.2, 2 * LEASE, lambda: daemon.send(signal.SIGCONT))

    def _any(self) -> int:
        return self._rng.randrange(len(self._fleet.daemons))

    def _then(self, least: float, most: float, undo: Callable[[], object]) -> None:
        timer = threading.Timer(self._rng.uniform(least, most), undo)
        timer.start()
        self._later.append(timer)


def _harmless(link: Link, statement: bytes) -> None:
    return None
