"""The regimes that a queue's table can be in, each brought about and measured, beside the base that they compare with.

A regime yields what it saw under its name. Every claim comes right after a look, as in a worker whose batches take
longer than a look's hits are trusted; only rows that are to pass in numbers are drained without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from benchmarks import rows
from benchmarks.measured import Plan
from benchmarks.seen import PAGES_EVERY, Pages, Seen
from benchmarks.subject import NORMAL, QUEUE, Subject
from tests.support.private import PrivateServer

MANY = 100
"""Jobs of a large batch: the most that `batch: auto` takes."""

QUIET = 0.025
"""Seconds between the jobs of a slow trickle: the server has purged the last one by then."""

PRIORITIES = (0, 1, 2, 3)

Part = tuple[str, Seen]


@dataclass(frozen=True)
class Ground:
    """Where one server's regimes are brought about.

    Attributes:
        kept: databases that take long to fill, by regime.
    """

    server: PrivateServer
    plan: Plan
    pages: Pages
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


def base(ground: Ground) -> Seen:
    """The empty table's poll; claims of one job and of a hundred where few more wait, and of a hundred where one is."""
    subject = ground.filled("base", lambda plan, subject: None)
    return _all_operations(ground, subject)


def deep_backlog(ground: Ground) -> Iterator[Part]:
    """200,000 jobs wait."""
    with ground.fresh() as subject:
        rows.ready(subject.run, ground.plan.jobs(200_000))
        seen = Seen(ground.pages)
        _polls(ground, subject, seen)
        _claims(ground, subject, seen)
        yield "deep_backlog", seen


def trickle(ground: Ground) -> Iterator[Part]:
    """One job in, one out, thousands of times: what the last half of them cost."""
    with ground.fresh() as subject:
        yield "trickle", _trickled(ground, subject, ground.times(3000))
    with ground.fresh() as subject:
        yield "stream", _streamed(ground, subject)


def after_work(ground: Ground) -> Iterator[Part]:
    """An empty queue, right after 100,000 jobs."""
    with ground.fresh() as subject:
        rows.ready(subject.run, ground.plan.jobs(100_000))
        subject.drain(ground.plan.jobs(100_000))
        seen = Seen(ground.pages)
        _polls(ground, subject, seen)
        yield "after_work", seen


def priorities(ground: Ground) -> Iterator[Part]:
    """All four priorities have jobs, and are served by turns."""
    with ground.fresh() as subject:
        for priority in PRIORITIES:
            rows.ready(subject.run, _wanted(ground), priority=priority)
        seen = Seen(ground.pages)
        _polls(ground, subject, seen)
        _claims(ground, subject, seen, PRIORITIES)
        yield "priorities", seen


def delayed(ground: Ground) -> Iterator[Part]:
    """Beside 1,000,000 jobs that are due later."""
    yield "delayed", _all_operations(ground, ground.filled("delayed", _delayed))


def other_queue(ground: Ground) -> Iterator[Part]:
    """Beside 100,000 jobs of a queue that isn't served."""
    yield "other_queue", _all_operations(ground, ground.filled("other_queue", _other_queue))


def reserved(ground: Ground) -> Iterator[Part]:
    """Beside 20,000 jobs in the hands of others."""
    yield "reserved", _all_operations(ground, ground.filled("reserved", _reserved))


def together(ground: Ground) -> Iterator[Part]:
    """Beside all of these."""
    yield "together", _all_operations(ground, ground.filled("together", all_of_them))


def insert_select(ground: Ground) -> Iterator[Part]:
    """20,000 jobs of one INSERT ... SELECT, which share their due time: while they pass, and right after."""
    with ground.fresh() as subject:
        rows.at_one_moment(subject.run, ground.plan.jobs(20_000))
        seen = Seen(ground.pages)
        for limit in (MANY, 1):
            for _ in range(min(ground.times(100), ground.plan.jobs(20_000) // 2 // limit)):
                seen.timed("poll", subject.look)
                jobs = seen.timed(f"claim{limit}", partial(subject.claim, limit))
                subject.finish(jobs)
        while jobs := subject.claim(MANY):
            subject.finish(jobs)
        for _ in range(ground.times(50)):
            seen.timed("poll", subject.look)
        yield "insert_select", seen


def snapshot(ground: Ground) -> Iterator[Part]:
    """A foreign snapshot is held open while 100,000 jobs pass; then jobs come one by one, then by the hundred."""
    passing = ground.plan.jobs(100_000)
    with ground.fresh() as subject, subject.foreign_snapshot():
        rows.ready(subject.run, passing + _wanted(ground))
        subject.drain(passing)
        seen = Seen(ground.pages)
        _claims(ground, subject, seen)
        _polls(ground, subject, seen)
        yield "snapshot", seen
        yield "snapshot_trickle", _trickled(ground, subject, ground.times(3000))
        yield "snapshot_stream", _streamed(ground, subject)


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


def _all_operations(ground: Ground, subject: Subject) -> Seen:
    """Polls while nothing is ready, claims of a small backlog, then one job now and then."""
    seen = Seen(ground.pages)
    _polls(ground, subject, seen)
    rows.ready(subject.run, _wanted(ground))
    _claims(ground, subject, seen)
    for _ in range(ground.times(100)):
        time.sleep(QUIET)
        _put_in(subject, 1)
        subject.look()
        subject.finish(seen.timed("claim_short", lambda: subject.claim(MANY)))
    return seen


def _trickled(ground: Ground, subject: Subject, times: int) -> Seen:
    """One fresh job at a time, claimed by a batch of one and of a hundred by turns, the queue empty in between."""
    early, late = Seen(ground.pages), Seen(ground.pages)
    for number in range(times):
        seen = late if number >= times // 2 else early
        _put_in(subject, 1)
        seen.timed("poll", subject.look)
        operation, limit = (("claim1", 1), ("claim_short", MANY))[number // PAGES_EVERY % 2]
        jobs = seen.timed(operation, partial(subject.claim, limit))
        assert len(jobs) == 1, f"{len(jobs)} jobs where one was put in"
        subject.finish(jobs)
        seen.timed("poll", subject.look)
    return late


def _streamed(ground: Ground, subject: Subject) -> Seen:
    """A hundred fresh jobs at a time, the queue empty in between: what the last half of 100,000 cost."""
    early, late = Seen(ground.pages), Seen(ground.pages)
    times = ground.times(1000)
    for number in range(times):
        seen = late if number >= times // 2 else early
        _put_in(subject, MANY)
        seen.timed("poll", subject.look)
        jobs = seen.timed("claim100", partial(subject.claim, MANY))
        assert len(jobs) == MANY, f"{len(jobs)} jobs where {MANY} were put in"
        subject.finish(jobs)
    return late


def _polls(ground: Ground, subject: Subject, seen: Seen) -> None:
    for _ in range(ground.times(300)):
        seen.timed("poll", subject.look)


def _claims(ground: Ground, subject: Subject, seen: Seen, priorities: tuple[int, ...] = (NORMAL,)) -> None:
    """Claims of one job, then of a hundred, from a backlog that is there, from its priorities by turns."""
    subject.look(full=True)  # which finds what is older than the last polls looked for
    for limit, times in _SERIES:
        for number in range(ground.times(times)):
            subject.look()
            priority = priorities[number % len(priorities)]
            jobs = seen.timed(f"claim{limit}", partial(subject.claim, limit, priority))
            assert len(jobs) == limit, f"{len(jobs)} jobs where {limit} are there"
            subject.finish(jobs)


_SERIES = ((1, 300), (MANY, 60))
"""Jobs in a claim, and how many claims."""


def _wanted(ground: Ground) -> int:
    """Jobs that the claims of `_claims` take from one priority at most."""
    return sum(limit * ground.times(times) for limit, times in _SERIES)


def _put_in(subject: Subject, count: int) -> None:
    """Fresh jobs, as producers put them in."""
    row = f"('{QUEUE}', 'noop')"
    subject.run(f"INSERT INTO qd_jobs (queue, type) VALUES {', '.join([row] * count)}")
