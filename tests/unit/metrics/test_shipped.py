"""Alert rules, dashboard and units: valid, complete, and about metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml

from qd.metrics.catalogue import CATALOGUE, Spec
from tests.unit.metrics.pages import Page, metrics

ROOT = Path(__file__).parents[3]
PROMETHEUS = ROOT / "config" / "prometheus"
ALERTS = {
    "QdStaleJobs", "QdOldestReadyJobTooOld", "QdDeadLetters", "QdQueueWithoutWorkers", "QdBacklogGrowing",
    "QdDatabaseDown", "QdQueueStatsOld", "QdDown", "QdJobStuck", "QdCrashLoop",
}  # fmt: skip
VARIABLES = {"$__rate_interval": "5m", "$__interval": "1m", "$job": "qd", "$instance": ".*", "$queue": ".*"}


def run(program: str, *arguments: str) -> str:
    """Runs a tool of the distribution; what it said, None of it if all is well."""
    found = which(program)
    if found is None:
        pytest.skip(f"{program} isn't installed")
    done = subprocess.run([found, *arguments], capture_output=True, text=True, timeout=120)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@cache
def series_names() -> set[str]:
    """The names that a query may use."""
    suffixes = {"histogram": ("_bucket", "_sum", "_count")}
    own = {spec.name + suffix for spec in CATALOGUE for suffix in suffixes.get(spec.kind, ("",))}
    return own | {name for name, _ in Page(metrics()).series if name.startswith("process_")}


def specs(expr: str) -> Iterator[Spec]:
    """The metrics of qd that a query is about."""
    for name in re.findall(r"qd_\w+", expr):
        yield from (spec for spec in CATALOGUE if re.fullmatch(spec.name + "(_bucket|_sum|_count)?", name))


def assert_fits(expr: str) -> None:
    """All metrics exist, and are added up only where each daemon has its own."""
    used = set(re.findall(r"\b(?:qd|process)_[a-z_]+\b", expr))
    assert used <= series_names(), expr
    for part in re.findall(r"(?<!\w)sum(?: (?:by|without) \([^)]*\))? ?\((?!max)[^)]*", expr):
        assert not [spec.name for spec in specs(part) if spec.shared], f"the same from every daemon, needs max: {expr}"


def dashboard() -> dict[str, Any]:
    return dict(json.loads((ROOT / "grafana" / "qd-dashboard.json").read_text("utf-8")))


def dashboard_queries() -> list[str]:
    """Every query of the dashboard, its variables filled in."""
    board = dashboard()
    found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    found += [note["expr"] for note in board["annotations"]["list"] if "expr" in note]
    for name, value in VARIABLES.items():
        found = [query.replace(name, value) for query in found]
    return found


def test_prometheus_takes_the_configuration() -> None:
    assert run("promtool", "check", "config", str(PROMETHEUS / "prometheus.yml")) == ""


def test_prometheus_takes_the_rules() -> None:
    assert run("promtool", "check", "rules", str(PROMETHEUS / "qd.rules.yml")) == ""


def test_each_alert_fires_on_its_fault_and_not_on_a_healthy_hour() -> None:
    assert run("promtool", "test", "rules", str(PROMETHEUS / "qd.rules.test.yml")) == ""


def test_the_alerts_are_those_that_are_promised_and_each_is_tried() -> None:
    rules = yaml.safe_load((PROMETHEUS / "qd.rules.yml").read_text("utf-8"))
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert {rule["alert"] for rule in alerts} == ALERTS
    tried = (PROMETHEUS / "qd.rules.test.yml").read_text("utf-8")
    for rule in alerts:
        assert_fits(rule["expr"])
        assert {"summary", "description"} <= set(rule["annotations"])
        assert tried.count(rule["alert"]) >= 2, f"{rule['alert']} is tried firing and not firing"


def test_the_scrape_job_is_named_qd_as_the_rules_expect() -> None:
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text("utf-8"))
    assert [job["job_name"] for job in config["scrape_configs"]] == ["qd"]


def test_the_dashboard_asks_only_for_metrics_that_exist() -> None:
    assert len(dashboard_queries()) > 30
    for query in dashboard_queries():
        assert_fits(query)


def test_the_dashboard_shows_every_metric_of_the_catalogue() -> None:
    shown = {spec.name for query in dashboard_queries() for spec in specs(query)}
    assert {spec.name for spec in CATALOGUE} == shown


def test_the_queries_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    rules = [{"record": f"dashboard:query:{number}", "expr": query} for number, query in enumerate(dashboard_queries())]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert run("promtool", "check", "rules", "--lint=none", str(tmp_path / "rules.yml")) == ""


def test_every_panel_of_the_dashboard_has_the_chosen_data_source_and_a_description() -> None:
    board = dashboard()
    names = {variable["name"]: variable["type"] for variable in board["templating"]["list"]}
    assert names["datasource"] == "datasource"
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    for panel in panels:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["description"]
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


UNITS = ("qd.service", "qd@.service")


def unit(name: str) -> dict[str, str]:
    """The settings of a unit, its last word for each."""
    lines = (ROOT / "systemd" / name).read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_systemd_finds_nothing_to_say_about_the_units(tmp_path: Path) -> None:
    for name in UNITS:
        text = (ROOT / "systemd" / name).read_text("utf-8")
        (tmp_path / name.replace("@.", "@mails.")).write_text(text.replace("/opt/qd/bin/qd", "/bin/true"))
    found = which("systemd-analyze")
    if found is None:
        pytest.skip("systemd-analyze isn't installed")
    verify = [found, "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60)
    about_ours = [line for line in done.stderr.splitlines() if "qd" in line]
    assert (about_ours, done.returncode) == ([], 0)


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_gives_the_daemon_time_to_stop_and_restarts_it_but_for_78(name: str) -> None:
    settings = unit(name)
    assert (settings["Type"], settings["KillMode"], settings["Restart"]) == ("notify", "mixed", "always")
    assert settings["RestartPreventExitStatus"] == "78"
    assert settings["StartLimitIntervalSec"] == "0"
    assert int(settings["TimeoutStopSec"].removesuffix("s")) >= 30 + 15  # shutdown.grace by default
    assert "WatchdogSec" in settings
    assert settings["RuntimeDirectory"] == "qd"
    assert "ProcSubset" not in settings, "it would remove the process_* metrics"


def test_both_units_differ_in_their_configuration_and_description_only() -> None:
    one, other = unit("qd.service"), unit("qd@.service")
    assert {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)} == {"Description", "ExecStart"}
    assert "/etc/qd/%i.yaml" in other["ExecStart"]


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_calls_the_program_as_the_program_wants_it(name: str) -> None:
    program, *arguments = unit(name)["ExecStart"].split()
    assert program == "/opt/qd/bin/qd"
    called = [sys.executable, "-m", "qd", *arguments, "--help"]
    done = subprocess.run(called, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Run the daemon" in done.stdout
