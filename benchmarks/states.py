"""The regimes that a queue's table can be in, each brought about and measured, its base in between.

Every claim comes right after a look, as in a worker whose batches take longer than a look's hits are trusted; only
rows that are to pass in numbers are drained without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from benchmarks import rows
from benchmarks.base import Base, Small, one_through
from benchmarks.measured import Plan
from benchmarks.seen import PAGES_EVERY, Pages, Seen
from benchmarks.subject import NORMAL, Subject, whole
from tests.support.private import PrivateServer

MANY = 100
"""Jobs of a large batch: the most that `batch: auto` takes."""

QUIET = 0.025
"""Seconds between the jobs of a slow trickle: the server has purged the last one by then."""

BASE_EVERY = 5
"""Where jobs pass as quickly as they can the base is measured beside every fifth, so that they still do."""

PRIORITIES = (0, 1, 2, 3)


class Part:
    """A regime, or a part of one, while it is measured.

    Attributes:
        seen: what its own calls took.
        base: makes and notes those that they are compared with.
    """

    def __init__(self, ground: Ground, name: str) -> None:
        self.name, self.seen, self.base = name, Seen(ground.pages), Base(ground.small, ground.pages)


@dataclass(frozen=True)
class Ground:
    """Where one server's regimes are brought about.

    Attributes:
        kept: databases that take long to fill, by regime.
    """

    server: PrivateServer
    plan: Plan
    pages: Pages
    small: Small
    kept: dict[str, Subject] = field(default_factory=dict)

    def times(self, full: int) -> int:
        """That many calls, by the scale; never under 20."""
        return max(20, int(full * self.plan.scale))

    @contextmanager
    def fresh(self) -> Iterator[Subject]:
        """A database for one use."""
        subject = Subject(self.server)
        try:
            yield subject
        finally:
            subject.close()

    def filled(self, name: str, fill: Callable[[Plan, Subject], None]) -> Subject:
        """A database that is filled once and used in every round."""
        if name not in self.kept:
            self.kept[name] = Subject(self.server)
            fill(self.plan, self.kept[name])
        return self.kept[name]

    def close(self) -> None:
        """Drops all that was kept."""
        for subject in self.kept.values():
            subject.close()
        self.small.close()


def deep_backlog(ground: Ground) -> Iterator[Part]:
    """200,000 jobs wait."""
    part = Part(ground, "deep_backlog")
    with ground.fresh() as subject:
        rows.ready(subject.run, ground.plan.jobs(200_000))
        _polls(ground, subject, part)
        _claims(ground, subject, part)
    yield part


def trickle(ground: Ground) -> Iterator[Part]:
    """One job in, one out, thousands of times; then a hundred at a time."""
    with ground.fresh() as subject:
        yield _trickled(ground, subject, Part(ground, "trickle"))
    with ground.fresh() as subject:
        yield _streamed(ground, subject, Part(ground, "stream"))


def after_work(ground: Ground) -> Iterator[Part]:
    """An empty queue, right after 100,000 jobs."""
    part = Part(ground, "after_work")
    with ground.fresh() as subject:
        rows.ready(subject.run, ground.plan.jobs(100_000))
        subject.drain(ground.plan.jobs(100_000))
        _polls(ground, subject, part)
    yield part


def priorities(ground: Ground) -> Iterator[Part]:
    """All four priorities have jobs, and are served by turns."""
    part = Part(ground, "priorities")
    with ground.fresh() as subject:
        for priority in PRIORITIES:
            rows.ready(subject.run, _wanted(ground), priority=priority)
        _polls(ground, subject, part)
        _claims(ground, subject, part, PRIORITIES)
    yield part


def insert_select(ground: Ground) -> Iterator[Part]:
    """20,000 jobs of one INSERT ... SELECT, which share their due time: while they pass, and right after."""
    part = Part(ground, "insert_select")
    with ground.fresh() as subject:
        rows.at_one_moment(subject.run, ground.plan.jobs(20_000))
        for limit in (MANY, 1):
            for _ in range(min(ground.times(100), ground.plan.jobs(20_000) // 2 // limit)):
                part.seen.timed("poll", subject.look)
                subject.finish(whole(limit, part.seen.timed(f"claim{limit}", partial(subject.claim, limit))))
                part.base.poll()
                part.base.claim(limit)
        while jobs := subject.claim(MANY):
            subject.finish(jobs)
        _polls(ground, subject, part)
    yield part


def snapshot(ground: Ground) -> Iterator[Part]:
    """A foreign snapshot is held open while 100,000 jobs pass; then jobs come one by one, then by the hundred."""
    passing = ground.plan.jobs(100_000)
    with ground.fresh() as subject, subject.foreign_snapshot():
        rows.ready(subject.run, passing + _wanted(ground))
        subject.drain(passing)
        part = Part(ground, "snapshot")
        _claims(ground, subject, part)
        _polls(ground, subject, part)
        yield part
        yield _trickled(ground, subject, Part(ground, "snapshot_trickle"))
        yield _streamed(ground, subject, Part(ground, "snapshot_stream"))


def delayed(ground: Ground) -> Iterator[Part]:
    """Beside 1,000,000 jobs that are due later."""
    yield _beside(ground, "delayed", _delayed)


def other_queue(ground: Ground) -> Iterator[Part]:
    """Beside 100,000 jobs of a queue that isn't served."""
    yield _beside(ground, "other_queue", _other_queue)


def reserved(ground: Ground) -> Iterator[Part]:
    """Beside 20,000 jobs in the hands of others."""
    yield _beside(ground, "reserved", _reserved)


def together(ground: Ground) -> Iterator[Part]:
    """Beside all of these."""
    yield _beside(ground, "together", all_of_them)


REGIMES = (
    deep_backlog, trickle, after_work, priorities, insert_select, snapshot, delayed, other_queue, reserved, together,
)  # fmt: skip


def all_of_them(plan: Plan, subject: Subject) -> None:
    """Fills a table with all rows that are no business of a claim."""
    _delayed(plan, subject)
    _other_queue(plan, subject)
    _reserved(plan, subject)


def _delayed(plan: Plan, subject: Subject) -> None:
    rows.delayed(subject.run, plan.jobs(1_000_000))


def _other_queue(plan: Plan, subject: Subject) -> None:
    rows.ready(subject.run, plan.jobs(100_000), queue="other")


def _reserved(plan: Plan, subject: Subject) -> None:
    rows.reserved(subject.run, plan.jobs(20_000))


def _beside(ground: Ground, name: str, fill: Callable[[Plan, Subject], None]) -> Part:
    """Polls while nothing is ready, claims of a small backlog, then one job now and then."""
    subject, part = ground.filled(name, fill), Part(ground, name)
    _polls(ground, subject, part)
    rows.ready(subject.run, _wanted(ground))
    _claims(ground, subject, part)
    for _ in range(ground.times(100)):
        time.sleep(QUIET)
        one_through(subject, part.seen, "claim_short", MANY)
        part.base.one_through("claim_short", MANY)
    return part


def _trickled(ground: Ground, subject: Subject, part: Part) -> Part:
    """Claims of one and of up to a hundred by turns, each of a fresh job, the queue empty in between."""
    early = Seen(ground.pages)
    times = ground.times(3000)
    for number in range(times):
        late = number >= times // 2
        seen = part.seen if late else early
        operation, limit = (("claim1", 1), ("claim_short", MANY))[number // PAGES_EVERY % 2]
        one_through(subject, seen, operation, limit)
        seen.timed("poll", subject.look)
        if late and number % BASE_EVERY == 0:
            part.base.poll()
            part.base.one_through(operation, limit)
    return part


def _streamed(ground: Ground, subject: Subject, part: Part) -> Part:
    """A hundred fresh jobs at a time, the queue empty in between: what the last half of 100,000 cost."""
    early = Seen(ground.pages)
    times = ground.times(1000)
    for number in range(times):
        late = number >= times // 2
        seen = part.seen if late else early
        subject.put_in(MANY)
        seen.timed("poll", subject.look)
        subject.finish(whole(MANY, seen.timed("claim100", partial(subject.claim, MANY))))
        if late and number % BASE_EVERY == 0:
            part.base.poll()
            part.base.claim(MANY)
    return part


def _polls(ground: Ground, subject: Subject, part: Part) -> None:
    for _ in range(ground.times(300)):
        part.seen.timed("poll", subject.look)
        part.base.poll()


def _claims(ground: Ground, subject: Subject, part: Part, priorities: tuple[int, ...] = (NORMAL,)) -> None:
    """Claims of one job, then of a hundred, from a backlog that is there, from its priorities by turns: each by
    itself, then each together with the ends of the jobs before."""
    subject.look(full=True)  # which finds what is older than the last polls looked for
    for limit, times in _SERIES:
        turns = [priorities[number % len(priorities)] for number in range(ground.times(times))]
        for priority in turns:
            subject.look()
            subject.finish(whole(limit, part.seen.timed(f"claim{limit}", partial(subject.claim, limit, priority))))
            part.base.claim(limit)
        _claims_with_ends(subject, part, limit, turns)


def _claims_with_ends(subject: Subject, part: Part, limit: int, turns: list[int]) -> None:
    jobs = subject.claim(limit, turns[0])
    base = part.base.claims_with_ends(limit)
    for priority in turns[1:]:
        subject.look()
        following = partial(subject.turn_over, whole(limit, jobs), limit, priority)
        jobs = part.seen.timed(f"claim{limit}_with_ends", following)
        base.turn()
    subject.finish(whole(limit, jobs))
    base.end()


_SERIES = ((1, 200), (MANY, 60))
"""Jobs in a claim, and how many claims of each way."""


def _wanted(ground: Ground) -> int:
    """Jobs that `_claims` takes from one priority at most."""
    return sum(limit * 2 * ground.times(times) for limit, times in _SERIES)
