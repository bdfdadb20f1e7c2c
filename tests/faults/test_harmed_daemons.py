"""Daemons killed, frozen, stopped, poisoned and cut off: the short form of `make chaos` for them."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.campaign import Campaign, Plan
from tests.faults.fleet import Fleet
from tests.faults.harm import AT_DAEMONS
from tests.faults.judgement import judged

NewFleet = Callable[..., Fleet]


def test_harmed_daemons_lose_no_job_and_settle_none_of_others(new_fleet: NewFleet, seed: int) -> None:
    fleet = new_fleet("auto", 50, "auto")
    kinds = [*AT_DAEMONS, "daemon_killed", "daemon_frozen", "cut_at_statements", "answer_to_commit_lost", "rows_locked"]
    assert judged(Campaign(fleet, Plan(seed, seconds=10, jobs=400), kinds)).broken == []
