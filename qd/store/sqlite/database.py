"""The embedded database: a SQLite file. May import: this package but the other driver."""

from __future__ import annotations

import os
import sqlite3

from qd.config.model import DatabaseConfig
from qd.events import Events
from qd.store.outage import OutageRecord
from qd.store.protocol import ClaimPath, SchemaState, ServerInfo
from qd.store.schema import check_compatible, migrate, migrations
from qd.store.shared import UNKNOWN_TYPE_PATIENCE, Shared
from qd.store.sql_database import SqlDatabase
from qd.store.sqlite.session import SqliteSession


class SqliteDatabase(SqlDatabase):
    """See `qd.store.protocol.Database`.

    Args:
        unknown_type_patience: seconds until a job of unknown type becomes a dead letter.
    """

    def __init__(
        self, config: DatabaseConfig, events: Events, *, unknown_type_patience: float = UNKNOWN_TYPE_PATIENCE
    ) -> None:
        self._config = config
        shared = Shared(
            events,
            path=lambda: ClaimPath.SQLITE,
            give_up_skip_locked=lambda why: None,
            impatient=lambda: "",
            unknown_type_patience=unknown_type_patience,
        )
        super().__init__(OutageRecord(events), shared)

    def check(self) -> ServerInfo:
        """See Database."""
        check_compatible(self.schema())
        return self.info()

    def info(self) -> ServerInfo:
        """See Database."""
        lacking = "" if self._is_there() else ", but there is no file yet"
        return ServerInfo(f"SQLite {sqlite3.sqlite_version}{lacking}", "sqlite", ClaimPath.SQLITE)

    def schema(self) -> SchemaState:
        """See Database. Where there is no file none is made, and all migrations are pending."""
        if self._is_there():
            return super().schema()
        return SchemaState(0, 0, [migration.name for migration in migrations(SqliteSession.dialect)])

    def migrate(self) -> list[str]:
        """See Database."""
        session = self._session("migrate", make=True)
        try:
            return session.transaction(lambda cursor: migrate(cursor, session.dialect))
        finally:
            session.close()

    def _is_there(self) -> bool:
        return os.path.exists(self._config.path)

    def _session(self, name: str, *, make: bool = False) -> SqliteSession:
        return SqliteSession(name, self._config.path, self._config.statement_timeout, self._record, make=make)
