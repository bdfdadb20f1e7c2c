"""qd's claim and finish as bare SQL, without a queue around it: what the server and the driver give at most.

usage: python -m benchmarks.raw --url mysql://USER:PASSWORD@HOST:PORT/DATABASE [--threads 4] [--batch 100]

Each thread has a connection of its own, autocommit off, pinned as qd pins its own. A turn is ONE transaction: the
rows of the last batch are deleted under their token, the next are found and locked, marked as taken, and committed.
The SQL is that of qd/store/settle/settler.py, claim/candidate.py and claim/take.py, and must follow it. There is no
handler, no thread pool, no log, no lease, no metric; as with every contestant each job leaves its mark in a shared
file, which takes 0.1 us. Ends when there is nothing left.
"""

from __future__ import annotations

import argparse
import mmap
import os
import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import mysql.connector

from qd.config.model import DatabaseConfig
from qd.store.mysql.connection import Connection, connect
from qd.store.posts import ensure_posts

LEASE = 90_000_000
"""Microseconds, as shipped."""

AGAIN = {1205, 1213}
"""Lock waits and deadlocks: the whole transaction once more."""

SELECT = (
    "SELECT id, type, payload, priority, attempts, max_attempts, crashes, created_at, available_at, NOW(6) "
    "FROM qd_jobs FORCE INDEX (qd_jobs_claim) WHERE queue = 'default' AND lane = 0 AND priority = 2 "
    "AND available_at <= NOW(6){bound} AND type <> 'qd.post' "
    "ORDER BY priority, available_at, id LIMIT %s FOR UPDATE SKIP LOCKED"
)
BOUND = " AND (available_at > %s OR (available_at = %s AND id >= %s))"
SETTING = (
    "lane = 1, reserved_by = %s, reserved_at = NOW(6), attempts = attempts + 1, "
    "available_at = NOW(6) + INTERVAL %s MICROSECOND"
)


def joined(ids: Sequence[int]) -> str:
    """As qd/store/listed.py has it: over the primary key; the ids in the text, which the driver takes faster."""
    rows = " UNION ALL SELECT ".join(map(str, ids)).replace(" UNION", " AS id UNION", 1)
    return f"(SELECT {rows}) d STRAIGHT_JOIN qd_jobs j FORCE INDEX (PRIMARY) ON j.id = d.id"


Row = Sequence[Any]
Spot = tuple[datetime, int]


class Low:
    """Where the lane's live rows begin, for all threads; None: at its start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.spot: Spot | None = None

    def move(self, spot: Spot) -> None:
        """A full batch was taken up to here."""
        with self._lock:
            if self.spot is None or spot > self.spot:
                self.spot = spot

    def drop(self) -> None:
        """Somebody may have given rows back below it."""
        with self._lock:
            self.spot = None


class Loop:
    """One thread's work.

    Args:
        ran: the bytes that jobs mark.
    """

    def __init__(self, connection: Connection, number: int, batch: int, low: Low, ran: mmap.mmap) -> None:
        self._raw, self._cursor = connection.raw, connection.cursor
        self._number, self._batch, self._low, self._ran = number, batch, low, ran
        self._turns = 0
        self._held: list[int] = []
        self._token = ""

    def run(self) -> None:
        """Takes and deletes until there is nothing left."""
        while True:
            spot = self._low.spot
            try:
                rows = self._turn(spot)
            except mysql.connector.Error as error:
                if error.errno not in AGAIN:
                    raise
                self._raw.rollback()
                self._low.drop()
                continue
            for row in rows:
                self._ran[int(row[2])] += 1
            if not rows and not spot:
                return
            if len(rows) == self._batch:
                self._low.move((rows[-1][8], rows[-1][0]))
            else:
                self._low.drop()

    def _turn(self, spot: Spot | None) -> list[Row]:
        self._delete()
        low = (spot[0], spot[0], spot[1]) if spot else ()
        self._cursor.execute(SELECT.format(bound=BOUND if spot else ""), (*low, self._batch))
        rows = list(self._cursor.fetchall())
        ids = [row[0] for row in rows]
        token = f"raw:{os.getpid()}:{self._number}:{self._turns}"
        self._take(ids, token)
        self._raw.commit()
        self._turns += 1
        self._held, self._token = sorted(ids), token
        return rows

    def _delete(self) -> None:
        held = self._held
        if len(held) == 1:
            self._cursor.execute("DELETE FROM qd_jobs WHERE id = %s AND reserved_by = %s", (held[0], self._token))
        elif held:
            self._cursor.execute(f"DELETE j FROM {joined(held)} WHERE j.reserved_by = %s", (self._token,))
        assert not held or self._cursor.rowcount == len(held), "a row was taken twice"

    def _take(self, ids: list[int], token: str) -> None:
        if len(ids) == 1:
            self._cursor.execute(f"UPDATE qd_jobs SET {SETTING} WHERE id = %s", (token, LEASE, ids[0]))
        elif ids:
            self._cursor.execute(f"UPDATE {joined(ids)} SET {SETTING}", (token, LEASE))
        assert not ids or self._cursor.rowcount == len(ids), "a row that was locked can't be taken"


def main() -> None:
    """Runs the threads until the table is empty."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.raw")
    parser.add_argument("--url", required=True)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--batch", type=int, default=100)
    given = parser.parse_args()
    place = urlsplit(given.url)
    login = {"user": place.username, "password": place.password, "name": place.path[1:]}
    config = DatabaseConfig(driver="mysql", host=place.hostname, port=place.port, **login)
    connections = [connect(config, f"raw {number}") for number in range(given.threads)]
    ensure_posts(connections[0].cursor, ["default"])
    connections[0].commit()
    with Path(os.environ["BENCH_RAN"]).open("r+b") as file:
        ran = mmap.mmap(file.fileno(), 0)
    low = Low()
    loops = [Loop(connection, number, given.batch, low, ran) for number, connection in enumerate(connections)]
    threads = [threading.Thread(target=loop.run) for loop in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for connection in connections:
        connection.discard()


if __name__ == "__main__":
    main()
