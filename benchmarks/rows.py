"""Rows that a regime's table is filled with, by statements that every server takes. Knows qd's tables only by SQL."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[[str], object]
"""Runs one statement and commits."""

ELSEWHERE = "elsewhere:"
"""How the tokens of those begin who hold reserved rows."""

AT_ONCE = 100_000
"""Rows in one transaction, where a regime doesn't ask for all in one."""


def sequence(count: int, first: int = 1) -> str:
    """A derived table `s` whose column `seq` counts from `first`, `count` rows."""
    places = max(1, len(str(count - 1)))
    digits = " UNION ALL ".join(f"SELECT {digit} AS n" for digit in range(10))
    tables = " JOIN ".join(f"({digits}) d{place}" for place in range(places))
    total = " + ".join(f"{10**place} * d{place}.n" for place in range(places))
    return f"(SELECT {first} + {total} AS seq FROM {tables} HAVING seq < {first + count}) s"


def ready(run: Run, count: int, *, queue: str = "default", priority: int = 2) -> None:
    """Due for ten minutes and less, each at a moment of its own, the oldest first."""
    moment = "NOW(6) - INTERVAL 10 MINUTE + INTERVAL seq * 100 MICROSECOND"
    _insert(run, count, f"'{queue}', {priority}, 0, NULL, {moment}")


def delayed(run: Run, count: int, *, queue: str = "default") -> None:
    """Due in ten hours and later."""
    _insert(run, count, f"'{queue}', seq % 4, 0, NULL, NOW(6) + INTERVAL 36000 + seq % 36000 SECOND")


def reserved(run: Run, count: int, *, queue: str = "default") -> None:
    """In the hands of somebody whose leases last for ten hours and longer."""
    columns = f"'{queue}', seq % 4, 1, CONCAT('{ELSEWHERE}1:0123456789:default-1:', seq)"
    _insert(run, count, f"{columns}, NOW(6) + INTERVAL 36000 + seq % 3600 SECOND")


def at_one_moment(run: Run, count: int, *, queue: str = "default") -> None:
    """Due now, all in one statement, so that all share a due time."""
    run(f"INSERT INTO qd_jobs (queue, type) SELECT '{queue}', 'noop' FROM {sequence(count)}")


def _insert(run: Run, count: int, values: str) -> None:
    for first in range(1, count + 1, AT_ONCE):
        some = sequence(min(AT_ONCE, count + 1 - first), first)
        columns = "type, queue, priority, lane, reserved_by, available_at"
        run(f"INSERT INTO qd_jobs ({columns}) SELECT 'noop', {values} FROM {some}")
