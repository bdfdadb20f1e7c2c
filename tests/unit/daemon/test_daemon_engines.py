"""Several engines side by side are one to the rest of the daemon."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qd.clock import monotonic
from qd.config.model import Config, QueueConfig
from qd.daemon.engines import Engines
from qd.events import ReloadApplied, ReloadRefused
from qd.metrics.catalogue import OTHER
from qd.metrics.depths import DepthSnapshot, by_queue, depth_families
from qd.store.protocol import QueueDepth
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


def counted(config: Config, **ready: int) -> DepthSnapshot:
    """What a sampler of this configuration has counted."""
    rows = by_queue([QueueDepth(queue, ready=jobs) for queue, jobs in ready.items()], (*config.queues, OTHER))
    return DepthSnapshot(tuple(rows.values()), interval=60.0, stamp=1.0)


def shown(engines: Engines, config: Config) -> dict[str, float]:
    """The ready jobs by queue, as the page shows them."""
    families = depth_families(engines.depths(), (*config.queues, OTHER))
    samples = [sample for family in families for sample in family.samples if sample.name == "qd_queue_jobs"]
    return {sample.labels["queue"]: sample.value for sample in samples if sample.labels["state"] == "ready"}


def serving(*queues: str) -> Config:
    return Config(queues=dict.fromkeys(queues, QueueConfig()))


def test_until_the_new_configuration_has_counted_the_last_count_is_shown(engines: Engines, made: Made) -> None:
    config = serving("default", "mails")
    engines.start(setup_of(config))
    made[0].counted = counted(config, default=2, mails=3, mial=4)
    for _ in range(2):
        engines.start(setup_of(config))
        assert shown(engines, config) == {"default": 2, "mails": 3, OTHER: 4} and engines.depths().stamp == 1.0
    made[2].counted = replace(counted(config, default=7), stamp=2.0)
    assert shown(engines, config) == {"default": 7, "mails": 0, OTHER: 0} and engines.depths().stamp == 2.0


def test_of_queues_that_are_new_nothing_is_shown_before_they_are_counted(engines: Engines, made: Made) -> None:
    """Nor of all others, among whom they were counted; a queue that is gone is among these."""
    old, less, other = serving("default", "mails"), serving("default"), serving("default", "reports")
    engines.start(setup_of(old))
    made[0].counted = counted(old, default=2, mails=3, reports=4)
    assert shown(engines, other) == {"default": 2}  # the moment before the new engine is there
    engines.start(setup_of(less))
    assert shown(engines, less) == {"default": 2, OTHER: 7}
    engines.start(setup_of(other))
    assert shown(engines, other) == {"default": 2}
    made[2].counted = counted(other, default=2, mails=3, reports=4)
    assert shown(engines, other) == {"default": 2, "reports": 4, OTHER: 3}


def test_a_count_that_has_grown_old_is_not_shown_after_a_reload_either(engines: Engines, made: Made) -> None:
    config = serving("default")
    engines.start(setup_of(config))
    made[0].counted = replace(counted(config, default=2), taken=monotonic() - 301)
    engines.start(setup_of(config))
    assert shown(engines, config) == {} and engines.depths().stamp == 1.0


def test_what_was_counted_in_another_database_is_not_shown(engines: Engines, made: Made) -> None:
    config = serving("default")
    engines.start(setup_of(config))
    made[0].counted = counted(config, default=2)
    moved = config.model_copy(update={"database": config.database.model_copy(update={"name": "another"})})
    engines.start(setup_of(moved))
    assert shown(engines, config) == {} and engines.depths().stamp == 0.0
