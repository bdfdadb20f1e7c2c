"""How idle threads are woken: each waits at the bell, a look's hits ring it for one that can serve.

May import: sight and the pure modules.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from qd.clock import monotonic
from qd.sight import Sight


class Waiter:
    """One idle thread's place at the bell.

    Args:
        queues: what it serves.
    """

    def __init__(self, queues: Iterable[str]) -> None:
        self.queues = frozenset(queues)
        self.event = threading.Event()
        self.sight: Sight | None = None


class Bell:
    """Wakes one waiting thread for each queue that has work. Also notes when work was last found."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Waiter, None] = {}
        self._closed = False
        self.worked_at = 0.0

    def wait(self, waiter: Waiter, timeout: float) -> Sight | None:
        """Waits to be rung for.

        Args:
            timeout: seconds at most.

        Returns:
            The look that saw the work, or None (time out, or closed).
        """
        with self._lock:
            if self._closed:  # who was on the way here must not miss the end
                return None
            self._waiting[waiter] = None
        waiter.event.wait(timeout)
        with self._lock:
            self._waiting.pop(waiter, None)
            sight, waiter.sight = waiter.sight, None
            waiter.event.clear()
        return sight

    def idle(self) -> bool:
        """Whether any thread waits."""
        return bool(self._waiting)

    def ring(self, sight: Sight) -> set[str]:
        """Wakes one waiting thread for each queue with hits; the queues that nobody was free for.

        Args:
            sight: handed on as it is: a look grows old also where threads call one another.
        """
        unserved = set()
        with self._lock:
            for queue in sight.look.hits:
                for waiter in self._waiting:
                    if queue in waiter.queues:
                        waiter.sight = sight
                        waiter.event.set()
                        del self._waiting[waiter]
                        break
                else:
                    unserved.add(queue)
        return unserved

    def worked(self) -> None:
        """A claim brought something, or that has ended: polls become quick."""
        self.worked_at = monotonic()

    def close(self) -> None:
        """Wakes every waiting thread, for good: from now on nobody waits here."""
        with self._lock:
            self._closed = True
            for waiter in self._waiting:
                waiter.event.set()
