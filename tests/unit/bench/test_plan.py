"""What a bench is to do, and the configuration of its daemons."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from qd.bench.inside import Given, order
from qd.bench.plan import QUEUES, TYPE, Plan, daemon_config
from qd.config.model import DAY, Config, DatabaseConfig, LogConfig, PollConfig

DATABASE = DatabaseConfig(host="db.example", password="not-to-be-seen", password_file=None, statement_timeout=60.0)


def test_each_bench_has_a_queue_of_its_own_that_no_configuration_may_serve() -> None:
    one, other = Plan(), Plan()
    assert one.queue != other.queue and one.queue.startswith(QUEUES)
    with pytest.raises(ValueError, match="qd's own"):
        Config.model_validate({"queues": {one.queue: {}}})


@pytest.mark.parametrize(("jobs", "singly"), [(10, 1), (1000, 100), (10_000, 1000), (1_000_000, 1000)])
def test_a_tenth_of_the_jobs_but_no_more_than_a_thousand_is_enqueued_one_by_one(jobs: int, singly: int) -> None:
    assert Plan(jobs=jobs).singly == singly


def test_the_rows_that_are_told_of_are_no_fewer_than_those_that_are_written() -> None:
    plan = Plan(jobs=500, rounds=2, pickups=3, threads=5, batch=1000)
    assert plan.rows >= 2 * 500 + 2 * 3 + 2 * 5 + 8 * 1000
    assert Plan(jobs=500, rounds=2, pickups=0).rows < 2 * 500 + 1100


def test_its_daemons_are_as_shipped_and_can_disturb_nobody() -> None:
    plan = Plan(threads=7, batch=50, executor="process")
    config = daemon_config(DATABASE, plan)
    assert config.served == (plan.queue,) and tuple(config.queues) == (plan.queue,)
    assert (config.log, config.poll, config.http.refresh) == (LogConfig(), PollConfig(), Config().http.refresh)
    assert config.workers[0].threads == 7 and config.workers[0].executor == "process" and config.batch == 50
    assert config.http.address == ("127.0.0.1", 0), "a port of its own"
    assert config.retention.failed == 3650 * DAY, "nobody's dead letters are purged by it"
    assert config.handlers.modules == ("qd.bench.noop",) and not config.handlers.commands
    assert config.queues[plan.queue].lease >= 3 * DATABASE.statement_timeout


def test_a_daemon_reads_from_its_first_line_what_the_bench_has_put_in() -> None:
    plan = Plan(jobs=77, batch=5)
    given = json.loads(order(DATABASE, 'geh"eim\n', plan, starts=True))
    database = DatabaseConfig.model_validate_json(json.dumps(given["database"]))
    assert database == DATABASE.model_copy(update={"password": 'geh"eim\n'})
    assert Plan(**given["plan"]) == plan and given["starts"] is True
    config = daemon_config(database, Plan(**given["plan"]))
    assert Given(config).read() is config


def test_a_password_file_is_read_by_the_bench_alone() -> None:
    filed = DATABASE.model_copy(update={"password": None, "password_file": "/secret"})
    given = json.loads(order(filed, "read", Plan(), starts=False))
    assert given["database"]["password"] == "read" and given["database"]["password_file"] is None


def test_the_plan_knows_its_type() -> None:
    assert Plan().job().type == TYPE == "qd.bench"
    assert "queue" in asdict(Plan())
