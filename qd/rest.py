"""How a loop that has nothing to look after rests until there is something. Pure."""

from __future__ import annotations

from collections.abc import Callable


class Rest:
    """One loop's. The loop calls `lie_down` BEFORE it looks, and `get_up` if it has found something.

    Whoever begins something makes it visible first and calls `disturb` then: whichever comes first, the
    loop has seen it or is woken.

    Attributes:
        wake: begins the loop's next round now; set by whoever starts the loop.
    """

    __slots__ = ("_resting", "wake")

    def __init__(self) -> None:
        self._resting = False
        self.wake: Callable[[], None] = lambda: None

    def lie_down(self) -> None:
        """From here on the loop wants to be woken."""
        self._resting = True

    def get_up(self) -> None:
        """The loop looks by itself again."""
        self._resting = False

    def disturb(self) -> None:
        """There is something: wakes the loop if it rests."""
        if self._resting:
            self._resting = False
            self.wake()
