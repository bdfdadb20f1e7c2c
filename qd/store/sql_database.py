"""What both databases do alike: stores over their own sessions, the schema's state, the outage record.

May import: this package but the drivers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from qd.store.dialect import Session
from qd.store.outage import OutageRecord
from qd.store.protocol import SchemaState
from qd.store.schema import schema_state
from qd.store.shared import Shared
from qd.store.store import SqlStore


class SqlDatabase(ABC):
    """The common part of the Database protocol; a driver adds how it opens sessions.

    Args:
        record: of its outages, which all of its sessions write.
        shared: what its stores share.
    """

    def __init__(self, record: OutageRecord, shared: Shared) -> None:
        self._record, self._shared = record, shared

    @abstractmethod
    def _session(self, name: str) -> Session:
        """A session with a connection of its own, of this name."""

    def store(self, name: str) -> SqlStore:
        """See Database."""
        return SqlStore(name, self._session(name), self._shared, lambda: self._session(name))

    def schema(self) -> SchemaState:
        """See Database."""
        session = self._session("schema")
        try:
            return session.read(lambda cursor: schema_state(cursor, session.dialect))
        finally:
            session.close()

    def up(self) -> bool:
        """See Database."""
        return self._record.up()

    def troubled_at(self) -> float:
        """See Database."""
        return self._record.troubled_at()
