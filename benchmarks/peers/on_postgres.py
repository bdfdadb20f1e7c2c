"""The peers that keep their jobs in PostgreSQL. May import: contestant, the PostgreSQL backend."""

from __future__ import annotations

from benchmarks.backends.postgres import Postgres
from benchmarks.environments import Environments
from benchmarks.peers.contestant import Peer


class PostgresPeer(Peer):
    """A peer on PostgreSQL, with a fresh database for each turn."""

    backend: Postgres

    def __init__(self, environments: Environments, backend: Postgres) -> None:
        super().__init__(environments)
        self.backend = backend

    @property
    def url(self) -> str:
        """See Peer."""
        return self.backend.url

    def prepare(self) -> None:
        """See Contestant."""
        super().prepare()
        self.backend.new_database()
