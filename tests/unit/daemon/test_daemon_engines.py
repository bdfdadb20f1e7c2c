"""Several engines side by side are one to the rest of the daemon."""

from __future__ import annotations

import pytest

from qd.config.model import Config, QueueConfig
from qd.daemon.engines import Engines
from qd.events import ReloadApplied, ReloadRefused
from tests.unit.daemon.fakes import Heard, Made, setup_of


@pytest.fixture
def made() -> Made:
    return Made()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def engines(made: Made, heard: Heard) -> Engines:
    return Engines(heard.events, made)


def test_the_new_engine_is_started_before_the_old_one_is_retired(engines: Engines, made: Made) -> None:
    engines.start(setup_of(Config()))
    made.clear()
    order: list[str] = []
    old = engines.current()
    assert old is not None
    old.hand_over = lambda: order.append(f"old retired, {len(made)} new started")  # type: ignore[method-assign]
    engines.start(setup_of(Config()))
    assert order == ["old retired, 1 new started"] and made[0].did == ["start"]


def test_an_engine_that_does_not_start_leaves_the_old_one_at_work(engines: Engines, made: Made) -> None:
    engines.start(setup_of(Config()))
    made.fails = RuntimeError("can't start new thread")
    with pytest.raises(RuntimeError):
        engines.start(setup_of(Config()))
    assert engines.current() is made[0] and made[0].did == ["start"]
    assert made[1].did == ["retire"]


def test_a_retired_engine_is_kept_until_its_last_job_has_ended(engines: Engines, made: Made) -> None:
    engines.start(setup_of(Config()))
    made[0].jobs = 2
    engines.start(setup_of(Config()))
    engines.prune()
    assert engines.running() == 2 and engines.draining() == 1 and len(engines.pulses()) == 2
    made[0].jobs = 0
    engines.prune()
    assert engines.draining() == 0 and engines.all() == (engines.current(),)


def test_the_metrics_see_what_a_retired_engine_still_runs(engines: Engines, made: Made) -> None:
    engines.start(setup_of(Config()))
    made[0].jobs = 3
    engines.start(setup_of(Config(queues={"default": QueueConfig(), "new": QueueConfig()})))
    made[1].jobs = 1
    assert engines.workers() == {"default": (2, 4, 0)}
    assert engines.oldest_running() == {"default": 30.0}
    assert engines.queue_workers() == {"default": 2, "new": 2}


def test_before_the_start_everything_can_be_asked(engines: Engines) -> None:
    assert engines.ready() == "starting" and not engines.database_up() and not engines.stuck()
    assert engines.workers() == {} and engines.queue_workers() == {} and engines.oldest_running() == {}
    assert engines.server().claim_path is None and engines.depths().stamp == 0.0
    assert engines.incompatible() is None and engines.pulses() == []


def test_the_gauge_of_the_last_reload_follows_the_events(engines: Engines, heard: Heard) -> None:
    assert engines.last_reload_successful()
    heard.events.publish(ReloadRefused(reason="broken"))
    assert not engines.last_reload_successful()
    heard.events.publish(ReloadApplied(changed="nothing"))
    assert engines.last_reload_successful()
