"""What keeps a loop from its work while the database answers all the same, and since when. Pure.

A lock on a table, a row that the server won't let be changed: no outage, so it is told nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable

from qd.clock import monotonic
from qd.duration import spell

LASTING = 10.0
"""Seconds after which it is no everyday wait any more: longer than a deadlock's or a lock wait's tries."""


class Setback:
    """One loop's: the loop calls `met` when a round fails and `overcome` when one is through; others ask `lasting`.

    Args:
        clock: seconds that never run backwards.
    """

    __slots__ = ("_clock", "_since", "_why")

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._why = ""

    def met(self, why: object) -> None:
        """A round has failed."""
        self._why = str(why)
        if self._since is None:
            self._since = self._clock()

    def overcome(self) -> None:
        """A round was through."""
        self._since = None

    def lasting(self) -> str | None:
        """Why no round has been through for LASTING seconds or more; None: one has."""
        since = self._since
        if since is None or self._clock() - since < LASTING:
            return None
        return f"nothing could be claimed for {spell(round(self._clock() - since))}: {self._why}"
