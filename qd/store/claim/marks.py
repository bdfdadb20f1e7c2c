"""Low watermarks: where each lane's live entries begin, so that no claim walks the dead ones.

Entries that were deleted or moved stay in the index until the server purges them; a claim that
begins at the mark doesn't see them. A mark is shared by all threads of a process. Claims begin at
the mark itself: a locking read pays for each dead entry that it passes, so even those of the last
two seconds are too many. Looks, to which dead entries are cheap, begin 2 s behind the database's now
at the latest: producers commit late, and some write whole seconds. What a look finds below a mark
sets it back; what lies further back still is found by the full look.
Pure. May import: moments, protocol (for a place in a lane).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from qd.store.moments import earlier
from qd.store.protocol import Spot

TRAIL = timedelta(seconds=2)
"""How far a mark stays behind the database's now: longer than most producers' transactions."""

Lane = tuple[str, int]
"""A queue and a priority."""


class Mark(NamedTuple):
    """What a look or a claim begins from.

    Attributes:
        spot: the first place to look at; None: no lower bound.
        version: of the lane's mark when this was read: a mark that others have set back since
            isn't moved forward.
    """

    spot: Spot | None
    version: int


class Watermarks:
    """The marks of one database; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marks: dict[Lane, Mark] = {}
        self._counter = 0
        self._dropped_at = 0
        self._now: str | None = None

    def begin(self, lane: Lane) -> Mark:
        """Where a claim begins."""
        with self._lock:
            return self._marks.get(lane, self._none())

    def begin_look(self, lane: Lane, *, full: bool) -> Mark:
        """Where a look begins: at the mark, but never above now - 2 s; a full one at the start."""
        with self._lock:
            mark = self._marks.get(lane, self._none())
            return Mark(None if full else self._trailing(mark.spot), mark.version)

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
        """Takes in what a look saw: a lane's mark becomes its first ready row; without one, now - 2 s.

        Args:
            begun: what `begin_look` gave for each lane that was looked at.
            first: the first ready row of those that have one, paused or not.
        """
        with self._lock:
            if self._now is not None and now < earlier(self._now, TRAIL):
                self._drop()  # the database's clock was set back: marks may lie above its now
            self._now = now
            for lane, before in begun.items():
                spot = first[lane] if lane in first else self._trailing(Spot(now, 0))
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

    def _none(self) -> Mark:
        return Mark(None, self._dropped_at)

    def _set(self, lane: Lane, old: Mark, spot: Spot | None) -> None:
        """Setting a mark back makes what others began from the older one too old to move it."""
        back = spot != old.spot and not _after(spot, old.spot)
        self._counter += back
        self._marks[lane] = Mark(spot, self._counter if back else old.version)

    def _trailing(self, spot: Spot | None) -> Spot | None:
        if spot is None or self._now is None:
            return None
        behind = earlier(self._now, TRAIL)
        return spot if spot.due <= behind else Spot(behind, 0)


def _after(spot: Spot | None, other: Spot | None) -> bool:
    """Whether a mark lies above another; no mark is below every mark."""
    if spot is None:
        return False
    return other is None or spot > other
