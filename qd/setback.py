"""What keeps a loop from its work while the database answers all the same, and since when. Pure.

A lock on a table, a row that the server won't let be changed: no outage, so it is told nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable

from qd.clock import monotonic
from qd.duration import spell

LASTING = 10.0
"""Seconds after which it is no everyday wait any more: longer than a deadlock's or a lock wait's tries."""

NOTHING_CLAIMED = "nothing could be claimed"
"""What it comes to, unless who asks knows better."""


class Setback:
    """One loop's: the loop calls `met` when a try fails and `overcome` when one is answered; others ask.

    Args:
        clock: seconds that never run backwards.
        up: whether the database answers. What an outage brings is the outage's: it is told there, and what is
            still wrong after its end counts from then.
    """

    __slots__ = ("_answered", "_clock", "_since", "_up", "_why")

    def __init__(self, clock: Callable[[], float] = monotonic, up: Callable[[], bool] = lambda: True) -> None:
        self._clock, self._up = clock, up
        self._since: float | None = None
        self._answered: float | None = None
        self._why = ""

    def met(self, why: object) -> None:
        """A try has failed."""
        self._why = str(why)
        if not self._up():
            self._since = None
        elif self._since is None:
            self._since = self._clock()

    def overcome(self) -> None:
        """A try was answered."""
        self._answered = self._clock()
        self._since = None

    def take_over(self, before: Setback) -> None:
        """Begins in the trouble that a loop was in whose place this one takes."""
        self._why, self._since = before._why, before._since

    def untried(self) -> bool:
        """Whether nothing is known of it yet."""
        return self._since is None and self._answered is None

    def recent(self) -> bool:
        """Whether a try was answered less than LASTING seconds ago."""
        return self._answered is not None and self._clock() - self._answered < LASTING

    def seconds(self) -> float:
        """For how long no try has been answered; 0.0: none fails."""
        since = self._since
        return 0.0 if since is None else self._clock() - since

    def lasting(self, what: str = NOTHING_CLAIMED) -> str | None:
        """Why no try has been answered for LASTING seconds or more; None: one has.

        Args:
            what: it comes to.
        """
        seconds = self.seconds()
        return f"{what} for {spell(round(seconds))}: {self._why}" if seconds >= LASTING else None
