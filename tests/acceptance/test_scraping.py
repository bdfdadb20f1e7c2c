"""What tests rely on a Prometheus of their own for: it scrapes a daemon, answers, alerts, and ends with the test."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.alertmanager import Alertmanager, Webhook
from tests.support.daemon import Qd
from tests.support.prometheus import Prometheus
from tests.support.server import ROOT
from tests.support.waiting import wait_for

RULES = """
groups: [{name: probe, rules: [
  {record: "queue:qd_jobs_claimed:sum", expr: "sum without (instance) (qd_jobs_claimed_total)"},
  {alert: Claimed, expr: "queue:qd_jobs_claimed:sum > 0", labels: {severity: warning}},
]}]
"""

pytestmark = pytest.mark.server


def test_a_daemon_that_is_scraped_shows_its_jobs_and_an_alert_reaches_a_person(
    qd: Qd,
    folder: Path,
    prometheus: Callable[..., Prometheus],
    alertmanager: Callable[[Mapping[str, Any]], Alertmanager],
    webhook: Webhook,
) -> None:
    (folder / "probe.yml").write_text(RULES)
    route = {"receiver": "people", "group_wait": "0s"}
    people = {"name": "people", "webhook_configs": [{"url": webhook.url}]}
    manager = alertmanager({"route": route, "receivers": [people]})
    daemon = qd.start()
    target = f"127.0.0.1:{qd.port}"
    began = time.time()
    server = prometheus({target: {"database": "shop"}}, rules=[folder / "probe.yml"], alertmanager=manager.address)
    server.wait_scraped()
    qd.enqueue("nap", 3, seconds=0)
    (told,) = wait_for(lambda: webhook.told("Claimed"), 30, "the webhook to be told")
    assert (told.receiver, told.labels["queue"], told.labels["database"]) == ("people", "default", "shop")
    assert server.firing("Claimed", queue="default") and not server.faults()
    wait_for(lambda: server.value('qd_jobs_claimed_total{queue="default"}') == 3, 30, "the count of three jobs")
    claimed = 'qd_jobs_claimed_total{queue="default"}'
    (line,) = wait_for(
        lambda: [one for one in server.range(claimed, began) if one.points[-1][1] == 3],
        30,
        "three jobs at a whole step",
    )
    assert line.labels["instance"] == target
    assert {"__name__": "up", "database": "shop", "instance": target, "job": "qd"} in server.series()
    assert daemon.stop() == 0
    wait_for(lambda: server.up() == {target: False}, 30, "the target to be down")


TEST = """
import sys, time
from pathlib import Path
from tests.support.prometheus import Prometheus
server = Prometheus(Path(sys.argv[1]), [])
server.start()
print(server.port, flush=True)
time.sleep(600)
"""


def test_it_ends_with_the_test_also_where_that_is_killed(folder: Path, prometheus: Callable[..., Prometheus]) -> None:
    server = prometheus([])  # says so where there is none
    server.stop()
    own = subprocess.Popen([sys.executable, "-c", TEST, str(server.folder / "own")], cwd=ROOT, stdout=subprocess.PIPE)
    assert own.stdout is not None and own.stdout.readline().strip().isdigit()
    own.kill()
    own.wait(10)
    own.stdout.close()
    mark = str(server.folder / "own").encode()
    wait_for(lambda: not any(mark in line for line in commands()), 20, "it to be gone")


def commands() -> list[bytes]:
    """The command lines of all processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes())
        except OSError:
            continue
    return found
