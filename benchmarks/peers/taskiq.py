"""taskiq on Redis."""

from __future__ import annotations

from benchmarks.backends.redis import Redis
from benchmarks.environments import Environments
from benchmarks.peers.contestant import Command, Turn
from benchmarks.peers.on_redis import RedisPeer


class Taskiq(RedisPeer):
    """One process with an event loop, and its fastest broker, a list.

    Args:
        suffix: of the row's name.
        jobs: at full scale.
    """

    environment = package = "taskiq"
    setting = "1 process, asyncio with uvloop, 100 at a time (as shipped), quiet"
    promise = "a killed worker's running jobs are lost (it takes them off the list)"
    producer = "taskiq_tasks:fill"

    def __init__(self, environments: Environments, backend: Redis, suffix: str = "", jobs: int = 50_000) -> None:
        super().__init__(environments, backend)
        self.name = self.adds_as = f"taskiq{suffix}"
        self.jobs = jobs

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        options = ["--workers=1", "--log-level=WARNING"]
        return [Command([self.program("taskiq"), "worker", "taskiq_tasks:lists", *options], self.env(turn))]

    def left(self) -> int:
        """See Contestant."""
        return self.backend.count("LLEN", "taskiq")
