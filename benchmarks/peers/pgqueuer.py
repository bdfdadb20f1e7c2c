"""pgqueuer on PostgreSQL."""

from __future__ import annotations

from benchmarks.backends.postgres import Postgres
from benchmarks.environments import Environments
from benchmarks.peers.contestant import Command, Turn
from benchmarks.peers.on_postgres import PostgresPeer


class PgQueuer(PostgresPeer):
    """Its processes with an event loop each, and a batch size.

    Args:
        batch: jobs taken at once; 10 is what it ships with.
        processes: how many side by side.
        jobs: at full scale.
    """

    environment = package = "pgqueuer"
    producer = "pgqueuer_jobs:fill"

    def __init__(
        self, environments: Environments, backend: Postgres, batch: int, processes: int = 1, jobs: int = 50_000
    ) -> None:
        super().__init__(environments, backend)
        self._batch, self._processes, self.jobs = batch, processes, jobs
        self.name = f"pgqueuer.{batch}" + (f".{processes}workers" if processes > 1 else "")
        self.adds_as = "pgqueuer" if batch == 10 else None
        # Its small batches go faster over one connection, its large ones over a pool: each takes its better one.
        self._factory, over = ("single", "one connection") if batch < 100 else ("pooled", "a pool of connections")
        self.setting = f"{processes} process{'es' if processes > 1 else ''}, asyncio, {over}, batch {batch}"

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        argv = [self.program("pgq"), "run", f"pgqueuer_jobs:{self._factory}", f"--batch-size={self._batch}"]
        return [Command(argv, self.env(turn))] * self._processes

    def left(self) -> int:
        """See Contestant."""
        return int(self.backend.ask("SELECT count(*) FROM pgqueuer"))
