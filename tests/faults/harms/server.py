"""Harm to the server itself."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress

import mysql.connector

from tests.faults.fleet import Fleet
from tests.faults.harms.base import Harms, Lasting, insist
from tests.faults.jobs import LEASE


class ServerHarms(Harms):
    """What its administrator, its machine and its power supply do."""

    def __init__(self, fleet: Fleet, server_in_use: threading.Lock) -> None:
        super().__init__(fleet, server_in_use)
        self._most = self.server.run("SELECT @@max_connections")[0][0]

    def server_killed(self, rng: random.Random) -> Lasting:
        """kill -9, and started again."""
        yield from self._down(rng, self.server.kill)

    def server_restarted(self, rng: random.Random) -> Lasting:
        """Stopped in order, and started again."""
        yield from self._down(rng, self.server.stop)

    def _down(self, rng: random.Random, end: Callable[[], None]) -> Lasting:
        with self.outage("down"):
            try:
                end()
                yield rng.choice([0.0, 0.5, 3.0, LEASE + 3])
            finally:
                if not self.server.running():
                    self.server.start()

    def server_frozen(self, rng: random.Random) -> Lasting:
        """It stands still, mostly for a moment."""
        yield from self._frozen(rng.uniform(0.2, 3.0))

    def server_frozen_long(self, rng: random.Random) -> Lasting:
        """It stands still for so long that on its return every lease has run out."""
        yield from self._frozen(rng.uniform(LEASE + 1, 2 * LEASE))

    def _frozen(self, seconds: float) -> Lasting:
        with self.outage("frozen"):
            self.server.freeze()
            try:
                yield seconds
            finally:
                self.server.thaw()

    def read_only(self, rng: random.Random) -> Lasting:
        """It takes no writes, as a primary that was demoted."""
        try:
            self.server.run("SET GLOBAL read_only = 1")
            yield rng.choice([0.1, 1.5, 5.0])
        finally:
            insist(lambda: self.server.run("SET GLOBAL read_only = 0"))

    def connections_used_up(self, rng: random.Random) -> Lasting:
        """No new connection is to be had; often at the very moment when all are needed."""
        own = self.server.connect(autocommit=True)
        try:
            cursor = own.cursor()
            cursor.execute("SET GLOBAL max_connections = 10")
            if rng.random() < 0.5:
                for member in self.fleet.members:
                    member.proxy.cut_all()
            yield rng.choice([0.3, 2.0, 6.0])
            cursor.execute(f"SET GLOBAL max_connections = {self._most}")
        finally:
            with suppress(mysql.connector.Error):
                own.close()
            insist(lambda: self.server.run(f"SET GLOBAL max_connections = {self._most}"))

    def connections_killed(self, rng: random.Random) -> Lasting:
        """Some connections, or what they are at, are killed, whatever they are doing."""
        accounts = [member.account for member in self.fleet.members]
        marks = ", ".join(["%s"] * len(accounts))
        ids = self.server.run(f"SELECT id FROM information_schema.processlist WHERE user IN ({marks})", tuple(accounts))
        for (number,) in rng.sample(ids, min(len(ids), rng.choice([1, 3, 60]))):
            with suppress(mysql.connector.Error):  # it has gone by itself
                self.server.run(f"KILL {rng.choice(['CONNECTION', 'QUERY'])} {number}")
        yield 0.0
