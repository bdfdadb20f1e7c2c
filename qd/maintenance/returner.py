"""Looks after batches whose thread is busy with a long job: what waits to start is handed back for
others to take, what waits to be written is written. May import: acknowledge, batch, gate, policy, rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from qd.acknowledge import Acknowledger
from qd.batch import Batch
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

    def run_once(self) -> float:
        """Takes what is late from each batch; seconds until the next round."""
        self._rest.lie_down()
        batches = list(self._batches())
        if not batches:
            return IDLE
        self._rest.get_up()
        for batch in batches:
            late = batch.take_unstarted(all_of_it=self._gate.closed)
            done = batch.take_late()
            self._acknowledger.settle([*done, *((lease, unstarted(lease.job)) for lease in late)])
            self._gate.refund(len(late))
        return EVERY

    def close(self) -> None:
        """Closes its connection."""
        self._close_store()
