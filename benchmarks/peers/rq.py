"""RQ on Redis."""

from __future__ import annotations

from benchmarks.peers.contestant import Command, Turn
from benchmarks.peers.on_redis import RedisPeer


class RQ(RedisPeer):
    """Its pool of four workers; it has no threads."""

    name = adds_as = environment = package = "rq"
    jobs = 5_000
    setting = "pool of 4 SimpleWorkers (its fastest: no fork a job)"
    promise = "a killed worker's running job becomes a failed one (no retries, as shipped)"
    producer = "rq_jobs:fill"

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        options = ["--num-workers=4", "--worker-class=rq.worker.SimpleWorker", f"--url={self.url}", "--quiet"]
        return [Command([self.program("rq"), "worker-pool", *options, "default"], self.env(turn))]

    def left(self) -> int:
        """See Contestant."""
        return self.backend.count("LLEN", "rq:queue:default") + self.backend.count("ZCARD", "rq:wip:default")
