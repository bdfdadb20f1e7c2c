"""Alertmanager's example: valid, about alerts that exist, and each of them reaches whom its severity says."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.unit.shipped.tools import RULES, ran, rules, run_tool

FILE = RULES.with_name("alertmanager.yml")
RECEIVERS = {"critical": "pager", "warning": "chat"}


def config() -> dict[str, Any]:
    return dict(yaml.safe_load(FILE.read_text("utf-8")))


def receiver(**labels: str) -> str:
    """Whom amtool finds for an alert."""
    told = [f"{name}={value}" for name, value in labels.items()]
    done = ran("amtool", "config", "routes", "test", f"--config.file={FILE}", *told)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_alertmanager_takes_the_example() -> None:
    assert run_tool("amtool", "check-config", str(FILE)) == ""


def test_each_alert_reaches_whom_its_severity_says_and_another_program_s_the_rest() -> None:
    for rule in rules():
        if "alert" in rule:
            severity = rule["labels"]["severity"]
            assert receiver(alertname=rule["alert"], severity=severity, queue="mails") == RECEIVERS[severity]
    assert receiver(alertname="DiskFull", severity="critical") == "chat"


def test_what_keeps_another_back_are_alerts_that_exist_and_never_the_one_of_stale_jobs() -> None:
    names = {rule.get("alert") for rule in rules()}
    for rule in config()["inhibit_rules"]:
        sources, targets = (re.findall(r"\bQd\w+", str(rule[f"{side}_matchers"])) for side in ("source", "target"))
        assert sources and targets and {*sources, *targets} <= names
        assert "QdStaleJobs" not in targets and "job" in rule["equal"]


def test_the_alert_of_one_daemon_keeps_nothing_back_of_the_others() -> None:
    own = {rule["alert"] for rule in rules() if "$labels.instance" in str(rule.get("annotations"))}
    assert {"QdDown", "QdDatabaseDown", "QdNotReady", "QdCrashLoop"} <= own
    for rule in config()["inhibit_rules"]:
        sources = set(re.findall(r"\bQd\w+", str(rule["source_matchers"])))
        assert "instance" in rule["equal"] or not sources & own, f"one of several with {sources} silences all"


def test_prometheus_knows_where_alertmanager_listens() -> None:
    """Once its lines are taken in, which would only complain where there is none."""
    shipped = RULES.with_name("prometheus.yml").read_text("utf-8")
    assert "alerting" not in yaml.safe_load(shipped)
    taken_in = re.sub(r"^# alerting:\n(?:#  .*\n)+", lambda part: re.sub("(?m)^# ", "", part[0]), shipped, flags=re.M)
    (manager,) = yaml.safe_load(taken_in)["alerting"]["alertmanagers"]
    assert manager["static_configs"] == [{"targets": ["127.0.0.1:9093"]}], "Alertmanager's own default"
