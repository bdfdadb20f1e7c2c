"""A job's history: a JSON list of its last attempts. Pure.

Each entry has `attempt`, `start`, `end` (ISO 8601, UTC, by the database's clock), `worker` (the
claim's token), `outcome` and `error`. An entry of outcome `unknown_type` is no attempt: it tells
since when the job is put back because nobody has a handler; while that lasts it is the last one.
"""

from __future__ import annotations

from json import dumps, loads  # see `qd.payload`
from typing import Any

from qd.store.moments import stamp
from qd.store.settle.texts import fitted

LENGTH = 20
"""Entries that are kept."""

CHARACTERS = 100_000
"""What a history is kept under, whatever strangers have written into it."""

ERROR_CHARACTERS = 500
"""What is kept of an entry's error."""

UNKNOWN_TYPE = "unknown_type"
LOST = "lost"

Entry = dict[str, Any]


def entries(text: Any) -> list[Entry]:
    """What a history column holds; what isn't a list of objects counts as none."""
    try:
        found = loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def entry(attempt: int, start: Any, end: Any, token: str, outcome: str, error: str | None) -> Entry:
    """One entry; start and end as the database gave them."""
    short = fitted(error[:ERROR_CHARACTERS]) if error is not None else None
    return {
        "attempt": attempt, "start": stamp(start), "end": stamp(end),
        "worker": token, "outcome": outcome, "error": short,
    }  # fmt: skip


def appended(text: Any, one: Entry) -> str:
    """The history with one more entry, its oldest ones dropped.

    In ASCII: it travels between two tables, and must be taken by both whatever character sets they were given.
    """
    kept = [*entries(text), one][-LENGTH:]
    while len(written := dumps(kept)) > CHARACTERS and len(kept) > 1:
        kept = kept[1:]
    return written


def unknown_since(text: Any) -> Entry | None:
    """The entry that began the time in which nobody knows the type; None: there is no such time now.

    An attempt behind it ends that time: the type was known then, or the job was a dead letter and is retried.
    """
    last = next(reversed(entries(text)), None)
    return last if last is not None and last.get("outcome") == UNKNOWN_TYPE else None


def of_token(text: Any, token: str) -> str | None:
    """The outcome that the entry of this claim tells, or None if it has none."""
    return next((one.get("outcome") for one in entries(text) if one.get("worker") == token), None)
