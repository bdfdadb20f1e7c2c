"""Celery on Redis."""

from __future__ import annotations

from benchmarks.peers.contestant import Command, Turn
from benchmarks.peers.on_redis import RedisPeer


class Celery(RedisPeer):
    """Its worker with four processes, which is its normal way."""

    name = adds_as = environment = package = "celery"
    jobs = 20_000
    setting = "prefork, 4 processes, prefetch x64"
    promise = "a killed worker's running job is lost (acks_late off, as shipped)"
    producer = "celery_app:fill"

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        options = ["--pool=prefork", "--concurrency=4", "--prefetch-multiplier=64", *quiet]
        return [Command([self.program("celery"), "--app=celery_app", "worker", *options], self.env(turn))]

    def left(self) -> int:
        """See Contestant."""
        return self.backend.count("LLEN", "celery") + self.backend.count("HLEN", "unacked")
