"""Gives a row back under its claim's token, inside a transaction that its caller opens. May import: dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qd.store.dialect import Cursor, Dialect

OURS = "reserved_by = %s"
"""The fence: the claim's token, which no other claim ever has."""


def give_back(cursor: Cursor, dialect: Dialect, job_id: int, token: str, delay: float) -> bool:
    """Ready again after `delay` seconds, its attempt given back; False: the token didn't match."""
    return ready_again(cursor, dialect, job_id, token, delay, "attempts = attempts - (attempts > 0)", ())


def ready_again(
    cursor: Cursor, dialect: Dialect, job_id: int, token: str, delay: float, setting: str, values: Sequence[Any]
) -> bool:
    """Ready again after `delay` seconds, with a SET list of the caller's; False: the token didn't match."""
    cursor.execute(
        "UPDATE qd_jobs SET lane = 0, reserved_by = NULL, reserved_at = NULL, "
        f"available_at = {dialect.after}, {setting} WHERE id = %s AND {OURS}",
        (dialect.span(delay), *values, job_id, token),
    )
    return cursor.rowcount == 1
