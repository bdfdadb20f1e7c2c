"""What one thread claims next: the first queue in its order that a look has seen work in, its most urgent lane.

May import: bell, gate, lease, policy and the other modules below the runner; store protocol.
Owns: the look that the thread goes by, and which of its lanes have turned out dry since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qd.clock import monotonic
from qd.events import JobsClaimed
from qd.job import ClaimedJob
from qd.lease import Lease
from qd.runner import Shop
from qd.store.protocol import Claim, Look, Store

LOOK_AGAIN = 0.05
"""Seconds that a look's hits are trusted: so long a more urgent job may wait for a busy thread's notice."""

Claiming = Callable[[Claim], list[ClaimedJob] | None]
"""How a claim is made: by itself, or together with the ends of the jobs before; None: none was made."""


class Claimant:
    """Belongs to one thread.

    Args:
        name: the thread's, part of its tokens.
        queues: in strict order.
        store: the thread's own.
        leaving: whether nothing is to be claimed any more.
    """

    def __init__(self, name: str, queues: Sequence[str], store: Store, shop: Shop, leaving: Callable[[], bool]) -> None:
        self._name, self._queues, self._store, self._shop, self._leaving = name, queues, store, shop, leaving
        self._look: Look | None = None
        self._looked_at = 0.0
        self._dry: set[tuple[str, int]] = set()

    def remember(self, look: Look) -> None:
        """Goes by this look, which somebody has made just now."""
        self._look, self._looked_at = look, monotonic()
        self._dry.clear()

    def forget(self) -> None:
        """The next claim begins with a look of its own."""
        self._look = None
        self._dry.clear()

    def claim(self) -> list[Lease]:
        """Claims from the first lane that gives anything.

        Raises:
            StoreError: nothing is held; see `Store.claim`.
        """
        if not self._trusts():
            self.remember(self._store.look(self._queues, full=False))
        leases = self._claim_a_hit()
        if not leases and self._shop.gate.leave_when_empty and not self._leaving():
            self.remember(self._store.look(self._queues, full=True))  # nothing may be left, wherever it lies
            leases = self._claim_a_hit()
        return leases

    def claim_next(self, claiming: Claiming) -> list[Lease]:
        """Claims once from where a look that is trusted still has seen work.

        Args:
            claiming: isn't called where there is no such lane, or nothing may be claimed.
        """
        lane = self._first_lane() if self._trusts() and not self._leaving() else None
        return self._claim_lane(lane, claiming) if lane is not None else []

    def _trusts(self) -> bool:
        return self._look is not None and monotonic() - self._looked_at <= LOOK_AGAIN

    def _claim_a_hit(self) -> list[Lease]:
        while (lane := self._first_lane()) is not None:
            leases = self._claim_lane(lane, self._store.claim)
            if leases or self._leaving():
                return leases
        return []

    def _first_lane(self) -> tuple[str, int] | None:
        """The first queue in this worker's order, and its most urgent priority, with a hit."""
        assert self._look is not None
        for queue in self._queues:
            for priority in sorted(self._look.hits.get(queue, ())):
                if (queue, priority) not in self._dry:
                    return queue, priority
        return None

    def _claim_lane(self, lane: tuple[str, int], claiming: Claiming) -> list[Lease]:
        shop, (queue, priority) = self._shop, lane
        policy = shop.policies[queue]
        wanted = shop.gate.take(1 if policy.max_attempts == 1 else shop.sizes[queue].size())
        if not wanted:
            self._dry.add(lane)
            return []
        jobs: list[ClaimedJob] | None = None
        started = monotonic()
        try:
            token = shop.identity.token(self._name)
            jobs = claiming(Claim(queue, wanted, policy.lease, token, policy.max_attempts, (priority,)))
        finally:
            shop.gate.refund(wanted - len(jobs or ()))
        if jobs is None:
            return []
        leases = shop.keeper.hold(jobs)
        shop.events.publish(JobsClaimed(queue, len(jobs), monotonic() - started))
        if not jobs:
            self._dry.add(lane)
            return leases
        shop.bell.worked()
        if len(jobs) == wanted and self._look is not None and shop.bell.idle():
            shop.bell.ring(self._look)  # there may be more: one more thread, which calls the next
        return leases
