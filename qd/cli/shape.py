"""Rows as people and programs see them: the stable keys of `--json`, and the words of tables.

May import: the pure modules, the protocol's values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from qd.duration import spell
from qd.job import PRIORITIES
from qd.store.protocol import SEEN_WITHIN, DaemonRow, FailedRow, JobRow, QueueDepth

SHOWN_PAYLOAD = 65_536
"""Characters of a payload that are shown to people."""

SEEN = f"been seen in the last {SEEN_WITHIN} s"
"""What a daemon has, or hasn't."""

NONE_SEEN = f"none has {SEEN}, but for such as are stopping"
"""What is so where no daemon is known; one that stops has signed off."""

_NAMES = {number: name for name, number in PRIORITIES.items()}


def priority(number: int) -> str:
    """A priority's name."""
    return _NAMES.get(number, str(number))


def stamp(moment: datetime | None) -> str | None:
    """A moment as ISO 8601 in UTC, `2026-02-03T04:05:06.789Z`."""
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def brief(moment: datetime | None) -> str:
    """A moment for a table: `2026-02-03 04:05:06Z`."""
    return "-" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%SZ")


def away(seconds: float) -> str:
    """How far a moment is from now: `in 5m`, `2h3m ago`."""
    return f"in {spell(seconds)}" if seconds > 0 else f"{spell(-seconds)} ago"


def job_json(row: JobRow | FailedRow) -> dict[str, Any]:
    """A job or dead letter: the fields of the row, moments as ISO 8601, the payload as its raw text.

    `payload_cut` is true where the list fetched only the beginning of a huge payload.
    """
    made = _plain(asdict(row))
    made["payload_cut"] = len(row.payload.encode("utf-8", "replace")) < row.payload_bytes
    return made


def payload_text(row: JobRow | FailedRow) -> str:
    """A payload for people; of a huge one only the beginning."""
    if len(row.payload) <= SHOWN_PAYLOAD:
        return row.payload
    return f"{row.payload[:SHOWN_PAYLOAD]}\n... cut; it has {row.payload_bytes:,} bytes, --json shows all"


def depth_json(depth: QueueDepth, known: bool) -> dict[str, Any]:
    """A queue with its counts; `known`: the configuration names it."""
    made = asdict(depth)
    made["oldest_ready_age"] = round(depth.oldest_ready_age, 3)
    return {**made, "known": known}


def daemon_json(row: DaemonRow) -> dict[str, Any]:
    """A running daemon."""
    return {**_plain(asdict(row)), "seen_ago": round(row.seen_ago, 3), "silent": row.silent}


def seen(row: DaemonRow) -> str:
    """When a daemon was heard last: `4s ago`, or that it is overdue: `silent for 35s`."""
    ago = spell(max(1, round(row.seen_ago)))
    return f"silent for {ago}" if row.silent else f"{ago} ago"


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: stamp(value) if isinstance(value, datetime) else value for key, value in fields.items()}
