"""Work and harm for a fleet, side by side, for some time; then peace until all is settled."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import mysql.connector

from qd.clock import monotonic
from tests.faults.fleet import Fleet
from tests.faults.harm import Harm
from tests.faults.jobs import some_job
from tests.support.waiting import wait_for

AT_ONCE = 50
"""Jobs put in together, at most."""

SETTLED_WITHIN = 120.0
"""Seconds for a lease, the sweep, back-offs and the longest jobs, on a busy machine."""


@dataclass(frozen=True)
class Plan:
    """What a campaign is to be.

    Attributes:
        seconds: so long the fleet is harmed, while its jobs are put in.
        jobs: in all.
        backlog: as many may wait or run while more are put in.
        pause: seconds from one harm to the next, at least and at most.
        long: the share of jobs that take seconds.
    """

    seed: int
    seconds: float
    jobs: int
    backlog: int = 300
    pause: tuple[float, float] = (0.1, 0.6)
    long: float = 0.03


class Campaign:
    """One run of a plan.

    Attributes:
        put: jobs put in so far.
        began: monotonic.
    """

    def __init__(self, fleet: Fleet, plan: Plan, kinds: Sequence[str]) -> None:
        self.fleet, self.plan = fleet, plan
        self.harm = Harm(fleet, random.Random(f"{plan.seed} harms"), kinds)
        self._chance = random.Random(f"{plan.seed} jobs")
        self._pauses = random.Random(f"{plan.seed} pauses")
        self.put = 0
        self.began = monotonic()

    def run(self, tell: Callable[[], None] = lambda: None) -> None:
        """The whole of it.

        Args:
            tell: called often.
        """
        end, next_harm = self.began + self.plan.seconds, self.began
        while monotonic() < end or self.put < self.plan.jobs:
            if monotonic() >= next_harm:
                self.harm.one()
                next_harm = monotonic() + self._pauses.uniform(*self.plan.pause)
            with suppress(mysql.connector.Error):  # the server is away: again, later
                self._feed()
            self.fleet.tend()
            tell()
            until = min(next_harm, monotonic() + 0.2)
            wait_for(lambda: monotonic() > until, 60, "the next turn")  # noqa: B023
        self.harm.over()
        self.fleet.until_empty(SETTLED_WITHIN)

    def _feed(self) -> None:
        due = min(1.0, (monotonic() - self.began) / self.plan.seconds) * self.plan.jobs - self.put
        wanted = min(AT_ONCE, round(due))
        if wanted > 0 and self.fleet.jobs() < self.plan.backlog:
            self.fleet.enqueue(*[some_job(self._chance, self.plan.long) for _ in range(wanted)])
            self.put += wanted
