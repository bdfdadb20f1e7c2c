"""What differs between the databases in otherwise equal SQL, and the session they run in.

Statements are written once, with `%s` placeholders and a dialect's pieces put in with f-strings
(pieces are constants of this package, never data). May import: the pure modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Cursor(Protocol):
    """The part of a DB-API cursor that the package uses; SQL has `%s` placeholders everywhere."""

    @property
    def rowcount(self) -> int: ...
    @property
    def lastrowid(self) -> int | None: ...
    def execute(self, sql: str, params: Sequence[Any] = ...) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Session(Protocol):
    """One named connection that opens itself, pins its settings and sorts its errors.

    Attributes:
        urgent: leases run out while it is away, so a server that is too full is asked again soon all the same.
    """

    dialect: Dialect
    urgent: bool

    def transaction(self, work: Callable[[Cursor], T]) -> T:
        """Runs `work` and commits; rolls back or discards the connection on any error.

        A connection found dead before the first statement took effect is opened again and `work`
        run once more; nothing else is retried here, so `work` must be safe to run twice.

        Raises:
            StoreError: sorted by errno, see qd.errors.
        """
        ...

    def read(self, work: Callable[[Cursor], T]) -> T:
        """The same for work that only reads: it takes no lock, and its success doesn't show that
        the server takes writes."""
        ...

    def close(self) -> None:
        """Closes the connection in a bounded time."""
        ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """SQL pieces of one database.

    Attributes:
        now: the database's now, comparable with due times.
        after: now plus a span; has one placeholder, whose value `span` makes from seconds.
        lock: ` FOR UPDATE` or nothing.
        skip_locked: ` FOR UPDATE SKIP LOCKED` or nothing.
        by_lane: index hint for (queue, lane, priority, available_at), or nothing.
        age: seconds from a due time to now, as a float; has one `{}` for the column.
    """

    name: str
    now: str
    after: str
    lock: str
    skip_locked: str
    by_lane: str
    age: str

    def span(self, seconds: float) -> Any:
        """The value for `after`'s placeholder."""
        return round(seconds * 1_000_000) if self.name == "mysql" else f"{seconds:+.3f} seconds"

    def moment(self, value: Any) -> datetime | None:
        """A due time as the database gave it, as an aware UTC datetime."""
        if value is None:
            return None
        stamp = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return stamp.replace(tzinfo=timezone.utc)


MYSQL = Dialect(
    name="mysql",
    now="NOW(6)",
    after="NOW(6) + INTERVAL %s MICROSECOND",
    lock=" FOR UPDATE",
    skip_locked=" FOR UPDATE SKIP LOCKED",
    by_lane=" FORCE INDEX (qd_jobs_claim)",
    age="TIMESTAMPDIFF(MICROSECOND, {}, NOW(6)) / 1e6",
)
"""MySQL and MariaDB; every session's time_zone is '+00:00'."""

SQLITE = Dialect(
    name="sqlite",
    now="strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
    after="strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s)",
    lock="",
    skip_locked="",
    by_lane=" INDEXED BY qd_jobs_claim",
    age="(julianday('now') - julianday({})) * 86400.0",
)
"""SQLite: due times are UTC text in milliseconds, which compares as time; `%%` is a literal %."""
