"""What was timed, and how many pages of memory the server read for it. Pure but for the page counter's connection."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median
from typing import TypeVar

from tests.support.private import PrivateServer

T = TypeVar("T")

PAGES_EVERY = 10
"""One call of so many has its pages counted, and isn't timed: asking for the counter would be in the caches' way."""


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the others doesn't pass."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


class Pages:
    """Counts the pages that a server reads from its buffer pool: of a private server, which serves nobody else.

    Unlike time they are nearly the same on a busy machine; a purge in the background only adds to them.
    """

    def __init__(self, server: PrivateServer) -> None:
        self._connection = server.connect(autocommit=True)
        self._cursor = self._connection.cursor()

    def read(self) -> int:
        """The counter."""
        self._cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_read_requests'")
        return int(self._cursor.fetchall()[0][1])

    def close(self) -> None:
        """Closes its connection."""
        self._connection.close()


class Seen:
    """One measuring of one regime, or of the base: by operation, microseconds and pages of each call."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.pages: defaultdict[str, list[int]] = defaultdict(list)
        self._calls: defaultdict[str, int] = defaultdict(int)

    def timed(self, operation: str, act: Callable[[], T]) -> T:
        """Calls `act`, which is that operation."""
        self._calls[operation] += 1
        if self._calls[operation] % PAGES_EVERY == 1:
            before = self._pages.read()
            result = act()
            self.pages[operation].append(self._pages.read() - before)
            return result
        started = time.perf_counter()
        result = act()
        self.times[operation].append((time.perf_counter() - started) * 1e6)
        return result

    def p50(self, operation: str) -> float:
        """Microseconds."""
        return median(self.times[operation])

    def halves(self, operation: str) -> tuple[float, float]:
        """The medians of the earlier and of the later half, microseconds: they differ where the machine changed."""
        times = self.times[operation]
        return median(times[: (len(times) + 1) // 2]), median(times[len(times) // 2 :])

    def p99(self, operation: str) -> float:
        """Microseconds."""
        return percentile(self.times[operation], 0.99)

    def pages_of(self, operation: str) -> float:
        """Pages that a call read, the median."""
        return median(self.pages[operation])
