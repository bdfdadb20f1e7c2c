"""Lets an engine's work begin once the database is as it should be, and watches that it stays so.

May import: store protocol and schema, and the pure modules.
"""

from __future__ import annotations

from collections.abc import Callable

from qd.errors import SetupWrong, TransactionFailed
from qd.events import Events, Problem
from qd.store.protocol import Database
from qd.store.schema import check_compatible

SCHEMA_EVERY = 10.0
"""Seconds between looks at the schema's version: it may be changed under a running daemon."""

WRONG_EVERY = 10.0
"""Seconds between tries while credentials, database or schema are wrong: a person must act."""


CHANGING_EVERY = 2.0
"""Seconds between tries while somebody changes a table: an ALTER holds it for a moment, at its beginning and end."""


class Opener:
    """A `Service`.

    Args:
        begin: called when the database is as it should be, until it has been through once.

    Attributes:
        opened: work has begun.
        reason: why it can't, or None.
        incompatible: why this qd can't work with the schema any more, or None.
    """

    name = "opener"

    def __init__(self, database: Database, begin: Callable[[], None], events: Events) -> None:
        self._database, self._begin, self._events = database, begin, events
        self.opened = False
        self.reason: str | None = None
        self.incompatible: str | None = None

    def run_once(self) -> float:
        """Checks; seconds until the next check."""
        try:
            if self.opened:
                self._look_again()
            else:
                self._check()
        except SetupWrong as error:
            self._wrong(error)
            return WRONG_EVERY
        except TransactionFailed as error:  # neither right nor wrong: while it works, what it knew stands
            if not self.opened:
                self._wrong(error)
            return CHANGING_EVERY
        self.reason = None
        return SCHEMA_EVERY

    def close(self) -> None:
        """Nothing of its own to close."""

    def _wrong(self, error: SetupWrong | TransactionFailed) -> None:
        """Says once what no connection has said: the server answers, and what it answers is wrong."""
        unsaid = error.errno is None or isinstance(error, TransactionFailed)
        if unsaid and self._database.up() and self.reason != str(error):
            self._events.publish(Problem("database", str(error)))
        self.reason = str(error)

    def _check(self) -> None:
        self.reason = self.reason or "waiting for database"
        self._database.check()
        try:
            self._begin()
        except Exception as error:  # a thread that can't be started: said by ours, and tried again
            self.reason = f"work can't begin: {error}"
            raise
        self.opened = True

    def _look_again(self) -> None:
        state = self._database.schema()
        try:
            check_compatible(state)
        except SetupWrong as error:
            if state.version:
                self.incompatible = str(error)
            raise
