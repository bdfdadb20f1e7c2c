"""Sorts what SQLite says into qd's errors. May import: errors."""

from __future__ import annotations

import sqlite3

from qd.errors import (
    DataRefused,
    LockWait,
    ReadOnlyServer,
    ServerBusy,
    SetupWrong,
    StoreError,
    TransactionFailed,
    UnknownError,
)

_BY_TEXT: tuple[tuple[str, type[StoreError]], ...] = (
    ("locked", LockWait),
    ("interrupted", TransactionFailed),
    ("readonly", ReadOnlyServer),
    ("is full", ServerBusy),
    ("no such", SetupWrong),
    ("unable to open", SetupWrong),
    ("not a database", SetupWrong),
    ("malformed", SetupWrong),
    ("too big", DataRefused),
)
"""SQLite's own words, which are part of its interface; Python tells its numbers only from 3.11 on."""


def sort(error: Exception, where: str) -> StoreError:
    """The error of qd's tree that this one is; `where` begins its message."""
    if isinstance(error, StoreError):
        return error
    text = " ".join(str(error).split())[:200]
    message = f"{where}: {text}"
    if isinstance(error, UnicodeError):
        return DataRefused(f"{where}: a text isn't valid Unicode and can't be stored")
    if isinstance(error, sqlite3.IntegrityError | sqlite3.DataError | OverflowError):
        return DataRefused(message)
    kind = next((kind for words, kind in _BY_TEXT if words in text), UnknownError)
    hint = "; run `qd migrate`" if "no such" in text else ""
    return kind(message + hint)
