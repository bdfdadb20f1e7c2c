"""Tells tables that are out of reach from a statement that is too dear. May import: errors."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from qd.errors import NotFound

NO_JOB = 0
"""An id that no row has."""


class Reachable(Protocol):
    """What is asked of a store; every store offers it."""

    def job(self, job_id: int) -> object:
        """Raises NotFound: an answer that costs nothing, and waits as any other does where the table is locked."""
        ...

    def failed(self, job_id: int) -> object:
        """The same of the dead letters."""
        ...


def reach(store: Reachable) -> None:
    """Raises StoreError if the server is away, or a table locked as a whole."""
    for find in (store.job, store.failed):
        with suppress(NotFound):
            find(NO_JOB)
