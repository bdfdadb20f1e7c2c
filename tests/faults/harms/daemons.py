"""Harm to the daemons. The first of a fleet is spared what costs leases: its counters must tell the truth."""

from __future__ import annotations

import random

from tests.faults.harms.base import Harms, Lasting
from tests.faults.jobs import BOXED_POISON, DEADLY_POISON, LEASE, NewJob


class DaemonHarms(Harms):
    """What operators, the kernel and handlers do to them."""

    def daemon_killed(self, rng: random.Random) -> Lasting:
        """kill -9, and started again."""
        with self.member(rng, first=1) as member:
            member.kill()
        yield 0.0

    def daemon_frozen(self, rng: random.Random) -> Lasting:
        """It stands still for up to two leases, which is long enough to lose them."""
        seconds = rng.choice([rng.uniform(0.1, 2.0), *[rng.uniform(LEASE + 2, 2 * LEASE + 2)] * 2])
        with self.member(rng, first=1) as member, member.frozen():
            yield seconds

    def daemon_stopped(self, rng: random.Random) -> Lasting:
        """It is stopped in order, whatever it is at, and started again."""
        with self.member(rng, first=1) as member:
            member.stop()
        yield 0.0

    def reloaded(self, rng: random.Random) -> Lasting:
        """It gets another configuration: other batches, other numbers of threads."""
        with self.member(rng) as member:
            workers = [{**worker, "threads": rng.choice([1, 3, 5])} for worker in member.config.config["workers"]]
            member.reload(batch=rng.choice(["auto", 5, 50]), workers=workers)
        yield 0.0

    def poisoned(self, rng: random.Random) -> Lasting:
        """Jobs are put in that end the process that runs them."""
        boxed = [_poison(rng.choice(BOXED_POISON), "boxed", rng.choice([1, 2, None])) for _ in range(3)]
        hangs = [_poison("hang", "boxed", 1)] if rng.random() < 0.3 else []
        self.fleet.enqueue(*boxed, *hangs, _poison(rng.choice(DEADLY_POISON), "risky", None))
        yield 0.0


def _poison(does: str, queue: str, most: int | None) -> NewJob:
    return NewJob(type="poison", does=does, queue=queue, max_attempts=most)
