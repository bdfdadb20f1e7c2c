"""Statements on several rows by primary key, none of which can become a scan.

A bare `id IN (...)` may be planned as a walk over the whole (nearly empty) table, which then waits
for every stranger's open INSERT. A derived table of the ids, joined in this order and over the
primary key, can't. May import: dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")

AT_ONCE = 200
"""Rows in one statement."""


@lru_cache(maxsize=1024)
def listed(rows: int, *columns: str) -> str:
    """A derived table's SELECT with placeholders: `SELECT %s AS id, ... UNION ALL SELECT %s, ...`."""
    first = ", ".join(f"%s AS {column}" for column in columns)
    more = ", ".join("%s" for _ in columns)
    return " UNION ALL ".join([f"SELECT {first}", *[f"SELECT {more}"] * (rows - 1)])


def joined(rows: int, *columns: str, table: str = "qd_jobs") -> str:
    """`(the list) d STRAIGHT_JOIN qd_jobs j` over the primary key; `columns` begin with id."""
    return f"({listed(rows, *columns)}) d STRAIGHT_JOIN {table} j FORCE INDEX (PRIMARY) ON j.id = d.id"


def joined_ids(ids: Sequence[int], table: str = "qd_jobs") -> str:
    """The same for ids alone, which stand in the text itself: each placeholder costs the driver a microsecond.

    Raises:
        TypeError: one of them isn't a number.
    """
    first, *more = map(int.__repr__, ids)
    rows = " UNION ALL SELECT ".join([f"{first} AS id", *more])
    return f"(SELECT {rows}) d STRAIGHT_JOIN {table} j FORCE INDEX (PRIMARY) ON j.id = d.id"


def chunks(items: Sequence[T], size: int = AT_ONCE) -> Iterator[Sequence[T]]:
    """The items in parts that one statement takes."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def flat(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """The parameters of `listed`."""
    return [value for row in rows for value in row]
