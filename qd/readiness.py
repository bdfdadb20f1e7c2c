"""Waits for descriptors, however high their numbers: select.select ends at 1,023, and with files and sockets that jobs
hold open, or one reload more, a daemon's own pass that. Pure: the standard library only. Owns nothing.
"""

from __future__ import annotations

import math
import select
from typing import Protocol


class HasDescriptor(Protocol):
    """A socket, or anything else that has one."""

    def fileno(self) -> int:
        """The descriptor."""
        ...


def readable(*sources: int | HasDescriptor, within: float | None = None) -> set[int]:
    """Waits until something can be read from one of these, or its other end has gone.

    Args:
        within: seconds at most; None: for ever.

    Returns:
        the descriptors of those; empty: none within that time.

    Raises:
        ValueError: one of them is closed.
    """
    poll = select.poll()
    for source in sources:
        poll.register(source, select.POLLIN)
    happened = poll.poll(None if within is None else math.ceil(max(0.0, within) * 1000))
    if any(event & select.POLLNVAL for _, event in happened):
        raise ValueError("a descriptor that was waited for is closed")
    return {descriptor for descriptor, _ in happened}
