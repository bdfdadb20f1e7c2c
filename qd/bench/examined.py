"""How many rows the server reads for one claim, counted on the claiming connection itself.

Claims are the store's own, made while no daemon serves the queue; what they take is removed with all the
rest. May import: store protocol, the plan, the result.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from qd.bench.plan import Plan
from qd.bench.result import Looked
from qd.identity import Identity
from qd.job import PRIORITIES
from qd.store.protocol import Claim, FullStore

TIMES = 5
"""How often each thing is looked at."""


class Examiner:
    """Looks closely at claims.

    Args:
        store: whose connection claims and is asked.
        enqueue: puts so many jobs into the plan's queue.
        lease: seconds.
    """

    def __init__(self, store: FullStore, plan: Plan, enqueue: Callable[[int], object], lease: float) -> None:
        self._store, self._plan, self._enqueue, self._lease = store, plan, enqueue, lease
        self._identity = Identity()
        self._asking = 0

    def examine(self) -> dict[str, Looked] | None:
        """What each state of the queue costs; None: the database doesn't tell."""
        first = self._store.rows_read()
        again = self._store.rows_read()
        if first is None or again is None:
            return None
        self._asking = again - first
        return {
            "look_empty": self._look(),
            "claim_nearly_empty": self._claims(self._plan.at_once, refill=1),
            "look_backlog": self._backlog(),
            "claim_backlog": self._claims(self._plan.at_once),
            "claim_backlog_singly": self._claims(1),
        }

    def _backlog(self) -> Looked:
        self._enqueue(self._plan.backlog)
        return self._look()

    def _look(self) -> Looked:
        return Looked(0, 0, median(self._rows(self._look_once) for _ in range(TIMES)))

    def _claims(self, limit: int, refill: int = 0) -> Looked:
        """Several claims, each after a look as a daemon's is."""
        rows, jobs = list[int](), list[int]()
        for _ in range(TIMES):
            if refill:
                self._enqueue(refill)
            self._look_once()
            rows.append(self._rows(lambda: jobs.append(self._claim_once(limit))))
        return Looked(limit, round(median(jobs)), median(rows))

    def _look_once(self) -> None:
        self._store.look([self._plan.queue], full=False)

    def _claim_once(self, limit: int) -> int:
        token, normal = self._identity.token("bench"), PRIORITIES["normal"]
        claim = Claim(self._plan.queue, limit, self._lease, token, max_attempts=3, priorities=(normal,))
        return len(self._store.claim(claim))

    def _rows(self, act: Callable[[], object]) -> int:
        """Rows that the server reads for an act."""
        before = self._store.rows_read()
        act()
        after = self._store.rows_read()
        assert before is not None and after is not None  # it told before
        return max(0, after - before - self._asking)
