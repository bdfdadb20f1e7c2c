"""Whether claims and polls cost the same in every regime, on every kind of server.

Each regime's calls are made by turns with the same ones on small tables of the same server, so that a busy machine
slows down both; both halves of the latter are told. What can't cost the same everywhere is `shares`.
`python -m benchmarks.regimes --scale 0.05 --servers mariadb` runs it alone.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

from benchmarks.alone import alone
from benchmarks.base import Small
from benchmarks.measured import Measured, Plan, of_rounds
from benchmarks.members import running, title
from benchmarks.seen import Pages, Seen, percentile
from benchmarks.shares import shares
from benchmarks.states import REGIMES, Ground
from tests.support.private import PrivateServer

Key = tuple[str, str]
"""Operation and regime."""

PURGED = 2000
"""Transactions that a server may have left to purge when the next measuring begins: what it keeps at rest."""

PURGE_WITHIN = 60.0
"""Seconds that it is given for that."""


@dataclass
class Figures:
    """What one server's rounds gave for one operation in one regime."""

    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    base: list[float] = field(default_factory=list)
    ratio: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def measure(plan: Plan) -> list[Measured]:
    """Every regime on every server of the plan, and the shares of what can't be flat."""
    return [one for name in plan.servers for one in _on_server(plan, name)]


def _on_server(plan: Plan, name: str) -> Iterator[Measured]:
    with running(name) as server, closing(Pages(server)) as pages:
        figures: dict[Key, Figures] = defaultdict(Figures)
        with closing(Ground(server, plan, pages, Small(server))) as ground:
            for number in range(plan.rounds):
                plan.say(f"regimes on {title(server)}: round {number + 1} of {plan.rounds}")
                _round(ground, figures)
        for (operation, regime), seen in figures.items():
            yield from _rows(f"regime.{name}.{operation}.{regime}", seen)
        yield from shares(plan, server, name)


def _round(ground: Ground, figures: dict[Key, Figures]) -> None:
    for regime in REGIMES:
        for part in regime(ground):
            ground.plan.say(f"  {part.name}")
            for operation in part.seen.times:
                _compare(figures[operation, part.name], operation, part.seen, part.base.seen)
        _let_purge(ground.server)


def _compare(figures: Figures, operation: str, seen: Seen, base: Seen) -> None:
    figures.p50.append(seen.p50(operation))
    figures.p99.append(seen.p99(operation))
    figures.base.append(base.p50(operation))
    figures.ratio.append(seen.p50(operation) / base.p50(operation))
    pages = f"{seen.pages_of(operation):.0f} pages read against {base.pages_of(operation):.0f}"
    figures.notes.append("{}; the small table's p50 {:.0f} us, then {:.0f}".format(pages, *base.halves(operation)))


def _rows(key: str, figures: Figures) -> Iterator[Measured]:
    yield of_rounds(f"{key}.p50", figures.p50, "us")
    yield of_rounds(f"{key}.p99", figures.p99, "us")
    yield of_rounds(f"{key}.base", figures.base, "us", "the same call on the small table, p50")
    middle = figures.ratio.index(percentile(figures.ratio, 0.5))
    yield of_rounds(f"{key}.ratio", figures.ratio, "x", figures.notes[middle])


def _let_purge(server: PrivateServer) -> None:
    """What one regime left behind isn't to be purged in the next one's time."""
    end = time.monotonic() + PURGE_WITHIN
    while _unpurged(server) > PURGED and time.monotonic() < end:
        time.sleep(0.1)


def _unpurged(server: PrivateServer) -> int:
    found = re.search(r"History list length (\d+)", str(server.run("SHOW ENGINE INNODB STATUS")[0][2]))
    return int(found[1]) if found else 0


if __name__ == "__main__":
    alone(measure)
