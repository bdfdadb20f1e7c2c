"""What the acceptance tests change in the shipped rules to see them in seconds: durations, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pace import DURATION, hurried, shipped
from tests.unit.shipped.tools import run_tool

FILES = ("qd.rules.yml", "alertmanager.yml")


@pytest.mark.parametrize("name", FILES)
def test_only_numbers_and_their_units_are_changed(name: str) -> None:
    def numbers_aside(text: str) -> str:
        return re.sub(r"\b\d[\d.]*(ms|s|m|h)?\b", "N", text)

    assert hurried(shipped(name)) != shipped(name)
    assert numbers_aside(hurried(shipped(name))) == numbers_aside(shipped(name))


def test_every_duration_is_a_thirtieth_and_every_bound_of_seconds_too() -> None:
    text = "for: 5m\n[15m] offset 15m\ngroup_wait: 30s\nage_seconds:max > 300 unless x_seconds\n  < 600 and y > 100"
    assert hurried(text) == (
        "for: 10000ms\n[30000ms] offset 30000ms\ngroup_wait: 1000ms\n"
        "age_seconds:max > 10 unless x_seconds\n  < 20 and y > 100"
    )
    rules = shipped("qd.rules.yml")
    code = "\n".join(line.partition(" #")[0] for line in rules.splitlines() if "description" not in line)
    durations = re.findall(r"(?:for: |\[|offset )\d+\w+", code)
    assert len(durations) == len(DURATION.findall(code)) > 15


def test_prometheus_takes_the_faster_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(hurried(shipped("qd.rules.yml")))
    assert run_tool("promtool", "check", "rules", str(tmp_path / "rules.yml")) == ""
