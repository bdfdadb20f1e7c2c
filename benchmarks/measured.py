"""What a section of the benchmarks gives and is given. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

DURABLE = (
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=1G",
    "--innodb-log-file-size=256M",
)
"""Options of every server that is measured, on top of its own defaults: a committed job survives a power cut,
and the working set fits into memory, as it does where a queue is run in earnest."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure.

    Attributes:
        key: stable, dotted: `drain.qd.auto`, `pickup.insert.p99`; a target names it.
        value: the median of `rounds` where there are several.
        unit: `jobs/s`, `rows/s`, `ms`, `us`, `MiB`, `statements/s`, `%`, `x`.
        rounds: what each round gave, in order.
        note: what a reader must know beside it, in a few words.
    """

    key: str
    value: float
    unit: str
    rounds: tuple[float, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is to do.

    Attributes:
        rounds: interleaved rounds of everything that is compared.
        scale: share of the full number of jobs and rows: 1.0, or less for a quick look.
        servers: kinds of servers for the sections that run on several: `mariadb` (the machine's own),
            `mariadb118`, `mysql97`.
        folder: where servers, environments and logs may be kept.
        say: tells of progress, a line each.
    """

    rounds: int
    folder: Path
    say: Callable[[str], None]
    scale: float = 1.0
    servers: Sequence[str] = field(default=("mariadb",))

    def jobs(self, full: int) -> int:
        """That many jobs or rows, by the scale; never under 100."""
        return max(100, int(full * self.scale))


def of_rounds(key: str, rounds: Sequence[float], unit: str, note: str = "") -> Measured:
    """The median of several rounds."""
    return Measured(key, median(rounds), unit, tuple(rounds), note)
