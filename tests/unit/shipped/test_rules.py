"""Prometheus' configuration, the records and the alerts: valid, complete, and about metrics that exist."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import yaml

from tests.unit.shipped.tools import RECORD, ROOT, RULES, assert_fits, rules, run_tool

PROMETHEUS = RULES.parent
TESTS = PROMETHEUS / "qd.rules.test.yml"
ALERTS = {
    "QdStaleJobs", "QdOldestReadyJobTooOld", "QdDeadLetters", "QdQueueWithoutWorkers", "QdBacklogGrowing",
    "QdDatabaseDown", "QdNotReady", "QdQueueStatsOld", "QdDown", "QdJobStuck", "QdCrashLoop",
}  # fmt: skip


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def records() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "record" in rule]


def test_prometheus_takes_the_configuration() -> None:
    assert run_tool("promtool", "check", "config", str(PROMETHEUS / "prometheus.yml")) == ""


def test_prometheus_takes_the_rules() -> None:
    assert run_tool("promtool", "check", "rules", str(RULES)) == ""


def test_the_tests_beside_the_rules_pass() -> None:
    assert run_tool("promtool", "test", "rules", str(TESTS)) == ""


def test_the_alerts_are_those_that_are_promised_and_say_what_to_do() -> None:
    assert {rule["alert"] for rule in alerts()} == ALERTS
    for rule in alerts():
        assert_fits(rule["expr"])
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}, rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning")


def test_the_records_are_named_by_level_metric_and_operation_and_each_is_tried() -> None:
    tried = {record for test in cases() for entry in asked(test) for record in RECORD.findall(entry["expr"])}
    for rule in records():
        assert RECORD.fullmatch(rule["record"]), rule["record"]
        assert_fits(rule["expr"])
    assert {rule["record"] for rule in records()} == tried


def test_the_runbook_has_a_section_for_each_alert_and_its_url_leads_there() -> None:
    sections = [line.removeprefix("## ") for line in (ROOT / "docs/runbook.md").read_text("utf-8").splitlines()]
    for rule in alerts():
        page, anchor = rule["annotations"]["runbook_url"].split("#")
        assert (page, anchor) == ("docs/runbook.md", rule["alert"].lower())
        assert rule["alert"] in sections


def test_the_page_of_metrics_lists_every_record_and_every_alert_as_it_is() -> None:
    page = (ROOT / "docs/metrics.md").read_text("utf-8")
    told = dict(re.findall(r"^\| `(Qd\w+)` \| (\w+ \| .* \| .*) \|$", page, re.MULTILINE))
    assert told.keys() == ALERTS
    for rule in alerts():
        severity, _, wait = told[rule["alert"]].split(" | ")
        assert severity == rule["labels"]["severity"]
        assert wait == (f"{rule['for'].removesuffix('m')} min" if "for" in rule else "at once")
    assert set(re.findall(r"^\| `([a-z_]+:\S+)` \|", page, re.MULTILINE)) == {rule["record"] for rule in records()}


@cache
def cases() -> list[dict[str, Any]]:
    """The tests beside the rules."""
    return list(yaml.safe_load(TESTS.read_text("utf-8"))["tests"])


def asked(test: dict[str, Any]) -> list[dict[str, Any]]:
    return list(test.get("promql_expr_test", []))


def fired(test: dict[str, Any], name: str) -> list[float]:
    """When a test expects that an alert fires."""
    wanted = f'alertname="{name}"'
    found = [entry for entry in asked(test) if wanted in entry["expr"] and entry["exp_samples"]]
    found += [
        entry for entry in test.get("alert_rule_test", []) if entry["alertname"] == name and "exp_alerts" in entry
    ]
    return [seconds(entry["eval_time"]) for entry in found]


def quiet(test: dict[str, Any], name: str) -> list[float]:
    """When a test expects that it doesn't."""
    entries = test.get("alert_rule_test", [])
    return [seconds(one["eval_time"]) for one in entries if one["alertname"] == name and "exp_alerts" not in one]


def seconds(text: str) -> float:
    """Of 1m45s, say."""
    minutes, _, rest = text.rpartition("m")
    return 60 * int(minutes or 0) + int(rest.removesuffix("s") or 0)


def test_each_alert_is_tried_firing_not_firing_and_resolving() -> None:
    for name in ALERTS:
        own = [test for test in cases() if test["name"].startswith(f"{name}: ")]
        resolved = [test for test in own if any(at > min(fired(test, name), default=at) for at in quiet(test, name))]
        missed = [test for test in own if quiet(test, name) and not fired(test, name)]
        assert resolved, f"{name} fires and resolves in no test"
        assert missed, f"no test has {name} not firing on what comes near to it"
        assert any(quiet(test, name) for test in cases() if "fires nothing" in test["name"])


def test_an_alert_at_once_is_not_told_before_it_is_tried() -> None:
    """Each test that has an alert fire looks before it, too, or the alert might have fired all the time."""
    for name in ALERTS - {"QdDown"}:  # which fires before there is anything
        firing = [test for test in cases() if fired(test, name) and quiet(test, name)]
        assert any(min(quiet(test, name)) < min(fired(test, name)) for test in firing), name


def test_the_scrape_job_is_named_qd_as_the_rules_expect() -> None:
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text("utf-8"))
    assert [job["job_name"] for job in config["scrape_configs"]] == ["qd"]
