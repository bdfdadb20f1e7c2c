"""All SQL of qd. `open_database` is the door; `qd.store.protocol` says what is behind it.

May import: this package, the pure modules, config; a driver only where it is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qd.events import Events
from qd.store.dialect import Session
from qd.store.outage import OutageRecord
from qd.store.protocol import Database

if TYPE_CHECKING:  # who only enqueues or completes with a cursor of its own needs no configuration
    from qd.config.model import DatabaseConfig


def open_database(config: DatabaseConfig, events: Events) -> Database:
    """The configured database; connects to nothing yet.

    Args:
        events: told of outages, reconnects, errors and the claim path.
    """
    if config.driver == "sqlite":
        from qd.store.sqlite.database import SqliteDatabase

        return SqliteDatabase(config, events)
    from qd.store.mysql.database import MySqlDatabase

    return MySqlDatabase(config, events)


def open_session(config: DatabaseConfig, name: str) -> Session:
    """A session for who only enqueues: connects at its first transaction, tells nobody of outages.

    Args:
        name: of its connection, seen on the server.
    """
    record = OutageRecord(Events())
    if config.driver == "sqlite":
        from qd.store.sqlite.session import SqliteSession

        return SqliteSession(name, config.path, config.statement_timeout, record)
    from qd.store.mysql.connection import connect
    from qd.store.mysql.session import MySqlSession

    return MySqlSession(name, lambda: connect(config, name), record, lambda connection, first: None)
