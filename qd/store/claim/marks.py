"""Low watermarks: where each lane's live entries begin, so that no claim walks the dead ones.

Entries that were deleted or moved stay in the index until the server purges them; a claim that
begins at the mark doesn't see them. A mark is shared by all threads of a process. Claims begin at
the mark itself: a locking read pays for each dead entry that it passes, so even those of the last
two seconds are too many. Looks, to which dead entries are cheaper, begin further back: producers commit
late, and some write whole seconds. Twenty times a second a look begins 2 s behind the database's now;
those between begin only a quarter of a second behind it, since thousands of jobs may have passed in two.
What a look finds below a mark sets it back; what lies further back still is found by the full look.
Pure. May import: moments, protocol (for a place in a lane), clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple

from qd.clock import monotonic
from qd.store.moments import earlier
from qd.store.protocol import Spot

FAR = timedelta(seconds=2)
"""How far behind the database's now a look begins: longer than most producers' transactions, whole seconds too."""

NEAR = timedelta(seconds=0.25)
"""The same between two of these."""

FAR_EVERY = 0.05
"""Seconds after which a look begins far behind again: so long a job that was committed late may wait for one."""

Lane = tuple[str, int]
"""A queue and a priority."""


class Mark(NamedTuple):
    """What a look or a claim begins from.

    Attributes:
        spot: the first place to look at; None: no lower bound.
        version: of the lane's mark when this was read: a mark that others have set back since
            isn't moved forward.
        far: of a look that reaches FAR behind the last such look, so that nothing lies between the two.
    """

    spot: Spot | None
    version: int
    far: bool = False


class Watermarks:
    """The marks of one database; every method may be called from any thread.

    Args:
        clock: seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._marks: dict[Lane, Mark] = {}
        self._far_at: dict[Lane, float] = {}
        self._far_from: dict[Lane, Spot] = {}
        self._counter = 0
        self._dropped_at = 0
        self._now: str | None = None

    def begin(self, lane: Lane) -> Mark:
        """Where a claim begins."""
        with self._lock:
            return self._marks.get(lane, self._none())

    def begin_look(self, lane: Lane, *, full: bool) -> Mark:
        """Where a look begins: at the mark, but well behind now; a full one at the start."""
        with self._lock:
            mark, began = self._marks.get(lane, self._none()), self._clock()
            far = full or began - self._far_at.get(lane, -FAR_EVERY) >= FAR_EVERY
            if far:
                self._far_at[lane] = began
                spot = None if full else _lower(mark.spot, self._far_from.get(lane))
            else:
                spot = self._behind(mark.spot)
            return Mark(spot, mark.version, far)

    def claimed(self, lane: Lane, begun: Mark, last: Spot, now: str) -> None:
        """A full batch was taken; `last` is where the next claim is to begin."""
        with self._lock:
            self._now = now
            old = self._marks.get(lane, self._none())
            if old.version == begun.version and _after(last, old.spot) and last.due <= now:
                self._marks[lane] = Mark(last, old.version)

    def passed(self, now: str) -> None:
        """A claim found less than it wanted: the marks stay, since looks reach behind them by themselves."""
        with self._lock:
            self._now = now

    def looked(self, begun: Mapping[Lane, Mark], first: Mapping[Lane, Spot], now: str) -> None:
        """Takes in what a look saw: a lane's mark becomes its first ready row; without one it stays near to now.

        Args:
            begun: what `begin_look` gave for each lane that was looked at.
            first: the first ready row of those that have one, paused or not.
        """
        with self._lock:
            if self._now is not None and now < earlier(self._now, FAR):
                self._drop()  # the database's clock was set back: marks may lie above its now
            self._now = now
            for lane, before in begun.items():
                if before.far:
                    self._far_from[lane] = Spot(earlier(now, FAR), 0)
                spot = first[lane] if lane in first else Spot(earlier(now, NEAR), 0)
                mark = self._marks.get(lane, self._none())
                if mark.version == before.version or not _after(spot, mark.spot):
                    self._set(lane, mark, spot)

    def drop(self, lane: Lane | None = None) -> None:
        """Forgets a lane's mark, or all: after a reconnect or a claim that failed."""
        with self._lock:
            self._drop(lane)

    def _drop(self, lane: Lane | None = None) -> None:
        self._counter += 1
        self._dropped_at = self._counter
        for one in [lane] if lane is not None else list(self._marks):
            self._marks.pop(one, None)
            self._far_from.pop(one, None)

    def _none(self) -> Mark:
        return Mark(None, self._dropped_at)

    def _set(self, lane: Lane, old: Mark, spot: Spot | None) -> None:
        """Setting a mark back makes what others began from the older one too old to move it."""
        back = spot != old.spot and not _after(spot, old.spot)
        self._counter += back
        self._marks[lane] = Mark(spot, self._counter if back else old.version)

    def _behind(self, spot: Spot | None) -> Spot | None:
        """The place, or NEAR behind the last now that is known should that be lower."""
        return _lower(spot, Spot(earlier(self._now, NEAR), 0) if self._now is not None else None)


def _lower(one: Spot | None, other: Spot | None) -> Spot | None:
    """The lower of two marks; no mark is below every mark."""
    return None if one is None or other is None else min(one, other)


def _after(spot: Spot | None, other: Spot | None) -> bool:
    """Whether a mark lies above another; no mark is below every mark."""
    if spot is None:
        return False
    return other is None or spot > other
