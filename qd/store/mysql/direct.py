"""A cursor right on the driver's C extension, for the statements that jobs go through.

The driver's own cursor spends some 40 us of Python on each statement and 1.5 us on each row, which at thousands
of jobs a second is more than all of qd: it looks for several statements in one, for result sets that nobody has
read, for vectors in each column. qd sends one statement at a time and reads it whole. What is left is the C
extension's: quoting, sending, conversion, errors. Where it isn't there, or has changed, the driver's own cursor
serves as well. See docs/decisions/0004-a-cursor-on-the-c-extension.md. May import: nothing of qd.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from mysql.connector.errors import Error, ProgrammingError, get_mysql_exception

NEEDED = (
    "query", "convert_to_mysql", "have_result_set", "fetch_row", "free_result", "num_rows", "affected_rows", "insert_id"
)  # fmt: skip
"""What the C extension's connection must have."""


class DirectCursor:
    """One statement at a time; its rows are read before `execute` returns.

    Args:
        extension: the C extension's connection.

    Attributes:
        rowcount: rows that were found, or that a statement has met.
        lastrowid: the id that an INSERT was given; 0 or None where there was none.
    """

    def __init__(self, extension: Any) -> None:
        self._extension = extension
        self._rows: list[Any] = []
        self.rowcount = -1
        self.lastrowid: int | None = None

    def execute(self, sql: str, params: Sequence[Any] = ()) -> None:
        """Sends one statement and takes its answer.

        Raises:
            mysql.connector.Error: as the driver's cursor.
        """
        extension = self._extension
        try:
            statement = _filled(sql, extension.convert_to_mysql(*params)) if params else sql.encode()
            extension.query(statement, raw=False, buffered=True, raw_as_string=False, query_attrs=[])
            if extension.have_result_set:
                self._read(extension)
            else:
                self._rows = []
                self.rowcount, self.lastrowid = extension.affected_rows(), extension.insert_id()
        except Exception as error:  # the extension's own kind is turned into the driver's, as its cursor does
            errno = getattr(error, "errno", None)
            if errno is None or isinstance(error, OSError | Error):
                raise
            raise get_mysql_exception(errno, msg=error.msg, sqlstate=error.sqlstate) from error  # type: ignore[attr-defined]

    def _read(self, extension: Any) -> None:
        rows, fetch = [], extension.fetch_row
        while (row := fetch()) is not None:
            rows.append(row)
        extension.free_result()
        self._rows, self.rowcount, self.lastrowid = rows, len(rows), None

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self._rows.pop(0) if self._rows else None

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        rows, self._rows = self._rows, []
        return rows


def direct_cursor(connection: Any) -> DirectCursor | None:
    """A cursor right on a connection's C extension; None where there is none such.

    Args:
        connection: the driver's, of either flavour.
    """
    extension = getattr(connection, "_cmysql", None)
    if extension is None or not all(hasattr(extension, name) for name in NEEDED):
        return None
    if connection.converter is not None:  # then the driver converts in Python
        return None
    return DirectCursor(extension)


def _filled(sql: str, values: Sequence[bytes]) -> bytes:
    try:
        return _template(sql) % tuple(values)
    except TypeError as error:  # too few of them, or too many
        raise ProgrammingError(f"{sql.count('%s')} placeholders for {len(values)} values") from error


@lru_cache(maxsize=256)
def _template(sql: str) -> bytes:
    """The statement, ready for `%`: only `%s` is a placeholder."""
    return sql.replace("%", "%%").replace("%%s", "%s").encode()
