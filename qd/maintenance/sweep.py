"""The stale sweep: takes back jobs whose owner is gone. May import: reach, store protocol, config, pure modules.

A row is taken back only if the same (id, token, lease end) was stale, and locked by nobody, at two looks
far enough apart, with no trouble at the database between: whoever wakes first after a stall, or after a
stranger's lock, must not steal the jobs of those who are about to renew. Reads tell nothing of that: where
only writes or commits stand still (a backup's lock, a replica that is waited for, a full disk), nobody can
renew, and an idle daemon would see no trouble. So at each look it writes something itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from qd.clock import monotonic
from qd.config.model import QueueConfig
from qd.errors import DataRefused, StoreError
from qd.events import Events, JobDeadLettered, Problem, StaleReclaimed
from qd.maintenance.reach import Reachable, reach
from qd.outcome import Reason, Verdict
from qd.store.protocol import StaleRow, Store
from qd.stretch import JOBS_WAIT, StretchedPeriod

ROWS_A_ROUND = 200
"""Rows looked at in one round; more are found in the next."""

LONGEST_ROUND = 5.0
"""Seconds after which a round takes no further row back: where locked rows can't be passed over each
costs a lock wait, and the thread has other duties. The rest comes in the next round."""

STALLED = 1.0
"""Seconds that the write beside a look may take; where it is slower, others' renewals may have waited too."""

FIRST_STRETCH = 60.0
"""Seconds that the first look, which may have opened the connection, can put off the second."""


class Sweepable(Reachable, Store, Protocol):
    """What the sweep asks of a store; every store offers it."""


class StaleSweep:
    """One engine's sweep over the queues that it serves.

    Args:
        store: shared with the other duties of the maintenance thread.
        policies: of the queues that are served.
        troubled_at: monotonic time of the database's last trouble.
        write: commits a change of this daemon's own.
        clock: the monotonic clock.
    """

    name = "stale sweep"

    def __init__(
        self,
        store: Sweepable,
        policies: Mapping[str, QueueConfig],
        events: Events,
        troubled_at: Callable[[], float],
        write: Callable[[], object],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store, self._policies, self._events, self._troubled_at = store, policies, events, troubled_at
        self._write, self._clock = write, clock
        self._seen: dict[StaleRow, float] = {}
        self._failing: set[StaleRow] = set()
        pace = max(0.5, min(policy.lease for policy in policies.values()) / 6)
        self._period = StretchedPeriod(pace, FIRST_STRETCH, JOBS_WAIT)  # its lane can't be kept flat

    def run_once(self) -> float:
        """One look, and what was stale long enough is taken back; seconds until the next.

        Raises:
            Exception: something failed, so all that was seen counts as not seen yet. A look that is merely too dear
                for its time limit raises nothing: it is made more rarely.
        """
        started = self._clock()
        try:
            rows = self._store.stale(list(self._policies), ROWS_A_ROUND)
        except StoreError as error:
            self._seen.clear()
            return self._period.given_up(self._clock() - started, error, partial(reach, self._store))
        wait = self._period.after(self._clock() - started)
        try:
            self._see(rows)
            self._take_back_due()
        except Exception:  # whatever kept us from writing may have kept the owners from it
            self._seen.clear()
            raise
        return wait

    def _see(self, rows: Sequence[StaleRow]) -> None:
        """Takes in one look; what it saw counts from the moment at which writes are known to pass."""
        rows = self._seen_or_free(rows)
        if rows and self._stands_still(rows[0]):
            self._seen.clear()
        now = self._clock()
        self._seen = {row: self._first_seen(row, now) for row in rows}
        self._failing.intersection_update(self._seen)

    def _stands_still(self, row: StaleRow) -> bool:
        """Whether a commit, or a lock in the jobs' table, is slow to be had."""
        started = self._clock()
        self._write()
        self._store.free([row])
        return self._clock() - started > STALLED

    def _take_back_due(self) -> None:
        now = self._clock()
        for row, first in sorted(self._seen.items(), key=lambda one: self._comes_last(one[0])):
            if self._clock() - now > LONGEST_ROUND:
                break
            if now - first >= self.apart(row.queue) and self._taken_back(row):
                del self._seen[row]

    def _comes_last(self, row: StaleRow) -> tuple[bool, bool]:
        """What has failed before, or needs the dead letters too, must not keep the rest from its turn."""
        return row in self._failing, row.attempts >= self._policies[row.queue].max_attempts

    def apart(self, queue: str) -> float:
        """Seconds that must lie between the two looks: more than a healthy keeper takes from one
        renewal to the next, so that even a step of the database's clock takes no job from it."""
        lease = self._policies[queue].lease
        return max(1.0, lease / 3 + min(2.0, lease / 6))

    def close(self) -> None:
        """Nothing of its own to close."""

    def _seen_or_free(self, rows: Sequence[StaleRow]) -> Sequence[StaleRow]:
        """Without those that are new and locked: their owners get the whole time once they are free."""
        new = [row for row in rows if row not in self._seen]
        free = self._store.free(new) if new else set()
        return [row for row in rows if row in self._seen or row in free]

    def _first_seen(self, row: StaleRow, now: float) -> float:
        first = self._seen.get(row, now)
        return first if first > self._troubled_at() else now

    def _taken_back(self, row: StaleRow) -> bool:
        """Tries to; a row that can't be taken back holds up no other, neither now nor in the next round."""
        try:
            self._take_back(row)
        except DataRefused as error:
            if row not in self._failing:
                self._events.publish(Problem(f"job {row.job_id}", f"its row can't be taken back: {error}"))
            self._failing.add(row)
            return False
        except Exception:
            self._failing.add(row)
            raise
        return True

    def _take_back(self, row: StaleRow) -> None:
        verdict = self._store.reclaim(row, self._policies[row.queue].max_attempts)
        if verdict is Verdict.LOST:
            return
        buried = verdict is Verdict.BURIED
        who = (row.job_id, row.queue, row.type, row.attempts)
        self._events.publish(StaleReclaimed(*who, owner=row.token, dead_lettered=buried))
        if buried:
            error = f"its owner {row.token} was lost, and it had no attempt left"
            self._events.publish(JobDeadLettered(*who, reason=Reason.LOST.value, error=error))
