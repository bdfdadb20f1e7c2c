"""The caller's own DB-API cursor, whichever driver it is of: what enqueue and complete run on.

It belongs to a transaction of the application: nothing here commits, rolls back or connects, and
the driver's own exceptions pass through. May import: errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qd.errors import BadInput

_DRIVERS = {"mysql.connector": "mysql", "pymysql": "mysql", "MySQLdb": "mysql", "sqlite3": "sqlite"}
_DRIVERS |= {"qd.store.mysql": "mysql", "qd.store.sqlite": "sqlite"}  # a Client's
_UNWRAP = 4  # a framework's cursor around the driver's, e.g. Django's with its debug wrapper


class CallersCursor:
    """Runs `%s` statements on a cursor of MySQL Connector, PyMySQL, mysqlclient or sqlite3.

    Attributes:
        raw: the driver's cursor.
        sqlite: whether it is sqlite3's; else MySQL's or MariaDB's.

    Raises:
        BadInput: it is none of these.
    """

    def __init__(self, cursor: Any) -> None:
        self.raw = _driver_cursor(cursor)
        self.sqlite = _family(self.raw) == "sqlite"

    def execute(self, sql: str, params: Sequence[Any] = ()) -> None:
        """Runs one statement whose only `%` are those of its placeholders."""
        self.raw.execute(sql.replace("%s", "?") if self.sqlite else sql, tuple(params))

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows of the last statement, whatever shape this cursor gives them."""
        return [_tuple(row) for row in self.raw.fetchall()]

    @property
    def prepares(self) -> bool:
        """Whether it sends prepared statements, which MySQL Connector is slow to make of many rows."""
        return "Prepared" in type(self.raw).__name__

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        return int(self.raw.rowcount)

    @property
    def last_id(self) -> int:
        """The (first) id that the last INSERT made, or what it set LAST_INSERT_ID to."""
        return int(self.raw.lastrowid)


def table(name: str, database: str | None) -> str:
    """The name of a table of qd's for a statement, in another database where one is given.

    Raises:
        BadInput: no database can be named so.
    """
    if database is None:
        return name
    if not isinstance(database, str) or not 0 < len(database) <= 64 or set(database) & set("`\"'%\x00\\"):
        raise BadInput(f"database: {database!r} is not allowed; give the bare name of a database")
    return f"`{database}`.{name}"


def errno(error: BaseException) -> int | None:
    """The server's or driver's number of an error, whichever driver raised it."""
    number = getattr(error, "errno", None)
    if number is None and error.args and isinstance(error.args[0], int):
        number = error.args[0]
    return number if isinstance(number, int) else None


def _driver_cursor(cursor: Any) -> Any:
    inner = cursor
    for _ in range(_UNWRAP):
        if _family(inner) is not None:
            return inner
        inner = getattr(inner, "cursor", None)
    raise BadInput(
        f"cursor: {type(cursor).__module__}.{type(cursor).__qualname__} is not one; "
        "give a cursor of MySQL Connector, PyMySQL, mysqlclient or sqlite3"
    )


def _family(cursor: Any) -> str | None:
    if not callable(getattr(cursor, "execute", None)) or not hasattr(cursor, "fetchall"):
        return None  # a connection, whose `execute` in sqlite3 would do, but whose `lastrowid` is missing
    for kind in type(cursor).__mro__:
        if kind.__module__.startswith("mysql.connector.aio"):
            return None
        for module, family in _DRIVERS.items():
            if kind.__module__ == module or kind.__module__.startswith(module + "."):
                return family
    return None


def _tuple(row: Any) -> tuple[Any, ...]:
    values = row.values() if isinstance(row, Mapping) else row
    return tuple(bytes(value).decode() if isinstance(value, (bytes, bytearray)) else value for value in values)
