"""Dramatiq on Redis."""

from __future__ import annotations

from benchmarks.peers.contestant import Command, Turn
from benchmarks.peers.on_redis import RedisPeer


class Dramatiq(RedisPeer):
    """One process with four threads."""

    name = adds_as = environment = package = "dramatiq"
    jobs = 20_000
    setting = "1 process, 4 threads, dramatiq_queue_prefetch=100 (with the 8 it ships with it rests between fetches)"
    producer = "dramatiq_actors:fill"

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        options = ["--processes=1", "--threads=4"]
        env = self.env(turn) | {"dramatiq_queue_prefetch": "100"}
        return [Command([self.program("dramatiq"), "dramatiq_actors", *options], env)]

    def left(self) -> int:
        """See Contestant."""
        return self.backend.count("HLEN", "dramatiq:default.msgs")
