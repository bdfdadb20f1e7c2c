"""The embedded database: a SQLite file. May import: this package but the other driver."""

from __future__ import annotations

import sqlite3

from qd.config.model import DatabaseConfig
from qd.events import Events
from qd.store.outage import OutageRecord
from qd.store.protocol import ClaimPath, SchemaState, ServerInfo
from qd.store.schema import check_compatible, migrate, schema_state
from qd.store.shared import UNKNOWN_TYPE_PATIENCE, Shared
from qd.store.sqlite.session import SqliteSession
from qd.store.store import SqlStore


class SqliteDatabase:
    """See `qd.store.protocol.Database`.

    Args:
        unknown_type_patience: seconds until a job of unknown type becomes a dead letter.
    """

    def __init__(
        self, config: DatabaseConfig, events: Events, *, unknown_type_patience: float = UNKNOWN_TYPE_PATIENCE
    ) -> None:
        self._config = config
        self._record = OutageRecord(events)
        self._shared = Shared(
            events,
            path=lambda: ClaimPath.SQLITE,
            give_up_skip_locked=lambda why: None,
            impatient=lambda: "",
            unknown_type_patience=unknown_type_patience,
        )

    def store(self, name: str) -> SqlStore:
        """See Database."""
        return SqlStore(name, self._session(name), self._shared)

    def check(self) -> ServerInfo:
        """See Database."""
        check_compatible(self.schema())
        return self.info()

    def info(self) -> ServerInfo:
        """See Database."""
        return ServerInfo(f"SQLite {sqlite3.sqlite_version}", "sqlite", ClaimPath.SQLITE)

    def schema(self) -> SchemaState:
        """See Database."""
        session = self._session("schema")
        try:
            return session.read(lambda cursor: schema_state(cursor, session.dialect))
        finally:
            session.close()

    def migrate(self) -> list[str]:
        """See Database."""
        session = self._session("migrate")
        try:
            return session.transaction(lambda cursor: migrate(cursor, session.dialect))
        finally:
            session.close()

    def up(self) -> bool:
        """See Database."""
        return self._record.up()

    def troubled_at(self) -> float:
        """See Database."""
        return self._record.troubled_at()

    def _session(self, name: str) -> SqliteSession:
        return SqliteSession(name, self._config.path, self._config.statement_timeout, self._record)
