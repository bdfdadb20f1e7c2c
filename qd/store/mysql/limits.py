"""The time limits of one connection, all from `statement_timeout`, the server's below the client's.

The server goes on with a statement that its client gave up on, its locks held: so the server has
to give up first. The driver counts in whole seconds. May import: config.
"""

from __future__ import annotations

from dataclasses import dataclass

from qd.config.model import DatabaseConfig

LONGEST_LOCK_WAIT = 3
"""Seconds that a statement waits for a row lock at most."""

IDLE = 28_800
"""Seconds that MariaDB keeps an idle connection, whatever its own setting is."""

IDLE_ON_MYSQL = 300
"""The same on MySQL, which knows no limit for an idle transaction: so long may a host that vanished
in the middle of one keep its rows locked."""

UNUSED = 150.0
"""Seconds without a statement after which a session trusts its connection no more, and opens another:
the server, or a firewall on the way, may have forgotten it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds.

    Attributes:
        connect: for each step of opening a connection.
        statement: for the client's wait on one answer, and for one write to the socket.
        server: for one statement, on the server.
        lock_wait: for one row lock.
        table_wait: for a table that is locked as a whole, or being altered.
        pause: between two statements of a transaction (MariaDB): a daemon that was frozen there, or
            whose host has vanished, must not keep its rows from the others.
    """

    connect: int
    statement: int
    server: float
    lock_wait: int
    table_wait: int
    pause: int

    @classmethod
    def of(cls, config: DatabaseConfig) -> Limits:
        """The limits that a configuration means; 1 s is the least that the driver can count."""
        statement = max(1, int(config.statement_timeout))
        return cls(
            connect=max(1, min(int(config.connect_timeout), statement)),
            statement=statement,
            server=round(statement * 0.8, 1),
            lock_wait=max(1, min(LONGEST_LOCK_WAIT, statement // 4)),
            table_wait=max(1, int(statement * 0.7)),  # below `server`, or a lock would be told as a slow statement
            pause=statement,
        )
