"""A look that threads go by for a moment, so that not each of them asks the database. May import: store protocol."""

from __future__ import annotations

from qd.clock import monotonic
from qd.store.protocol import Look

LOOK_AGAIN = 0.05
"""Seconds that a look's hits are trusted: so long a more urgent job may wait for a busy thread's notice."""


class Sight:
    """A look that threads go by, and which of its lanes have given nothing since; any thread may use it."""

    __slots__ = ("_at", "dry", "look")

    def __init__(self, look: Look) -> None:
        self.look, self._at = look, monotonic()
        self.dry: set[tuple[str, int]] = set()

    def trusted(self) -> bool:
        """Whether it is young enough."""
        return monotonic() - self._at <= LOOK_AGAIN
