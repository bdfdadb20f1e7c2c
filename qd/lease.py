"""The lease keeper: renews what this daemon holds until each job is settled, also while draining.

It has its own thread and its own connection, so that neither a handler nor another statement can
hold up a renewal. A lease is lost when another token, or no row, is found; it is never lost by the
clock alone: an expired lease that nobody took is still held. May import: store protocol, events,
and the pure modules. Owns: the set of held leases.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from itertools import islice

from qd.clock import monotonic
from qd.events import Events, LeaseLostSeen, LeasesExtended
from qd.job import ClaimedJob, Job, Loss
from qd.store.protocol import HeldLease, Renewal, Store

RENEWALS_AT_ONCE = 250
"""Leases per statement: one slow round never holds up more than these."""


class Lease:
    """Our hold on one claimed job.

    Attributes:
        lost: set the moment it is known that another has the job.
        renewed_at: monotonic, taken before the last statement that prolonged it was sent.
        settling: the job's end is being written; what a renewal finds of it means nothing now.
        view: the handler's Job while it runs.
    """

    __slots__ = ("_told", "job", "lost", "renewed_at", "retry_at", "settling", "view")

    def __init__(self, job: ClaimedJob) -> None:
        self.job = job
        self.lost = Loss()
        self.renewed_at = job.claimed_at
        self.retry_at = 0.0
        self.settling = False
        self.view: Job | None = None
        self._told = False

    def due(self) -> float:
        """Monotonic time of the next renewal: a third of the lease after the last."""
        return max(self.renewed_at + self.job.lease / 3, self.retry_at)

    def fresh(self) -> bool:
        """Whether a job may start on it: under half of it has passed since before the claim."""
        return monotonic() - self.renewed_at < self.job.lease / 2

    def lose(self, events: Events, seen_by: str) -> None:
        """Says once that the lease is lost, and tells the handler."""
        self.lost.set()
        if not self._told:
            self._told = True
            job = self.job
            events.publish(LeaseLostSeen(job.id, job.queue, job.type, job.attempt, job.token, seen_by))


class LeaseKeeper:
    """Holds the leases of one engine and renews them; a `Service`.

    Args:
        store: the keeper's own.
        shortest: seconds of the shortest lease in the configuration.
    """

    name = "lease keeper"

    def __init__(self, store: Store, events: Events, shortest: float) -> None:
        self._store, self._events = store, events
        self._pace = min(1.0, shortest / 6)
        self._lock = threading.Lock()
        self._held: dict[tuple[int, str], Lease] = {}

    def hold(self, jobs: Iterable[ClaimedJob]) -> list[Lease]:
        """Takes over what a claim brought, in order."""
        leases = [Lease(job) for job in jobs]
        with self._lock:
            self._held.update(((lease.job.id, lease.job.token), lease) for lease in leases)
        return leases

    def drop(self, leases: Iterable[Lease]) -> None:
        """Forgets leases whose jobs are settled or lost."""
        with self._lock:
            for lease in leases:
                self._held.pop((lease.job.id, lease.job.token), None)

    def held(self) -> list[Lease]:
        """All leases that are held now."""
        with self._lock:
            return list(self._held.values())

    def run_once(self) -> float:
        """Renews what is due; seconds until the next round.

        Raises:
            Exception: a renewal failed; those leases are tried again at the next round.
        """
        now = monotonic()
        due = iter([lease for lease in self.held() if lease.due() <= now])
        failed: Exception | None = None
        while chunk := list(islice(due, RENEWALS_AT_ONCE)):
            try:
                self._renew(chunk)
            except Exception as error:  # raised below, once the other chunks have had their turn
                self._events.publish(LeasesExtended("error", len(chunk)))
                failed = error
        if failed is not None:
            raise failed
        return self._pace

    def close(self) -> None:
        """Closes the keeper's connection."""
        self._store.close()

    def _renew(self, leases: Sequence[Lease]) -> None:
        before = monotonic()
        wanted = [HeldLease(lease.job.id, lease.job.token, lease.job.lease) for lease in leases]
        found = self._store.renew(wanted)
        for lease, renewal in zip(leases, found, strict=True):
            self._note(lease, renewal, before)
        renewed = sum(renewal is Renewal.RENEWED for renewal in found)
        if renewed:
            self._events.publish(LeasesExtended("ok", renewed))

    def _note(self, lease: Lease, renewal: Renewal, before: float) -> None:
        if renewal is Renewal.RENEWED:
            lease.renewed_at = before
        elif renewal is Renewal.LOCKED:
            lease.retry_at = monotonic() + lease.job.lease / 12
        elif self._ours_to_lose(lease, renewal):
            self.drop([lease])
            self._events.publish(LeasesExtended("lost", 1))
            lease.lose(self._events, "renewal")

    def _ours_to_lose(self, lease: Lease, renewal: Renewal) -> bool:
        """A missing match means nothing while the job's end is being written, or once the handler
        has finished the job in its own transaction."""
        with self._lock:
            held = (lease.job.id, lease.job.token) in self._held
        finished = renewal is Renewal.GONE and lease.view is not None and lease.view.completed
        return held and not lease.settling and not finished
