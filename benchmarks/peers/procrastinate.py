"""procrastinate on PostgreSQL."""

from __future__ import annotations

from benchmarks.peers.contestant import Command, Turn
from benchmarks.peers.on_postgres import PostgresPeer


class Procrastinate(PostgresPeer):
    """One process with an event loop, four jobs at a time."""

    name = adds_as = environment = package = "procrastinate"
    jobs = 5_000
    setting = "1 process, asyncio, concurrency 4"
    promise = "a killed worker's running job waits until something retries stalled jobs"
    producer = "procrastinate_app:fill"

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        options = ["--app=procrastinate_app.app", "worker", "--concurrency=4"]
        return [Command([self.program("procrastinate"), *options], self.env(turn))]

    def left(self) -> int:
        """See Contestant."""
        return int(self.backend.ask("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"))
