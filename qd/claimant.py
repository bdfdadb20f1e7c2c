"""What one thread claims next: the first queue in its order that a look has seen work in, its most urgent lane.

May import: runner and below.
Owns: which look the thread goes by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qd.clock import monotonic
from qd.errors import StoreError
from qd.events import JobsClaimed
from qd.job import ClaimedJob
from qd.lease import Lease
from qd.runner import Shop
from qd.sight import Sight
from qd.store.protocol import Claim, Spot, Store

Claiming = Callable[[Claim], list[ClaimedJob] | None]
"""How a claim is made: by itself, or together with the ends of the jobs before; None: none was made."""

Hits = Mapping[str, Mapping[int, Spot]]
"""The first ready row of each lane that has one."""


class Claimant:
    """Belongs to one thread.

    Args:
        name: the thread's, part of its tokens.
        queues: in strict order.
        store: the thread's own.
        leaving: whether nothing is to be claimed any more.
    """

    def __init__(
        self, name: str, queues: tuple[str, ...], store: Store, shop: Shop, leaving: Callable[[], bool]
    ) -> None:
        self._name, self._queues, self._store, self._shop, self._leaving = name, queues, store, shop, leaving
        self._sight: Sight | None = None

    def remember(self, sight: Sight) -> None:
        """Goes by this look, which somebody else has made, for as long as it can be trusted."""
        self._sight = sight

    def forget(self) -> None:
        """The next claim begins with a look of its own, or one that another thread has made since."""
        self._sight = None

    def claim(self) -> list[Lease]:
        """Claims from the first lane that gives anything.

        Raises:
            StoreError: nothing is held; see `Store.claim`.
        """
        self._see()
        leases = self._claim_a_hit()
        seen: Hits = {}
        while not leases and self._shop.gate.leave_when_empty and not self._leaving():
            look = self._store.look(self._queues, full=True)  # nothing may be left, wherever it lies
            if look.hits == seen:  # nothing, or what others have locked; it changes where a claim only buried
                break
            seen = look.hits
            self.remember(Sight(look))
            leases = self._claim_a_hit()
        return leases

    def claim_next(self, claiming: Claiming) -> list[Lease]:
        """Claims once, from the first lane in which a look has seen work.

        Args:
            claiming: isn't called where there is no such lane, or nothing may be claimed.
        """
        if self._leaving():
            return []
        try:
            self._see()
        except StoreError:  # said and counted where the connection is; there are ends to be written all the same
            self.forget()
            return []
        lane = self._first_lane()
        return self._claim_lane(lane, claiming) if lane is not None else []

    def _see(self) -> None:
        """Goes by a look that can be trusted: this thread's, another's with the same queues, or a new one."""
        sights = self._shop.sights
        if self._sight is None or not self._sight.trusted():
            self._sight = sights.get(self._queues)
        if self._sight is None or not self._sight.trusted():
            self._sight = sights[self._queues] = Sight(self._store.look(self._queues, full=False))

    def _claim_a_hit(self) -> list[Lease]:
        while (lane := self._first_lane()) is not None:
            leases = self._claim_lane(lane, self._store.claim)
            if leases or self._leaving():
                return leases
        return []

    def _first_lane(self) -> tuple[str, int] | None:
        """The first queue in this worker's order, and its most urgent priority, with a hit."""
        assert self._sight is not None
        hits, dry = self._sight.look.hits, self._sight.dry
        for queue in self._queues:
            for priority in sorted(hits.get(queue, ())):
                if (queue, priority) not in dry:
                    return queue, priority
        return None

    def _claim_lane(self, lane: tuple[str, int], claiming: Claiming) -> list[Lease]:
        shop, sight, (queue, priority) = self._shop, self._sight, lane
        assert sight is not None
        policy = shop.policies[queue]
        wanted = shop.gate.take(1 if policy.max_attempts == 1 else shop.sizes[queue].size())
        if not wanted:
            return []
        jobs: list[ClaimedJob] | None = None
        started = monotonic()
        try:
            token, start = shop.identity.token(self._name), sight.look.hits[queue][priority]
            jobs = claiming(Claim(queue, wanted, policy.lease, token, policy.max_attempts, (priority,), start))
        finally:
            shop.gate.refund(wanted - len(jobs or ()))
        if jobs is None:
            return []
        leases = shop.keeper.hold(jobs)
        shop.events.publish(JobsClaimed(queue, len(jobs), monotonic() - started))
        if not jobs:
            sight.dry.add(lane)
            return leases
        shop.bell.worked()
        if len(jobs) == wanted and shop.bell.idle():
            shop.bell.ring(sight)  # there may be more: one more thread, which calls the next
        return leases
