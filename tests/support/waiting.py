"""Waiting for a condition with a deadline, so that no test sleeps for a guessed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL = 0.01
"""Seconds between two looks at a condition."""


def wait_for(cond: Callable[[], T], within: float, what: str) -> T:
    """Calls `cond` until its value is true, and returns that value.

    Args:
        cond: the condition; an exception that it raises ends the wait.
        within: seconds; at least one look is taken.
        what: completes "waited in vain for ...".

    Raises:
        AssertionError: it didn't come true in time.
    """
    deadline = time.monotonic() + within
    while True:
        value = cond()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {within:g} s in vain for {what}; the last value was {value!r}")
        time.sleep(POLL)
