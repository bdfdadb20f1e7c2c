"""Looks after batches whose thread is busy with a long job: what waits to start is handed back for
others to take, what waits to be written is written. One row that somebody has locked holds up no other.
Owns what it has taken until that is written. May import: acknowledge, batch, gate, policy, rest and the pure modules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from qd.acknowledge import Acknowledger
from qd.batch import Batch, Done
from qd.errors import StoreError
from qd.gate import Gate
from qd.policy import unstarted
from qd.rest import Rest

EVERY = 0.1
"""Seconds between rounds; a round asks the database nothing unless something is late."""


IDLE = 1.0
"""The same while no thread has a batch; the next that is begun ends it."""


class Returner:
    """A `Service` with a store of its own, which it opens when first needed.

    Args:
        batches: what all threads of the engine work on now.
        close_store: closes that store.
        rest: disturbed where a batch of several jobs begins.
    """

    name = "returner"

    def __init__(
        self,
        batches: Callable[[], Iterable[Batch]],
        acknowledger: Acknowledger,
        gate: Gate,
        close_store: Callable[[], None],
        rest: Rest,
    ) -> None:
        self._batches, self._acknowledger, self._gate, self._close_store = batches, acknowledger, gate, close_store
        self._rest = rest
        self._waiting: deque[Done] = deque()

    def run_once(self) -> float:
        """Takes what is late from each batch; seconds until the next round.

        Raises:
            StoreError: the database is away; what was taken waits for the next round.
        """
        self._rest.lie_down()
        batches = list(self._batches())
        if not (batches or self._waiting):
            return IDLE
        self._rest.get_up()
        taken = [*self._take_unstarted(batches), *(done for batch in batches for done in batch.take_late())]
        self._waiting.extendleft(reversed(taken))
        if taken and self._acknowledger.try_once(taken):
            for _ in taken:
                self._waiting.popleft()
        self._write_what_waits()
        return EVERY

    def close(self) -> None:
        """Writes what waits, until it is written or a stop's deadline is over; closes its connection."""
        while self._waiting and not self._gate.late():
            with suppress(StoreError):  # said and counted where the connection is
                self._write_what_waits()
            if self._waiting:
                self._gate.pause(EVERY)
        self._close_store()

    def _take_unstarted(self, batches: Iterable[Batch]) -> list[Done]:
        """What others can run."""
        late = [lease for batch in batches for lease in batch.take_unstarted(all_of_it=self._gate.closed)]
        self._gate.refund(len(late))
        return [(lease, unstarted(lease.job)) for lease in late]

    def _write_what_waits(self) -> None:
        """One by one, up to the first that is locked: each costs a lock wait, and what is new has to have its turn.
        It comes last in the next round."""
        while self._waiting:
            if not self._acknowledger.try_once([self._waiting[0]]):
                self._waiting.rotate(-1)
                return
            self._waiting.popleft()
