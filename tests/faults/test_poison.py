"""Jobs that end the process that runs them, among good ones: these are all done, and none of them twice."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.faults.fleet import Fleet
from tests.faults.jobs import DEADLY_POISON, HARMLESS_POISON, NewJob
from tests.faults.judgement import Judgement

NewFleet = Callable[..., Fleet]

AT_ONCE = 1000
"""Jobs put in together."""


def mixed(good: int, poison: int, killers: int, rng: random.Random) -> list[NewJob]:
    """Jobs in an order that chance decides.

    Args:
        poison: half of them end their child process, half raise what no handler should.
        killers: jobs in a daemon's own thread that end the daemon.
    """
    jobs = [NewJob(queue=rng.choice(["default", "boxed"]), priority=rng.choice([0, 2])) for _ in range(good)]
    for number in range(poison):
        does = rng.choice(DEADLY_POISON if number % 2 else HARMLESS_POISON)
        queue = "boxed" if number % 2 else rng.choice(["default", "boxed"])
        jobs.append(NewJob(type="poison", does=does, queue=queue, max_attempts=rng.choice([1, 1, 1, 2])))
    jobs += [NewJob(type="poison", does=rng.choice(DEADLY_POISON), queue="risky") for _ in range(killers)]
    rng.shuffle(jobs)
    return jobs


def survives(fleet: Fleet, jobs: list[NewJob], within: float) -> None:
    """Puts them in, and holds the outcome against the promises."""
    for start in range(0, len(jobs), AT_ONCE):
        fleet.enqueue(*jobs[start : start + AT_ONCE])
    fleet.until_empty(within)
    judgement = Judgement(fleet)
    print(judgement.printed())
    assert judgement.broken == []
    stories = judgement.stories.values()
    good = [story for story in stories if story.asked.type == "work"]
    assert [story for story in good if story.buried is not None] == []
    assert sum(story.buried is not None for story in stories) == len(jobs) - len(good)


def test_all_good_jobs_are_done_among_poison(new_fleet: NewFleet, rng: random.Random) -> None:
    survives(new_fleet("auto", 50), mixed(good=500, poison=30, killers=2, rng=rng), within=240)


@pytest.mark.long
def test_ten_thousand_good_jobs_are_done_among_a_thousand_poisonous_ones(
    new_fleet: NewFleet, rng: random.Random
) -> None:
    survives(new_fleet("auto", 50, 5), mixed(good=10_000, poison=1000, killers=10, rng=rng), within=1800)
