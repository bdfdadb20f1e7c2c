"""The whole: variables, annotations, and the rows laid out on Grafana's grid of 24 columns.

The data source is a variable and nothing else, so that one file serves both an import in the browser and
provisioning from a folder; `__inputs`, which an export writes, is only understood by the import. May import: rows,
panels, promql.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from grafana.panels import SOURCE, Json, Panel
from grafana.promql import DAEMON, select
from grafana.rows import database, latency, now, outcomes, process, queues, workers

ROWS: tuple[ModuleType, ...] = (now, queues, outcomes, latency, workers, database, process)
COLUMNS = 24

LABEL_VALUES = 1
"""What Grafana's editor calls a variable that asks for a label's values."""

SCHEMA = 42
"""The version of the JSON's form; what newer Grafanas change in it, they do when they load it."""


def dashboard() -> Json:
    """The dashboard as Grafana's JSON has it."""
    return {
        "uid": "qd-overview",
        "title": "qd",
        "description": "Job queues in MySQL and MariaDB: what waits, what runs, how it ends, and what it costs.",
        "tags": ["qd"],
        "schemaVersion": SCHEMA,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": marks()},
        "templating": {"list": variables()},
        "panels": panels(),
    }


def panels() -> list[Json]:
    """Rows and panels; those of row n are numbered from 100 n, so that one more moves no other's number."""
    placed: list[Json] = []
    bottom = 0
    for place, row in enumerate(ROWS, start=1):
        line = {"h": 1, "w": COLUMNS, "x": 0, "y": bottom}
        placed.append(
            {"id": place * 100, "type": "row", "title": row.TITLE, "collapsed": False, "gridPos": line, "panels": []}
        )
        inside, bottom = _flow(row.PANELS, place * 100 + 1, bottom + 1)
        placed += inside
    return placed


def _flow(row: tuple[Panel, ...], number: int, top: int) -> tuple[list[Json], int]:
    """From left to right, and below where there is no room."""
    placed: list[Json] = []
    x, bottom = 0, top
    for panel in row:
        if x + panel.width > COLUMNS:
            x, top = 0, bottom
        placed.append(panel.json(number + len(placed), x, top))
        x, bottom = x + panel.width, max(bottom, top + panel.height)
    return placed, bottom


def variables() -> list[Json]:
    """Data source, job, daemon, database, queue: each asks for what is left by those before it."""
    chosen = 'job=~"$job"'
    return [
        {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
            "current": {"selected": False, "text": "default", "value": "default"},
            "hide": 0,
            "includeAll": False,
            "multi": False,
            "options": [],
            "refresh": 1,
            "regex": "",
            "skipUrlSync": False,
        },
        # "All" means the jobs in the list, not .+, for `up` and `process_*` are every program's.
        _variable("job", "Job", "label_values(qd_build_info, job)", current=("qd", "qd")),
        _variable("instance", "Instance", f"label_values(qd_build_info{{{chosen}}}, instance)", every=".+"),
        # `.*`: mostly no target has the label.
        _variable("database", "Database", f"label_values(qd_build_info{{{chosen}}}, database)", every=".*"),
        _variable("queue", "Queue", f"label_values(qd_queue_jobs{{{DAEMON}}}, queue)", every=".+"),
    ]


def _variable(
    name: str, label: str, query: str, every: str | None = None, current: tuple[str, str] = ("All", "$__all")
) -> Json:
    """A choice of one, several or all values of a label."""
    text, value = current
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"qryType": LABEL_VALUES, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "current": {"selected": True, "text": [text], "value": [value]},
        "hide": 0,
        "includeAll": True,
        **({} if every is None else {"allValue": every}),
        "multi": True,
        "options": [],
        "refresh": 2,
        "regex": "",
        "skipUrlSync": False,
        "sort": 1,
    }


def marks() -> list[Json]:
    """What is marked on every graph: what was deployed, what was refused, what was alerted."""
    build = select("qd_build_info", 'claim_path!="unknown"')
    kinds = f"count by (version, python, connector, claim_path, server) ({build})"
    before = f"count by (version, python, connector, claim_path, server) ({build} offset $__interval)"
    return [
        {
            "name": "Annotations & Alerts",
            "type": "dashboard",
            "builtIn": 1,
            "datasource": {"type": "grafana", "uid": "-- Grafana --"},
            "enable": True,
            "hide": True,
            "iconColor": "rgba(0, 211, 255, 1)",
        },
        # The value is the moment: a start is marked where it was, however wide the range, once.
        _annotation(
            "Starts",
            "purple",
            f"1000 * {select('process_start_time_seconds')}",
            "{{instance}} started",
            useValueForTime=True,
        ),
        _annotation(
            "Versions",
            "blue",
            f"{kinds} unless {before}",
            "First daemon with qd {{version}}",
            textFormat="Python {{python}}, connector {{connector}}, claims by {{claim_path}}, server {{server}}",
        ),
        # 1 and 0, for Grafana marks no value of 0.
        _annotation(
            "Refused reloads",
            "orange",
            f"{select('qd_config_last_reload_successful')} == bool 0",
            "{{instance}} refused its new configuration",
        ),
        _annotation(
            "Alerts",
            "red",
            'max by (alertname) (ALERTS{alertname=~"Qd.*", alertstate="firing", job=~"$job|"})',
            "{{alertname}}",
        ),
    ]


def _annotation(name: str, colour: str, expr: str, title: str, **rest: Any) -> Json:
    """A query whose values above 0 are marked. Older Grafanas read `expr` and `step`, newer ones `target`."""
    return {
        "name": name,
        "datasource": SOURCE,
        "enable": True,
        "hide": False,
        "iconColor": colour,
        "expr": expr,
        "step": "60s",
        "target": {
            "refId": "Anno",
            "datasource": SOURCE,
            "expr": expr,
            "interval": "60s",
            "range": True,
            "instant": False,
        },
        "titleFormat": title,
        **rest,
    }
