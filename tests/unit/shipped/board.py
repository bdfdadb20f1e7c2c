"""The shipped dashboard as tests look at it: its panels, its queries, its variables filled in."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.unit.shipped.tools import ROOT

FILE = ROOT / "grafana" / "qd-dashboard.json"

FILLED = {
    "$__rate_interval": "5m",
    "$__interval": "1m",
    "$__range": "1h",
    "$job": "qd",
    "$instance": ".+",
    "$database": ".*",
    "$queue": ".+",
}
"""Variables as Grafana would fill them in where all is chosen."""


@cache
def board() -> dict[str, Any]:
    """The whole; nobody may change it."""
    return dict(json.loads(FILE.read_text("utf-8")))


def rows() -> list[dict[str, Any]]:
    return [panel for panel in board()["panels"] if panel["type"] == "row"]


def panels() -> list[dict[str, Any]]:
    """Those that show something."""
    return [panel for panel in board()["panels"] if panel["type"] != "row"]


def targets() -> list[dict[str, Any]]:
    """The queries of all panels."""
    return [target for panel in panels() for target in panel["targets"]]


def variables() -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in board()["templating"]["list"]}


def annotations() -> dict[str, dict[str, Any]]:
    """Those that ask Prometheus."""
    return {one["name"]: one for one in board()["annotations"]["list"] if "expr" in one}


def filled(expr: str, **others: str) -> str:
    """A query as Grafana would send it."""
    for name, value in {**FILLED, **{f"${name}": value for name, value in others.items()}}.items():
        expr = expr.replace(name, value)
    return expr


def expressions() -> list[str]:
    """Every query of panels and annotations, its variables filled in."""
    found = [target["expr"] for target in targets()] + [one["expr"] for one in annotations().values()]
    return [filled(expr) for expr in found]
