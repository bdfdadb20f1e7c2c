"""Huey on Redis."""

from __future__ import annotations

from benchmarks.backends.redis import Redis
from benchmarks.environments import Environments
from benchmarks.peers.contestant import Command, Turn
from benchmarks.peers.on_redis import RedisPeer


class Huey(RedisPeer):
    """One process with four threads.

    Args:
        suffix: of the row's name.
        jobs: at full scale.
    """

    environment = package = "huey"
    setting = "1 process, 4 threads, quiet (else it logs each job)"
    promise = "a killed worker's running jobs are lost (it takes them off the list)"
    producer = "huey_tasks:fill"

    def __init__(self, environments: Environments, backend: Redis, suffix: str = "", jobs: int = 50_000) -> None:
        super().__init__(environments, backend)
        self.name = self.adds_as = f"huey{suffix}"
        self.jobs = jobs

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        options = ["--workers=4", "--worker-type=thread", "--quiet"]
        return [Command([self.program("huey_consumer"), "huey_tasks.huey", *options], self.env(turn))]

    def left(self) -> int:
        """See Contestant."""
        return self.backend.count("LLEN", "huey.redis.bench")
