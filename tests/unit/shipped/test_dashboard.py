"""The dashboard: written from its source, complete, about metrics that exist, and readable without colour."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana import build, promql
from grafana.rows import limits
from qd.metrics.catalogue import CATALOGUE
from tests.unit.shipped.board import FILE, annotations, expressions, panels, rows, variables
from tests.unit.shipped.tools import ROOT, assert_fits, run_tool, specs

TROUBLE = {"red", "dark-red", "orange", "dark-orange", "yellow"}


def test_the_file_is_what_its_source_gives() -> None:
    assert FILE.read_text("utf-8") == build.text(), "run: python -m grafana.build"


def test_it_asks_only_for_metrics_that_exist() -> None:
    assert len(expressions()) > 60
    for query in expressions():
        assert_fits(query)


def test_it_shows_every_metric_of_the_catalogue() -> None:
    shown = {spec.name for query in expressions() for spec in specs(query)}
    assert {spec.name for spec in CATALOGUE} == shown


def test_its_queries_are_valid(tmp_path: Path) -> None:
    rules = [{"record": f"dashboard:query:{number}", "expr": query} for number, query in enumerate(expressions())]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert run_tool("promtool", "check", "rules", "--lint=none", str(tmp_path / "rules.yml")) == ""


def test_its_rows_are_in_the_order_in_which_one_looks() -> None:
    order = ["Now", "Queues", "Throughput and outcomes", "Latency", "Workers", "Database", "Process"]
    assert [row["title"] for row in rows()] == order


def test_no_panel_lies_on_another_or_outside() -> None:
    placed = [panel["gridPos"] for panel in [*rows(), *panels()]]
    for one in placed:
        assert one["x"] >= 0 and one["x"] + one["w"] <= 24
    for one, other in combinations(placed, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)


def test_every_panel_has_a_number_and_a_title_of_its_own() -> None:
    numbers = [panel["id"] for panel in [*rows(), *panels()]]
    titles = [panel["title"] for panel in panels()]
    assert len(set(numbers)) == len(numbers) and len(set(titles)) == len(titles)


def test_it_works_imported_and_provisioned_for_its_data_source_is_a_variable_and_no_input() -> None:
    text = FILE.read_text("utf-8")
    assert "__inputs" not in text and "DS_" not in text
    assert next(iter(variables())) == "datasource" and variables()["datasource"]["query"] == "prometheus"
    assert set(variables()) == {"datasource", "job", "instance", "database", "queue"}


def test_there_is_a_heatmap_of_waits_and_of_run_times() -> None:
    heats = [panel for panel in panels() if panel["type"] == "heatmap"]
    assert [panel["title"] for panel in heats] == ["Wait", "Run time"]
    for panel in heats:
        (target,) = panel["targets"]
        assert target["format"] == "heatmap" and target["legendFormat"] == "{{le}}" and target["exemplar"]


def test_starts_versions_refused_reloads_and_alerts_are_marked() -> None:
    assert set(annotations()) == {"Starts", "Versions", "Refused reloads", "Alerts"}
    for one in annotations().values():
        # older Grafanas read the first, newer ones the second
        assert one["expr"] == one["target"]["expr"]
        assert one["enable"] and one["titleFormat"]
    assert annotations()["Starts"]["useValueForTime"]
    assert "== bool 0" in annotations()["Refused reloads"]["expr"], "Grafana marks no value of 0"


@pytest.mark.parametrize("alert, bound", [("QdOldestReadyJobTooOld", limits.READY_AGE), ("QdJobStuck", limits.RUNNING)])
def test_a_bound_that_an_alert_has_too_is_the_alerts(alert: str, bound: float) -> None:
    groups = yaml.safe_load((ROOT / "config/prometheus/qd.rules.yml").read_text("utf-8"))["groups"]
    (expr,) = [rule["expr"] for group in groups for rule in group["rules"] if rule.get("alert") == alert]
    assert f"> {bound:g}" in expr


def bounds(panel: dict[str, Any]) -> list[dict[str, Any]]:
    """Its thresholds above the base, those of overrides too."""
    fields = panel["fieldConfig"]
    found = [fields["defaults"]["thresholds"]] if "thresholds" in fields["defaults"] else []
    overrides = [one for override in fields["overrides"] for one in override["properties"]]
    found += [one["value"] for one in overrides if one["id"] == "thresholds"]
    return [step for thresholds in found for step in thresholds["steps"][1:]]


def test_no_colour_is_the_only_sign_of_trouble() -> None:
    for panel in panels():
        coloured = {step["color"] for step in bounds(panel)}
        said = panel["description"].lower()
        if panel["type"] == "stat":  # numbers and words; the description says where which colour begins
            assert all(colour in said for colour in coloured), panel["title"]
        elif panel["type"] == "timeseries" and coloured:  # a line to be above or below
            assert panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]["mode"] == "dashed"
            assert "dashed line" in said, panel["title"]


def test_lines_that_mean_trouble_are_dashed_and_every_series_has_its_numbers_in_the_legend() -> None:
    for panel in [one for one in panels() if one["type"] == "timeseries"]:
        assert panel["options"]["legend"]["displayMode"] == "table", panel["title"]
        assert panel["options"]["legend"]["calcs"] == ["lastNotNull", "max"]
        for override in panel["fieldConfig"]["overrides"]:
            given = {one["id"]: one["value"] for one in override["properties"]}
            if given.get("color", {}).get("fixedColor") in TROUBLE:
                assert given["custom.lineStyle"]["fill"] == "dash", (panel["title"], override["matcher"])


def test_states_are_shown_in_words() -> None:
    states = [panel for panel in panels() if panel["type"] == "state-timeline"]
    assert len(states) == 4
    for panel in states:
        (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
        assert set(mapping["options"]) == {"0", "1"}
        assert all(meaning["text"] for meaning in mapping["options"].values())


def test_numbers_of_this_moment_are_asked_for_this_moment() -> None:
    # over a range Grafana shows a series' last number, also where qd has ended it because it had grown old
    for panel in [one for one in panels() if one["type"] in ("stat", "table", "bargauge")]:
        assert all(target["instant"] and not target["range"] for target in panel["targets"]), panel["title"]


def test_what_every_daemon_shows_the_same_is_never_added_up() -> None:
    with pytest.raises(ValueError, match="same from every daemon"):
        promql.own("qd_queue_jobs", by="queue")
    with pytest.raises(ValueError, match="each daemon's own"):
        promql.shared("qd_workers", by="state")
    with pytest.raises(ValueError, match="catalogue"):
        promql.select("qd_no_such_metric")


def test_daemons_of_two_databases_are_kept_apart() -> None:
    for query in expressions():
        for clause in re.findall(r"max by \(([^)]*)\) \(qd_queue_", query):
            assert "database" in clause, query
