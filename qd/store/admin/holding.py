"""SQL that tells who holds what: jobs under a living lease, and unique keys.

Each function runs inside a transaction that its caller (`AdminVerbs`) opens. May import: dialect,
protocol, texts.
"""

from __future__ import annotations

from collections.abc import Sequence

from qd.store.dialect import Cursor, Dialect
from qd.store.protocol import Holder
from qd.store.settle.texts import as_text

COUNTED = 10_000
"""Rows that are looked at of each queue: more than all threads of many daemons hold."""


def holders(cursor: Cursor, dialect: Dialect, queues: Sequence[str]) -> list[Holder]:
    """Who holds jobs of these queues, by name and thread."""
    found: dict[tuple[str, str], Holder] = {}
    for queue in queues:
        cursor.execute(
            f"SELECT reserved_by, {dialect.age.format('reserved_at')} FROM qd_jobs{dialect.by_lane} "
            f"WHERE queue = %s AND lane = 1 AND available_at > {dialect.now} LIMIT {COUNTED}",
            (queue,),
        )
        for token, age in cursor.fetchall():
            owner = _owner(as_text(token))
            before = found.get(owner, Holder(owner[0], 0, 0.0))
            longest = max(before.longest, float(age or 0))
            found[owner] = Holder(owner[0], before.jobs + 1, longest, owner[1], before.queues | {queue})
    return [found[owner] for owner in sorted(found)]


def _owner(token: str) -> tuple[str, str]:
    """`host:pid:nonce` of a token, and its thread, in whose name there may be colons too."""
    host, pid, nonce, thread, *_ = [*token.split(":", 3), "", "", "", ""]
    return ":".join(filter(None, (host, pid, nonce))), thread.rpartition(":")[0]


def key_holder(cursor: Cursor, dialect: Dialect, queue: str, unique_key: str) -> int | None:
    """The job that has a unique key of a queue; None: nobody has."""
    column = "unique_queue" if dialect.name == "mysql" else "queue"  # as the index has it
    cursor.execute(f"SELECT id FROM qd_jobs WHERE {column} = %s AND unique_key = %s", (queue, unique_key))
    row = cursor.fetchone()
    return None if row is None else int(row[0])
