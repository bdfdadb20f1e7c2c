"""Watches a queue being drained: when the first job ran, when the last was finished, and that each ran once.

May import: processes. Pure but for the shared file and the clock.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import NotRun, Process

LOOK = 0.002
"""Seconds between two looks."""

STARTING = 60.0
"""Seconds that the workers may take until a first job has run."""

LIMIT = 180.0
"""Seconds that a drain may take."""


class Ran:
    """The file in which job n raises byte n.

    Args:
        path: made anew.
        jobs: its length.
    """

    def __init__(self, path: Path, jobs: int) -> None:
        path.write_bytes(bytes(jobs))
        with path.open("r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), jobs)
        self._jobs, self._all_before = jobs, 0

    def close(self) -> None:
        """Lets go of the file."""
        self._bytes.close()

    def any(self) -> bool:
        """Whether a job ran."""
        return self._bytes.find(b"\1") >= 0

    def all(self) -> bool:
        """Whether every job ran; cheap, as jobs run in about the order of their numbers."""
        first_left = self._bytes.find(b"\0", self._all_before)
        self._all_before = self._jobs if first_left < 0 else first_left
        return first_left < 0

    def done(self) -> int:
        """Jobs that ran."""
        return self._jobs - self._bytes[:].count(0)

    def again(self) -> int:
        """Jobs that ran more than once."""
        return self.done() - self._bytes[:].count(1)


@dataclass(frozen=True, slots=True)
class Drained:
    """What was seen.

    Attributes:
        done: jobs that ran.
        again: those that ran more than once.
        seconds: from the first run to the last job's end in the backend.
    """

    jobs: int
    done: int
    again: int
    seconds: float

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.done / self.seconds

    def faults(self) -> str:
        """What isn't as it should be, or nothing."""
        late = f"only {self.done:,} of {self.jobs:,} jobs within {self.seconds:.3g} s" if self.done < self.jobs else ""
        twice = f"{self.again:,} jobs ran more than once" if self.again else ""
        return ", ".join(fault for fault in (late, twice) if fault)


def watched(ran: Ran, jobs: int, left: Callable[[], int], workers: Sequence[Process], limit: float = LIMIT) -> Drained:
    """Waits until every job ran and the backend holds none for unfinished, or the time is up.

    The time begins at the last look that saw nothing run, so workers' start-up is left out of it, alike for all.

    Raises:
        NotRun: no job ran, or the workers ended with work left.
    """
    began = _first(ran, workers)
    while not (ran.all() and left() == 0):
        now = time.monotonic()
        if now - began > limit:
            break
        if not any(worker.alive() for worker in workers) and left() > 0:
            raise NotRun(f"the workers ended with {left():,} jobs left: {workers[0].last_words()}")
        time.sleep(LOOK)
    return Drained(jobs, ran.done(), ran.again(), time.monotonic() - began)


def _first(ran: Ran, workers: Sequence[Process]) -> float:
    """When a first job was about to run."""
    before = time.monotonic()
    until = before + STARTING
    while True:
        now = time.monotonic()
        if ran.any():
            return before
        before = now
        if now > until:
            raise NotRun(f"no job ran within {STARTING:.0f} s: {workers[0].last_words()}")
        if not any(worker.alive() for worker in workers):
            raise NotRun(f"the workers ended at once: {workers[0].last_words()}")
        time.sleep(LOOK)
