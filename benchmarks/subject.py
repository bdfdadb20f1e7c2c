"""A database with the stores that a daemon's poller and one of its workers have, driven by one thread.

What is timed are the calls that those two make, each one transaction with its COMMIT: `look`, `claim`, `turn_over`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager

from qd.events import Events
from qd.job import ClaimedJob
from qd.outcome import Action, Outcome, OutcomeKind, Settlement, Verdict
from qd.store.mysql.database import MySqlDatabase
from qd.store.protocol import Claim, Look
from tests.support.private import PrivateServer

QUEUES = ("default", "mails", "reports", "slow")
"""What the poller looks at; the jobs are in the first."""

QUEUE = QUEUES[0]
NORMAL = 2
"""The priority that a job has by itself."""

LEASE = 90.0
MAX_ATTEMPTS = 3

_ROW = f"('{QUEUE}', 'noop')"
_DONE = Outcome(OutcomeKind.SUCCEEDED, seconds=0.001)


class Subject:
    """A new database on a server; `close` drops it."""

    def __init__(self, server: PrivateServer) -> None:
        self.server = server
        self.config = server.config(server.new_database())
        database = MySqlDatabase(self.config, Events())
        database.check()
        self.poller, self.worker = database.store("poller"), database.store("worker")
        self.poller.ensure_posts(QUEUES)
        self._stranger = server.connect(self.config.name, autocommit=True)
        self._cursor = self._stranger.cursor()
        self._tokens = itertools.count(1)
        self.poller.look(QUEUES, full=True)  # as a daemon's first look is

    def run(self, sql: str) -> None:
        """A stranger's statement, committed."""
        self._cursor.execute(sql)

    def put_in(self, count: int) -> None:
        """Fresh jobs, as a producer puts them in."""
        self.run(f"INSERT INTO qd_jobs (queue, type) VALUES {', '.join([_ROW] * count)}")

    def look(self, *, full: bool = False) -> Look:
        """What the poller does."""
        return self.poller.look(QUEUES, full=full)

    def claim(self, limit: int, priority: int = NORMAL) -> list[ClaimedJob]:
        """What a worker does about a hit."""
        return self.worker.claim(self._wish(limit, priority))

    def finish(self, jobs: list[ClaimedJob]) -> None:
        """What a worker does at the end of a batch that nothing follows; every job must be his still."""
        verdicts = self.worker.settle(_ends(jobs))
        assert all(verdict is Verdict.SETTLED for verdict in verdicts), verdicts

    def turn_over(self, jobs: list[ClaimedJob], limit: int, priority: int = NORMAL) -> list[ClaimedJob]:
        """What a worker does at the end of every other batch: he finishes it, and claims the next one with that."""
        verdicts, claimed = self.worker.turn_over(_ends(jobs), self._wish(limit, priority))
        assert all(verdict is Verdict.SETTLED for verdict in verdicts), verdicts
        assert claimed is not None, "this server can't finish and claim in one transaction"
        return claimed

    def _wish(self, limit: int, priority: int) -> Claim:
        token = f"here:1:0123456789:default-1:{next(self._tokens)}"
        return Claim(QUEUE, limit, LEASE, token, MAX_ATTEMPTS, (priority,))

    def drain(self, count: int, batch: int = 100) -> None:
        """Claims and finishes that many."""
        self.look(full=True)
        while count > 0:
            jobs = self.claim(min(batch, count))
            assert jobs, f"{count} of the rows that are to be drained are not there"
            self.finish(jobs)
            count -= len(jobs)

    @contextmanager
    def foreign_snapshot(self) -> Iterator[None]:
        """Held by another session, as a long dump does: from its begin on nothing is purged."""
        with closing(self.server.connect(self.config.name)) as connection, closing(connection.cursor()) as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("SELECT COUNT(*) FROM qd_queues")
            cursor.fetchall()
            yield
            connection.rollback()

    def close(self) -> None:
        """Drops the database."""
        for store in (self.poller, self.worker):
            store.close()
        self._stranger.close()
        self.server.drop_database(self.config.name)


def whole(limit: int, jobs: list[ClaimedJob]) -> list[ClaimedJob]:
    """The jobs of a claim that must have brought as many as it asked for."""
    assert len(jobs) == limit, f"{len(jobs)} jobs where {limit} are there"
    return jobs


def _ends(jobs: list[ClaimedJob]) -> list[Settlement]:
    return [Settlement(job, Action.FINISH, _DONE) for job in jobs]
