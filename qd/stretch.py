"""How rarely something is done that can't be kept cheap, so that it takes no more than 2 % of the time. Pure.

Where jobs wait for it there is an end to that: it is done once a minute, whatever it costs. What walks entries that
nobody can bound goes by it: the full look, the sweep's look, the count of all rows. A round that failed counts with
what it took, or what is too dear for its time limit would be tried all the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from qd.errors import ConnectionLost, StoreError

SHARE = 50
"""A wait is at least this many times what a round costs: 2 % of the time."""

BELIEVED = 3
"""A round that took more than this many times what the other of the last two took is believed so far only."""

JOBS_WAIT = 60.0
"""Seconds that jobs may wait for a round at most: more of the time than its share is the lesser evil."""

SLOW = 0.5
"""Seconds after which a failed round is asked whether the tables are out of reach or the round too dear; the
least time limit is longer."""


class StretchedPeriod:
    """One round's period.

    Args:
        least: seconds between two rounds while they are cheap.
        first: seconds that the first round, which may have opened a connection or met cold caches, can stretch it to.
        most: seconds that it is never stretched beyond.
    """

    def __init__(self, least: float, first: float, most: float = float("inf")) -> None:
        self._least, self._first, self._most = least, first, most
        self._costs: deque[float] = deque(maxlen=2)

    def after(self, cost: float) -> float:
        """Seconds until the next round, this one having taken so long: by the dearer of the last two, within reason.

        By the cheaper one it would come to more than 2 % wherever costs vary. But one that is dear alone says
        little: the server stood still, or this process did. Were it believed whole, what it is for would stay away
        long after the trouble.
        """
        first = not self._costs
        self._costs.append(cost)
        stretched = SHARE * min(max(self._costs), BELIEVED * min(self._costs))
        return max(self._least, min(stretched, self._first if first else self._most))

    def given_up(self, cost: float, error: StoreError, reach: Callable[[], object]) -> float:
        """The same after a round that failed with this error.

        Args:
            reach: asks the same tables what costs nothing; raises StoreError while they are out of reach.

        Raises:
            StoreError: it was no matter of cost. The server is away, or a table locked as a whole: waiting for either
                costs it nothing, and soon after its end all has to be as it was.
        """
        lost = isinstance(error, ConnectionLost) and error.kind == "lost"
        if cost < SLOW or lost:
            raise error
        reach()
        return self.after(cost)
