"""The same SQL as qd's without any queue around it: what the server gives at most. See benchmarks/raw.py."""

from __future__ import annotations

import sys

from benchmarks.backends.mariadb import MariaDB
from benchmarks.peers.contestant import Command, Contestant, Turn, filled
from benchmarks.peers.on_mariadb import LEFT, own_env, url


class RawLoop(Contestant):
    """One process with four threads.

    Args:
        batch: rows in a transaction.
        jobs: at full scale.
    """

    backend: MariaDB
    adds_as = None

    def __init__(self, backend: MariaDB, batch: int, jobs: int = 50_000) -> None:
        self.backend, self._batch, self.jobs = backend, batch, jobs
        self.name = f"raw.{batch}"
        self.setting = f"no queue around it: 4 threads, {batch} row{'s' if batch > 1 else ''} in a transaction"

    def prepare(self) -> None:
        """See Contestant."""
        self.backend.new_database()

    def fill(self, turn: Turn) -> dict[str, float]:
        """See Contestant."""
        return filled([sys.executable], "qd_jobs:fill", own_env(self.backend, turn), turn)

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        options = ["--url", url(self.backend), "--threads", "4", "--batch", str(self._batch)]
        return [Command([sys.executable, "-m", "benchmarks.raw", *options], own_env(self.backend, turn))]

    def left(self) -> int:
        """See Contestant."""
        return self.backend.count(LEFT)

    def who(self) -> str:
        """See Contestant."""
        return "a loop of the same SQL"
