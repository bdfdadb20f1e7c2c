"""The database on a MySQL or MariaDB server. May import: this package but the other driver."""

from __future__ import annotations

from qd.config.model import DatabaseConfig
from qd.errors import StoreError
from qd.events import Events
from qd.store.mysql.connection import Connection, connect, connector_flavour
from qd.store.mysql.errors import MIGRATOR, RIGHTS, number, sort
from qd.store.mysql.paths import Paths
from qd.store.mysql.session import READING, MySqlSession
from qd.store.outage import OutageRecord
from qd.store.protocol import ClaimPath, ServerInfo
from qd.store.schema import check_compatible, migrate
from qd.store.shared import UNKNOWN_TYPE_PATIENCE, Shared
from qd.store.sql_database import SqlDatabase

MIGRATION = 86_400.0
"""Seconds that one statement of a migration may take: an ALTER takes its time."""

NO_LOCK_WAIT = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR "
"""MariaDB only: the statement that follows waits for no row lock. MySQL has SKIP LOCKED instead."""


class MySqlDatabase(SqlDatabase):
    """See `qd.store.protocol.Database`.

    Args:
        claim_path: takes this path whatever the server can.
        pure: takes the driver's Python flavour even where its C extension loads.
        unknown_type_patience: seconds until a job of unknown type becomes a dead letter.
    """

    def __init__(
        self,
        config: DatabaseConfig,
        events: Events,
        *,
        claim_path: ClaimPath | None = None,
        pure: bool = False,
        unknown_type_patience: float = UNKNOWN_TYPE_PATIENCE,
    ) -> None:
        self._config, self._pure = config, pure
        record = OutageRecord(events)
        self._paths = Paths(self._connect, events, record, claim_path)
        self._server = "unknown"
        self._mariadb = False
        shared = Shared(
            events,
            path=self._paths.find,
            give_up_skip_locked=self._paths.give_up_skip_locked,
            impatient=lambda: NO_LOCK_WAIT if self._mariadb else "",
            unknown_type_patience=unknown_type_patience,
        )
        super().__init__(record, shared)

    def check(self) -> ServerInfo:
        """See Database."""
        check_compatible(self.schema())
        self._paths.find()
        return self.info()

    def info(self) -> ServerInfo:
        """See Database."""
        return ServerInfo(self._server, connector_flavour(pure=self._pure), self._paths.known)

    def migrate(self) -> list[str]:
        """See Database."""
        patient = self._config.model_copy(update={"statement_timeout": MIGRATION})
        connection = connect(patient, "migrate", pure=self._pure)
        try:
            return migrate(connection.cursor, MySqlSession.dialect)
        except StoreError:
            raise
        except Exception as error:  # the driver's: sorted and raised again
            raise sort(error, "migrating", hint=MIGRATOR if number(error) in RIGHTS else None) from error
        finally:
            connection.discard()

    def _session(self, name: str) -> MySqlSession:
        return MySqlSession(name, lambda: self._connect(name), self._record, self._opened)

    def _connect(self, name: str) -> Connection:
        return connect(self._config, name, pure=self._pure, autocommit=name in READING)

    def _opened(self, connection: Connection, moved: bool) -> None:
        """Where another server may answer now the marks may lie above what it has."""
        self._server, self._mariadb = connection.server, connection.mariadb
        self._paths.server_seen(connection.version)
        if moved:
            self._shared.marks.drop()
