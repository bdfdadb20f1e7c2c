"""What every contestant's job does: it raises its own byte in a file that all processes share, and nothing else.

So that it is exact which jobs ran, and how often, at some 100 ns a job. Runs inside each peer's own environment.
"""

import mmap
import os

with open(os.environ["BENCH_RAN"], "r+b") as file:
    _bytes = mmap.mmap(file.fileno(), 0)


def note(n: int) -> None:
    """The job with this number ran."""
    _bytes[n] += 1
