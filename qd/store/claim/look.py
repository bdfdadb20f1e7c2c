"""The look: ONE non-locking statement that says which lanes have a ready row, and what is paused.

May import: candidate, dialect, marks, moments, texts, protocol, the pure modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qd.job import PRIORITIES
from qd.store.claim.candidate import POST, above
from qd.store.claim.marks import Lane, Mark
from qd.store.dialect import Cursor, Dialect
from qd.store.moments import written
from qd.store.protocol import Look, Spot
from qd.store.settle.texts import as_text

QUEUES_AT_ONCE = 100
"""Queues in one statement; SQLite takes no more than 500 parts."""

_NOW, _PAUSED = -1, -2


def look(cursor: Cursor, dialect: Dialect, begun: Mapping[Lane, Mark]) -> tuple[dict[Lane, Spot], Look]:
    """Looks at each lane from its mark up.

    Returns:
        the first ready row of each lane that has one, paused or not; and what the callers are told.
    """
    lanes = list(begun)
    first: dict[Lane, Spot] = {}
    paused: set[str] = set()
    now = ""
    for start in range(0, max(1, len(lanes)), QUEUES_AT_ONCE * len(PRIORITIES)):
        some = lanes[start : start + QUEUES_AT_ONCE * len(PRIORITIES)]
        sql, values = _statement(dialect, some, begun)
        cursor.execute(sql, values)
        for slot, due, job_id, name in cursor.fetchall():
            if slot == _NOW:
                now = now or written(due)  # the first statement's: the others' lanes are looked at no earlier
            elif slot == _PAUSED:
                paused.add(as_text(name))
            else:
                first[some[slot]] = Spot(written(due), int(job_id))
    return first, Look(_hits(first, paused), frozenset(paused), now)


def _statement(dialect: Dialect, lanes: Sequence[Lane], begun: Mapping[Lane, Mark]) -> tuple[str, list[Any]]:
    parts = [
        f"SELECT {_NOW}, {dialect.now}, 0, NULL",
        f"SELECT {_PAUSED}, NULL, 0, name FROM qd_queues WHERE paused_at IS NOT NULL",
    ]
    values: list[Any] = []
    for slot, lane in enumerate(lanes):
        bound, more = above(dialect, begun[lane].spot)
        parts.append(_first_ready(dialect, slot, bound))
        values += [*lane, *more]
    return " UNION ALL ".join(parts), values


def _first_ready(dialect: Dialect, slot: int, bound: str) -> str:
    inner = (
        f"SELECT {slot}, available_at, id, NULL FROM qd_jobs{dialect.by_lane} WHERE queue = %s AND lane = 0 "
        f"AND priority = %s AND available_at <= {dialect.now}{bound} AND type <> '{POST}' "
        "ORDER BY priority, available_at, id LIMIT 1"
    )
    return f"({inner})" if dialect.name == "mysql" else f"SELECT * FROM ({inner})"


def _hits(first: Mapping[Lane, Spot], paused: set[str]) -> dict[str, dict[int, Spot]]:
    hits: dict[str, dict[int, Spot]] = {}
    for (queue, priority), spot in first.items():
        if queue not in paused:
            hits.setdefault(queue, {})[priority] = spot
    return hits
