"""The dashboard: valid, complete, and about metrics that exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qd.metrics.catalogue import CATALOGUE
from tests.unit.shipped.tools import ROOT, assert_fits, run_tool, specs

VARIABLES = {"$__rate_interval": "5m", "$__interval": "1m", "$job": "qd", "$instance": ".*", "$queue": ".*"}


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
    assert run_tool("promtool", "check", "rules", "--lint=none", str(tmp_path / "rules.yml")) == ""


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
