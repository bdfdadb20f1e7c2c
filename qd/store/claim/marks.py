"""Low watermarks: where each lane's live entries begin, so that no claim walks the dead ones.

Entries that were deleted or moved stay in the index until the server purges them; a claim that
begins at the mark doesn't see them. A mark is shared by all threads of a process. Claims begin at
the mark itself: a locking read pays for each dead entry that it passes, so even those of the last
two seconds are too many. Where there is no mark (at the start, where another server may answer,
after a claim that failed) they begin at the first row that their look saw, and the look walks the
lane once. Looks, to which dead entries are cheaper, begin 2 s behind the database's now at the
latest: producers commit late, and some write whole seconds. Only where full batches pass, thousands
of jobs in two seconds, do most looks begin nearer to now, and twenty a second so far behind.
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

ELSEWHERE = -1
"""The version of a place that is no mark's: a claim from there moves none."""

Lane = tuple[str, int]
"""A queue and a priority."""


class Mark(NamedTuple):
    """What a look or a claim begins from.

    Attributes:
        spot: the first place to look at; None: no lower bound.
        version: of the lane's mark when this was read: a mark that others have set back since
            isn't moved forward.
        far: of a look that begins no later than FAR behind the now of the far look before it: together they pass over
            nothing, so this one may move the mark forward.
        noted: the database's now, as it was known when a look began.
    """

    spot: Spot | None
    version: int
    far: bool = False
    noted: str | None = None


class _Passage:
    """What is known of one lane.

    Attributes:
        mark: where claims begin.
        far_at: monotonic seconds of the last far look.
        far_from: where the next one begins at the latest.
        full: a full batch was taken since the last far look.
    """

    __slots__ = ("far_at", "far_from", "full", "mark")

    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        self.far_at = 0.0
        self.far_from: Spot | None = None
        self.full = False


class Watermarks:
    """The marks of one database; every method may be called from any thread.

    Args:
        clock: seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._lanes: dict[Lane, _Passage] = {}
        self._counter = 0
        self._dropped_at = 0
        self._now: str | None = None

    def begin(self, lane: Lane, start: Spot | None = None) -> Mark:
        """Where a claim begins.

        Args:
            start: where instead, if the lane has no mark.
        """
        with self._lock:
            mark = self._of(lane).mark
        return Mark(start, ELSEWHERE) if mark.spot is None and start is not None else mark

    def begin_look(self, lane: Lane, *, full: bool) -> Mark:
        """Where a look begins: at the mark, but well behind now; a full one at the start."""
        with self._lock:
            passage, began = self._of(lane), self._clock()
            if not full and passage.full and began - passage.far_at < FAR_EVERY and self._now is not None:
                spot = _lower(passage.mark.spot, Spot(earlier(self._now, NEAR), 0))
                return Mark(spot, passage.mark.version, noted=self._now)
            passage.far_at, passage.full = began, False
            spot = None if full else _lower(passage.mark.spot, passage.far_from)
            return Mark(spot, passage.mark.version, far=True, noted=self._now)

    def claimed(self, lane: Lane, begun: Mark, last: Spot, now: str) -> None:
        """A full batch was taken; `last` is where the next claim is to begin."""
        with self._lock:
            self._note(now)
            passage = self._of(lane)
            old = passage.mark
            if old.version == begun.version and _after(last, old.spot) and last.due <= now:
                passage.mark, passage.full = Mark(last, old.version), True

    def passed(self, now: str) -> None:
        """A claim found less than it wanted, at this time of the database: the marks stay, since looks reach behind
        them by themselves."""
        with self._lock:
            self._note(now)

    def looked(self, begun: Mapping[Lane, Mark], first: Mapping[Lane, Spot], now: str) -> None:
        """Takes in what a look saw: a lane's mark becomes its first ready row; without one, now - 2 s.

        A look that was no far one only sets marks back: it may have passed over what another has just found.

        Args:
            begun: what `begin_look` gave for each lane that was looked at.
            first: the first ready row of those that have one, paused or not.
        """
        with self._lock:
            noted = next((mark.noted for mark in begun.values()), None)
            if noted is not None and now < earlier(noted, FAR):
                self._drop()  # the database's clock was set back: marks may lie above its now
                self._now = now
            self._note(now)
            behind = Spot(earlier(now, FAR), 0)
            for lane, before in begun.items():
                passage = self._of(lane)
                if before.far:
                    passage.far_from = behind
                if before.far and passage.mark.version == before.version:
                    self._set(passage, first.get(lane, behind))
                elif lane in first and not _after(first[lane], passage.mark.spot):
                    self._set(passage, first[lane])

    def drop(self, lane: Lane | None = None) -> None:
        """Forgets a lane's mark, or all: another server may answer, or a claim failed and may stand."""
        with self._lock:
            self._drop(lane)

    def _note(self, now: str) -> None:
        """A statement's now is that of its start: one that took long has seen no clock set back."""
        self._now = now if self._now is None else max(self._now, now)

    def _drop(self, lane: Lane | None = None) -> None:
        self._counter += 1
        self._dropped_at = self._counter
        if lane is None:
            self._lanes.clear()
        else:
            self._lanes.pop(lane, None)

    def _of(self, lane: Lane) -> _Passage:
        return self._lanes.setdefault(lane, _Passage(Mark(None, self._dropped_at)))

    def _set(self, passage: _Passage, spot: Spot) -> None:
        """Setting a mark back makes what others began from the older one too old to move it."""
        old = passage.mark
        back = spot != old.spot and not _after(spot, old.spot)
        self._counter += back
        passage.mark = Mark(spot, self._counter if back else old.version)


def _lower(one: Spot | None, other: Spot | None) -> Spot | None:
    """The lower of two marks; no mark is below every mark."""
    return None if one is None or other is None else min(one, other)


def _after(spot: Spot | None, other: Spot | None) -> bool:
    """Whether a mark lies above another; no mark is below every mark."""
    if spot is None:
        return False
    return other is None or spot > other
