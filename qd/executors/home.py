"""The child that one worker thread keeps: there before work is claimed, replaced when worn or dead.

Used by that thread alone. May import: child, children, clock.
"""

from __future__ import annotations

from collections.abc import Callable

from qd.clock import monotonic
from qd.executors.child import POLITE, Child
from qd.executors.children import Children

LOOK_AGAIN = 10.0
"""Seconds that a child which lacks a handler is kept: the next may find it in its module again."""


class Home:
    """Keeps one child.

    Args:
        label: the thread's name.
        max_jobs: jobs after which it is replaced.
        max_memory: bytes that it may have grown since the end of its first job, or it is replaced.
    """

    def __init__(self, children: Children, label: str, max_jobs: int, max_memory: int) -> None:
        self._children, self._label = children, label
        self._max_jobs, self._max_memory = max_jobs, max_memory
        self.child: Child | None = None
        self._started_at = 0.0
        self._lacking = False

    def lacks(self) -> None:
        """The child doesn't know a handler that the daemon knows: it is replaced when it is LOOK_AGAIN old."""
        self._lacking = True

    def alive(self) -> bool:
        """Whether there is a child that can take a job now."""
        return self.child is not None and self.child.fit()

    def stays(self) -> bool:
        """Whether the next job would find this child, without a wait for another."""
        return self.child is not None and self.child.fit() and not self._worn(self.child)

    def ready(self, turn: Callable[[], None], unwanted: Callable[[], bool]) -> bool:
        """Sees to it that there is one; False: it can't be started (which was said), or isn't wanted.

        Args:
            turn, unwanted: see `Children.start`.
        """
        child = self.child
        if child is not None and not child.ended:
            if not child.fit():
                self.child = None
                if not self._told_end_of(child):
                    return False
            elif self._worn(child):
                child.retire()
            else:
                return True
        self.child = self._children.start(self._label, turn, unwanted)
        self._started_at, self._lacking = monotonic(), False
        return self.child is not None

    def _told_end_of(self, child: Child) -> bool:
        """Tells how one has ended between two jobs; False where it had run none, and the next may go on like that."""
        child.kill()
        if child.jobs == 0:
            self._children.note(f"{child.died()} while it waited for its first job")
            return False
        self._children.tell_of(child, self._label)
        return True

    def close(self, patience: float = POLITE) -> None:
        """Ends it."""
        child, self.child = self.child, None
        if child is not None:
            child.retire(patience)

    def _worn(self, child: Child) -> bool:
        if self._lacking and monotonic() - self._started_at >= LOOK_AGAIN:
            return True
        grown = child.grown()
        return child.jobs >= self._max_jobs or (grown is not None and grown > self._max_memory)
