"""Every query of the dashboard, asked of a real Prometheus that scraped two real daemons: first quiet, then busy."""

from __future__ import annotations

import math
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.shop import CONFIG
from tests.support.daemon import Daemon, Qd
from tests.support.missing import without
from tests.support.prometheus import Line, Prometheus
from tests.support.server import ROOT, Server, ServerMissing
from tests.support.waiting import wait_for
from tests.unit.shipped.board import annotations, filled, panels, rows

FIRES = {"groups": [{"name": "test", "rules": [{"alert": "QdTest", "expr": 'qd_database_up{job="qd"}'}]}]}
"""An alert of qd's that fires at once; those that are shipped wait for a minute."""

GAPS = ("histogram_quantile", "_sum{", "NaN")
"""Queries that have no number while nothing runs: a mean of nothing isn't 0."""

DELAYED = 7
"""Reports that are due tomorrow."""

THREADS = sum(worker["threads"] for worker in CONFIG["workers"])

PACE = {"__rate_interval": "8s", "__interval": "2s", "__range": "5m"}
"""What Grafana would fill in where a scrape comes each second."""

Answers = dict[tuple[str, str], list[Line]]
"""By the panel's title and the query's letter."""


@dataclass
class Shop:
    """Two daemons on one database, and what watches them."""

    qd: Qd
    twin: Qd
    prometheus: Prometheus
    daemons: list[Daemon]
    began: float = field(default_factory=time.time)
    quiet: Answers = field(default_factory=dict)

    def ask(self, expr: str, instant: bool = False) -> list[Line]:
        """A query's answer now, or since the beginning."""
        asked = filled(expr, **PACE)
        if instant:
            now = time.time()
            return [Line(one.labels, ((now, one.value),)) for one in self.prometheus.query(asked)]
        return self.prometheus.range(asked, self.began, step=2.0)

    def answers(self) -> Answers:
        """Those to all panels' queries."""
        return {
            (panel["title"], target["refId"]): self.ask(target["expr"], target["instant"])
            for panel in panels()
            for target in panel["targets"]
        }

    def now(self, title: str, instance: str = ".+") -> dict[str, float]:
        """What the first query of a panel gives now, by the label that tells its series apart."""
        found = self.prometheus.query(filled(query_of(title, "A"), **PACE, instance=instance))
        return {" ".join(one.labels.values()): one.value for one in found}


def query_of(title: str, letter: str) -> str:
    """The expression of a panel."""
    (panel,) = [panel for panel in panels() if panel["title"] == title]
    return str(next(target["expr"] for target in panel["targets"] if target["refId"] == letter))


def has_number(lines: list[Line]) -> bool:
    """Whether there is one that isn't a gap."""
    return any(math.isfinite(value) for line in lines for _, value in line.points)


@pytest.fixture(scope="module")
def shop(mariadb: Server) -> Iterator[Shop]:
    """Started, scraped, and still with nothing to do."""
    folder = Path(tempfile.mkdtemp(prefix="qd-t-"))  # short, for sockets' sake
    database = mariadb.new_database()
    qd = Qd(folder, mariadb, database)
    qd.write(**CONFIG)
    twin = qd.twin()
    (folder / "rules.yml").write_text(yaml.safe_dump(FIRES))
    try:
        targets = [f"127.0.0.1:{one.port}" for one in (qd, twin)]
        prometheus = Prometheus(folder / "prometheus", targets, rules=[folder / "rules.yml"])
    except ServerMissing as missing:
        without(missing)
    prometheus.start()
    shop = Shop(qd, twin, prometheus, [qd.start(), twin.start()])
    prometheus.wait_scraped()
    look_at_the_quiet(shop)
    yield shop
    prometheus.stop()
    qd.end()
    mariadb.drop_database(database)
    shutil.rmtree(folder, ignore_errors=True)


def look_at_the_quiet(shop: Shop) -> None:
    """Notes every answer while nothing was ever enqueued, once rates have enough points."""
    rate = query_of("Statements and commits", "A")
    wait_for(lambda: has_number(shop.ask(rate)), 30, "two scrapes of both")
    shop.quiet = shop.answers()


@pytest.fixture(scope="module")
def busy(shop: Shop) -> Shop:
    """After jobs of every outcome, a refused reload, and an owner's death."""
    qd = shop.qd
    qd.enqueue("send_mail", 40, "mails", seconds=0.05)
    qd.enqueue("send_mail", 3, "mails", ends="fail once")
    for ends in ("fail", "reject", "snooze"):
        qd.enqueue("call_webhook", 3, "webhooks", ends=ends)
    qd.enqueue("call_webhook", 1, "webhooks", seconds=20)  # its time-out is 3 s
    qd.enqueue("resize_image", 2, "images", ends="crash")
    tomorrow = "('reports', 'build_report', NOW(6) + INTERVAL 1 DAY)"
    qd.sql(f"INSERT INTO qd_jobs (queue, type, available_at) VALUES {', '.join([tomorrow] * DELAYED)}")
    refuse_a_reload(shop)
    kill_an_owner(shop)
    wait_for(lambda: qd.jobs("queue <> 'reports'") == 0, 60, "the jobs' end")
    return shop


def refuse_a_reload(shop: Shop) -> None:
    """The second daemon is told to read a configuration that is wrong; Prometheus has seen it when this ends."""
    good = shop.twin.file.read_text()
    shop.twin.file.write_text("workers: []\nno_such_key: 1\n")
    shop.daemons[1].send(signal.SIGHUP)
    wait_for(lambda: shop.daemons[1].lines("daemon.reload_refused"), 20, "the refusal")
    shop.twin.file.write_text(good)
    wait_for(lambda: shop.ask("qd_config_last_reload_successful == 0"), 20, "Prometheus to have seen it")


def kill_an_owner(shop: Shop) -> None:
    """A daemon dies over a report; the other takes the row back and does it again."""
    (job,) = shop.qd.enqueue("build_report", 1, "reports", seconds=6)
    owner = wait_for(lambda: shop.qd.one("SELECT reserved_by FROM qd_jobs WHERE id = %s", (job,)), 20, "its claim")
    pid = int(owner.split(":")[1])
    (dying,) = [daemon for daemon in shop.daemons if daemon.process.pid == pid]
    dying.process.kill()
    dying.process.wait()
    shop.daemons.append((shop.qd if dying.qd is shop.qd else shop.twin).start())
    wait_for(lambda: not shop.qd.jobs(f"id = {job}"), 60, "the report, done by another")


def test_on_a_quiet_healthy_system_every_panel_has_an_answer_and_0_where_0_is_meant(shop: Shop) -> None:
    assert len(shop.quiet) > 60
    for (title, letter), lines in shop.quiet.items():
        assert lines, f"{title} would say: No data"
        if not any(gap in query_of(title, letter) for gap in GAPS):
            assert has_number(lines), title


def test_every_panel_shows_numbers_once_jobs_have_run(busy: Shop) -> None:
    for (title, _), lines in busy.answers().items():
        assert has_number(lines), title


def test_every_outcome_that_there_was_is_shown(busy: Shop) -> None:
    lines = busy.answers()["Attempts by outcome", "A"]
    shown = {line.labels["outcome"] for line in lines if any(value > 0 for _, value in line.points)}
    assert {"succeeded", "failed", "timeout", "crashed", "rejected", "snoozed", "lost"} <= shown


def test_two_daemons_count_a_job_once(busy: Shop) -> None:
    dead = busy.qd.one("SELECT COUNT(*) FROM qd_failed_jobs")
    assert dead > 0
    states = {"ready": 0, "delayed": DELAYED, "reserved": 0, "stale": 0, "failed": dead}
    wait_for(lambda: busy.now("Jobs by state") == states, 20, "each job, once")
    assert busy.now("Dead letters") == {"": dead}


def test_what_each_daemon_has_of_its_own_is_added_up(busy: Shop) -> None:
    idle = {"idle": 2.0 * THREADS, "busy": 0.0, "backoff": 0.0}
    wait_for(lambda: busy.now("Threads by what they do") == idle, 20, "the threads of both")


def test_what_was_deployed_refused_and_alerted_is_marked(busy: Shop) -> None:
    marks = {name: busy.ask(one["expr"]) for name, one in annotations().items()}
    starts = {value / 1000 for line in marks["Starts"] for _, value in line.points}
    assert len(starts) == 3 and all(busy.began - 60 < start < time.time() for start in starts)
    (version,) = marks["Versions"]
    assert version.labels["version"] and version.labels["server"] and version.labels["claim_path"] != "unknown"
    assert len(version.points) == 1, "a version is new once"
    assert {value for line in marks["Refused reloads"] for _, value in line.points} == {0, 1}
    assert {line.labels["alertname"] for line in marks["Alerts"]} == {"QdTest"}


def test_points_of_the_latency_panels_name_jobs(busy: Shop) -> None:
    for title in ("Wait", "Run time"):
        found = busy.prometheus.exemplars(filled(query_of(title, "A"), **PACE))
        assert found and all(one["labels"]["job_id"].isdigit() for one in found), title


def test_the_variables_have_values_to_choose_from(busy: Shop) -> None:
    series = busy.prometheus.series()
    built = [one for one in series if one["__name__"] == "qd_build_info"]
    assert {one["job"] for one in built} == {"qd"} and len({one["instance"] for one in built}) == 2
    assert {one["queue"] for one in series if one["__name__"] == "qd_queue_jobs"} == {*CONFIG["queues"], "_other"}


def test_a_picture_of_each_row_is_drawn_from_what_prometheus_answers(busy: Shop, tmp_path: Path) -> None:
    if find_spec("matplotlib") is None:
        without("no matplotlib (pip install '.[dev]')")
    argv = [sys.executable, "-m", "grafana.pictures", "--prometheus", f"http://{busy.prometheus.address}"]
    subprocess.run([*argv, "--minutes", "1", "--scrape", "1", "--into", str(tmp_path)], cwd=ROOT, check=True)
    pictures = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(set(pictures.values())) == len(rows())
    assert all(content.startswith(b"\x89PNG") and len(content) < 100_000 for content in pictures.values())


def scraped_as(busy: Shop, *labels: dict[str, str]) -> None:
    """Has the two daemons scraped as if they were more, one for each set of labels."""
    file = busy.prometheus.folder / "prometheus.yml"
    config: dict[str, Any] = yaml.safe_load(file.read_text())
    ports = [busy.qd.port, busy.twin.port]
    config["scrape_configs"][0]["static_configs"] = [
        {"targets": [f"127.0.0.1:{ports[number % 2]}"], "labels": given} for number, given in enumerate(labels)
    ]
    file.write_text(yaml.safe_dump(config))
    busy.prometheus.reload()
    ours = f'up{{instance=~"{labels[0]["instance"][:-2]}.+"}}'
    wait_for(lambda: busy.prometheus.value(f"sum({ours})") == len(labels), 30, "all targets")


def test_twenty_daemons_are_shown_as_well_as_two(busy: Shop) -> None:
    scraped_as(busy, *({"instance": f"host{number:02}"} for number in range(20)))
    wait_for(lambda: busy.now("Jobs by state", "host.+").get("delayed") == DELAYED, 20, "each job, once")
    assert round(sum(busy.now("Threads by what they do", "host.+").values()), 6) == 20 * THREADS
    assert len(busy.prometheus.query(filled(query_of("Memory", "A"), instance="host.+"))) == 20


def test_daemons_of_two_databases_are_kept_apart_by_the_label_that_the_docs_name(busy: Shop) -> None:
    scraped_as(busy, *({"instance": f"place{number:02}", "database": "ab"[number % 2]} for number in range(4)))
    twice = 2 * DELAYED  # for one database is shown as two here
    wait_for(lambda: busy.now("Jobs by state", "place.+").get("delayed") == twice, 20, "the jobs of each database")
    reports = {
        name: value for name, value in busy.now("Threads that serve a queue", "place.+").items() if "reports" in name
    }
    assert reports == {"a reports": 4.0, "b reports": 4.0}
