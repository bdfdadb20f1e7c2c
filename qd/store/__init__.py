"""All SQL of qd. `open_database` is the door; `qd.store.protocol` says what is behind it.

May import: the pure modules, config.
"""

from __future__ import annotations

from qd.config.model import DatabaseConfig
from qd.events import Events
from qd.store.protocol import Database


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
