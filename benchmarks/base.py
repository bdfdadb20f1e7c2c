"""What a regime is compared with: the same calls on next to nothing, on the same server, made in between its own.

So whatever else the machine does meanwhile slows down both alike.
"""

from __future__ import annotations

from functools import partial

from benchmarks import rows
from benchmarks.seen import Pages, Seen
from benchmarks.subject import Subject, whole
from qd.job import ClaimedJob
from tests.support.private import PrivateServer

BACKLOG = 5000
"""Jobs that the small table is given at a time."""


class Small:
    """Three tables that stay small, for all regimes of a server: one for polls, one that has a few jobs more than are
    claimed, and one that never has more than one."""

    def __init__(self, server: PrivateServer) -> None:
        self.empty, self.stocked, self.single = Subject(server), Subject(server), Subject(server)
        self._stock = 0

    def take(self, jobs: int) -> None:
        """Sees to it that so many more can be claimed from the one that has jobs."""
        if self._stock < jobs:
            rows.ready(self.stocked.run, BACKLOG)
            self.stocked.look(full=True)
            self._stock += BACKLOG
        self._stock -= jobs

    def close(self) -> None:
        """Drops them."""
        for subject in (self.empty, self.stocked, self.single):
            subject.close()


class Base:
    """The base of one regime: each method makes one of its calls, and notes it.

    Attributes:
        seen: what they took.
    """

    def __init__(self, small: Small, pages: Pages) -> None:
        self._small, self.seen = small, Seen(pages)

    def poll(self) -> None:
        """Of an empty table."""
        self.seen.timed("poll", self._small.empty.look)

    def claim(self, limit: int) -> None:
        """Of jobs that wait, by itself."""
        subject = self._small.stocked
        self._small.take(limit)
        subject.look()
        subject.finish(whole(limit, self.seen.timed(f"claim{limit}", partial(subject.claim, limit))))

    def claims_with_ends(self, limit: int) -> Turns:
        """The same, each together with the ends of the jobs before."""
        return Turns(self._small, self.seen, limit)

    def one_through(self, operation: str, limit: int) -> None:
        """One job in and out."""
        one_through(self._small.single, self.seen, operation, limit)


class Turns:
    """Claims on the small table that each finish the one before; `end` finishes the last."""

    def __init__(self, small: Small, seen: Seen, limit: int) -> None:
        self._small, self._seen, self._limit = small, seen, limit
        small.take(limit)
        self._jobs: list[ClaimedJob] = small.stocked.claim(limit)

    def turn(self) -> None:
        """One of them."""
        subject, limit = self._small.stocked, self._limit
        self._small.take(limit)
        subject.look()
        following = partial(subject.turn_over, whole(limit, self._jobs), limit)
        self._jobs = self._seen.timed(f"claim{limit}_with_ends", following)

    def end(self) -> None:
        """Leaves nothing reserved."""
        self._small.stocked.finish(whole(self._limit, self._jobs))


def one_through(subject: Subject, seen: Seen, operation: str, limit: int) -> None:
    """A fresh job is found by a look and claimed, and finished together with a claim that finds nothing more, as a
    worker does it."""
    subject.put_in(1)
    subject.look()
    jobs = whole(1, seen.timed(operation, partial(subject.claim, limit)))
    assert not seen.timed("claim_none_with_ends", partial(subject.turn_over, jobs, limit))
