"""The peers that keep their jobs in Redis. May import: contestant, the Redis backend."""

from __future__ import annotations

from benchmarks.backends.redis import Redis
from benchmarks.environments import Environments
from benchmarks.peers.contestant import Peer


class RedisPeer(Peer):
    """A peer on Redis."""

    backend: Redis

    def __init__(self, environments: Environments, backend: Redis) -> None:
        super().__init__(environments)
        self.backend = backend

    @property
    def url(self) -> str:
        """See Peer."""
        return self.backend.url

    def prepare(self) -> None:
        """See Contestant."""
        super().prepare()
        self.backend.clear()
