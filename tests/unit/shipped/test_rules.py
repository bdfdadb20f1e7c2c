"""Prometheus' configuration and the rules: valid, complete, and about metrics that exist."""

from __future__ import annotations

import yaml

from tests.unit.shipped.tools import ROOT, assert_fits, run_tool

PROMETHEUS = ROOT / "config" / "prometheus"
ALERTS = {
    "QdStaleJobs", "QdOldestReadyJobTooOld", "QdDeadLetters", "QdQueueWithoutWorkers", "QdBacklogGrowing",
    "QdDatabaseDown", "QdQueueStatsOld", "QdDown", "QdJobStuck", "QdCrashLoop",
}  # fmt: skip


def test_prometheus_takes_the_configuration() -> None:
    assert run_tool("promtool", "check", "config", str(PROMETHEUS / "prometheus.yml")) == ""


def test_prometheus_takes_the_rules() -> None:
    assert run_tool("promtool", "check", "rules", str(PROMETHEUS / "qd.rules.yml")) == ""


def test_each_alert_fires_on_its_fault_and_not_on_a_healthy_hour() -> None:
    assert run_tool("promtool", "test", "rules", str(PROMETHEUS / "qd.rules.test.yml")) == ""


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
