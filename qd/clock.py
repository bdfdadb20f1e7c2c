"""The one clock that decides about waiting. Pure.

No time but the database's decides about rows (docs: invariants); inside the process only the
monotonic clock decides, so that a stepped wall clock neither stalls nor spins a loop.
"""

from __future__ import annotations

import time

monotonic = time.monotonic
"""Seconds that never run backwards (CLOCK_MONOTONIC)."""


_BEGAN = monotonic()


def process_age() -> float:
    """Seconds since this process began to run qd's code."""
    return monotonic() - _BEGAN


def monotonic_usec() -> int:
    """CLOCK_MONOTONIC in microseconds, as sd_notify's MONOTONIC_USEC wants it."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
