"""Moves a row to the dead letters, inside a transaction that its caller opens.

The payload never travels: the server copies it, so its bytes can't change and its size doesn't
matter. May import: dialect, texts, the pure modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qd.outcome import Reason
from qd.store.dialect import Cursor, Dialect
from qd.store.settle.texts import TRACEBACK_BYTES, fitted

KEPT = "queue, type, payload, priority, attempts, max_attempts, unique_key, created_at"
"""Columns that a dead letter has from its job."""


def bury(
    cursor: Cursor,
    dialect: Dialect,
    job_id: int,
    fence: str,
    fenced: Sequence[Any],
    *,
    reason: Reason,
    error: str | None,
    traceback: str | None,
    history: str | None,
) -> bool:
    """Moves one row; False if the fence doesn't match (then nothing was done).

    Args:
        fence: SQL that must hold for the row besides its id; `fenced` are its values.
        history: the whole column, already with this attempt's entry.
    """
    cursor.execute(
        f"INSERT INTO qd_failed_jobs (job_id, {KEPT}, history, reason, error, traceback, reserved_by, failed_at) "
        f"SELECT id, {KEPT}, %s, %s, %s, %s, reserved_by, {dialect.now} FROM qd_jobs WHERE id = %s AND {fence}",
        (history, reason.value, fitted(error), fitted(traceback, TRACEBACK_BYTES), job_id, *fenced),
    )
    if cursor.rowcount != 1:
        return False
    cursor.execute(f"DELETE FROM qd_jobs WHERE id = %s AND {fence}", (job_id, *fenced))
    return cursor.rowcount == 1
