"""What Grafana is told about a panel: one function for each kind, each of which makes a `Panel`.

A panel has a title, a sentence that says what it answers, a unit, and queries. Colour is never the only sign:
states have words, what is bad is drawn dashed, and legends and tables have numbers. May import: nothing of qd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
"""The data source that the reader has chosen."""

GOOD, FAIR, BAD, CALM = "green", "orange", "red", "text"
DASHES: Json = {"fill": "dash", "dash": [8, 6]}


@dataclass(frozen=True)
class Query:
    """A question to Prometheus.

    Attributes:
        name: what the legend calls each series, with {{label}} for a label's value.
        instant: asked once, at the end of the time range.
        exemplar: points of single jobs are asked for too.
    """

    expr: str
    name: str = ""
    instant: bool = False
    exemplar: bool = False


@dataclass(frozen=True)
class Panel:
    """A panel without its place.

    Attributes:
        rest: options, fieldConfig and the like, as Grafana's JSON has them.
    """

    kind: str
    title: str
    description: str
    queries: tuple[Query, ...]
    width: int
    height: int
    rest: Json = field(default_factory=dict)
    format: str = "time_series"

    def json(self, number: int, x: int, y: int) -> Json:
        """The panel as Grafana's JSON has it."""
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": SOURCE,
            "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
            "targets": [self._target(chr(ord("A") + place), query) for place, query in enumerate(self.queries)],
            **self.rest,
        }

    def _target(self, reference: str, query: Query) -> Json:
        return {
            "refId": reference,
            "datasource": SOURCE,
            "editorMode": "code",
            "expr": query.expr,
            "format": self.format,
            "instant": query.instant,
            "range": not query.instant,
            "exemplar": query.exemplar,
            "legendFormat": query.name or "__auto",
        }


def steps(*bounds: tuple[float, str], base: str = GOOD) -> Json:
    """Thresholds: the colour below all bounds, then (bound, colour) in order."""
    rest = [{"color": colour, "value": bound} for bound, colour in bounds]
    return {"mode": "absolute", "steps": [{"color": base, "value": None}, *rest]}


def words(meanings: Mapping[int, tuple[str, str]]) -> list[Json]:
    """Words for numbers: {1: ("answers", GOOD), 0: ("DOWN", BAD)}."""
    options = {
        str(value): {"text": text, "color": colour, "index": index}
        for index, (value, (text, colour)) in enumerate(meanings.items())
    }
    return [{"type": "value", "options": options}]


def override(matcher: str, options: str, **properties: Any) -> Json:
    """Something else for some series or columns; `__` in a name stands for a dot."""
    listed = [{"id": name.replace("__", "."), "value": value} for name, value in properties.items()]
    return {"matcher": {"id": matcher, "options": options}, "properties": listed}


def coloured(name: str, colour: str) -> Json:
    """A series that has its colour wherever it is shown."""
    return override("byName", name, color={"mode": "fixed", "fixedColor": colour})


def dashed(name: str, colour: str) -> Json:
    """A line that means trouble: told from the others without colour too."""
    return override("byName", name, color={"mode": "fixed", "fixedColor": colour}, custom__lineStyle=DASHES)


def stat(
    title: str,
    description: str,
    *queries: Query,
    unit: str = "short",
    decimals: int | None = None,
    thresholds: Json | None = None,
    meanings: Mapping[int, tuple[str, str]] | None = None,
    overrides: Sequence[Json] = (),
) -> Panel:
    """Numbers of this moment, large.

    They are asked once, at the end of the time range: over a range, Grafana would go on to show the last number
    of a series that has ended, and qd ends those that have grown old so that nobody takes them for the present.
    """
    defaults: Json = {"unit": unit, "color": {"mode": "thresholds"}, "thresholds": thresholds or steps(base=CALM)}
    if decimals is not None:
        defaults["decimals"] = decimals
    if meanings:
        defaults["mappings"] = words(meanings)
    options = {
        "reduceOptions": {"values": False, "calcs": ["lastNotNull"], "fields": ""},
        "orientation": "auto",
        "textMode": "value_and_name" if len(queries) > 1 else "value",
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "wideLayout": True,
        "showPercentChange": False,
        "percentChangeColorMode": "standard",
    }
    rest = {"fieldConfig": {"defaults": defaults, "overrides": list(overrides)}, "options": options}
    return Panel("stat", title, description, _once(queries), 4, 4, rest)


def _once(queries: Sequence[Query]) -> tuple[Query, ...]:
    return tuple(Query(query.expr, query.name, instant=True) for query in queries)


def lines(
    title: str,
    description: str,
    *queries: Query,
    unit: str = "short",
    width: int = 8,
    height: int = 8,
    stacked: bool = False,
    steps_between: bool = False,
    logarithmic: bool = False,
    top: float | None = None,
    limit: Json | None = None,
    overrides: Sequence[Json] = (),
) -> Panel:
    """Lines over time.

    Args:
        stacked: areas upon each other, for parts of a whole.
        steps_between: for whole numbers that jump.
        top: the axis reaches at least there.
        limit: thresholds, drawn as a dashed line.
    """
    custom: Json = {
        "drawStyle": "line",
        "lineWidth": 1,
        "lineInterpolation": "stepAfter" if steps_between else "linear",
        "lineStyle": {"fill": "solid"},
        "fillOpacity": 30 if stacked else 6,
        "gradientMode": "none",
        "showPoints": "never",
        "pointSize": 5,
        "spanNulls": False,
        "insertNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "scaleDistribution": {"type": "log", "log": 10} if logarithmic else {"type": "linear"},
        "thresholdsStyle": {"mode": "dashed" if limit else "off"},
    }
    if top is not None:
        custom["axisSoftMax"] = top
    defaults: Json = {
        "unit": unit,
        "color": {"mode": "palette-classic-by-name"},
        "custom": custom,
        "thresholds": limit or steps(),
    }
    if not logarithmic:
        defaults["min"] = 0
    options = {"legend": _legend(), "tooltip": {"mode": "multi", "sort": "desc"}}
    rest = {"fieldConfig": {"defaults": defaults, "overrides": list(overrides)}, "options": options}
    return Panel("timeseries", title, description, queries, width, height, rest)


def _legend() -> Json:
    return {
        "showLegend": True,
        "displayMode": "table",
        "placement": "bottom",
        "calcs": ["lastNotNull", "max"],
        "sortBy": "Max",
        "sortDesc": True,
    }


def heat(title: str, description: str, query: Query, *, width: int = 12, height: int = 9) -> Panel:
    """How many took how long: time across, buckets up, the darker the more."""
    options = {
        "calculate": False,
        "color": {
            "mode": "scheme",
            "scheme": "Oranges",
            "fill": "dark-orange",
            "scale": "exponential",
            "exponent": 0.5,
            "steps": 64,
            "reverse": False,
        },
        "filterValues": {"le": 1e-9},
        "rowsFrame": {"layout": "auto"},
        "showValue": "never",
        "cellGap": 1,
        "cellValues": {"unit": "ops"},
        "yAxis": {"axisPlacement": "left", "unit": "s", "reverse": False},
        "legend": {"show": True},
        "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": True},
        "exemplars": {"color": "rgba(31, 96, 196, 0.9)"},
    }
    custom = {"hideFrom": {"legend": False, "tooltip": False, "viz": False}, "scaleDistribution": {"type": "linear"}}
    rest = {"fieldConfig": {"defaults": {"unit": "ops", "custom": custom}, "overrides": []}, "options": options}
    return Panel("heatmap", title, description, (query,), width, height, rest, format="heatmap")


def timeline(
    title: str,
    description: str,
    query: Query,
    meanings: Mapping[int, tuple[str, str]],
    *,
    width: int = 12,
    height: int = 7,
) -> Panel:
    """States over time, one bar for each series, with a word in each stretch."""
    defaults = {
        "unit": "none",
        "color": {"mode": "thresholds"},
        "thresholds": steps(),
        "mappings": words(meanings),
        "custom": {"fillOpacity": 60, "lineWidth": 0},
    }
    options = {
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.8,
        "perPage": 20,
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    rest = {"fieldConfig": {"defaults": defaults, "overrides": []}, "options": options}
    return Panel("state-timeline", title, description, (query,), width, height, rest)


def table(
    title: str,
    description: str,
    *queries: Query,
    columns: Mapping[str, str],
    hidden: Sequence[str] = (),
    sort_by: str,
    height: int = 6,
    unit: str = "short",
    overrides: Sequence[Json] = (),
) -> Panel:
    """What holds now, one line for each thing: the queries' answers side by side.

    Args:
        columns: the columns in order, what they are called in the answer and what here.
        hidden: columns of the answer that aren't shown.
    """
    organize = {
        "excludeByName": dict.fromkeys(("Time", *hidden), True),
        "indexByName": {name: place for place, name in enumerate(columns)},
        "renameByName": dict(columns),
    }
    defaults: Json = {
        "unit": unit,
        "color": {"mode": "thresholds"},
        "thresholds": steps(base=CALM),
        "noValue": "–",
        "custom": {"align": "auto", "cellOptions": {"type": "color-text"}, "filterable": True, "inspect": False},
    }
    options = {
        "frameIndex": 0,
        "showHeader": True,
        "cellHeight": "sm",
        "sortBy": [{"displayName": sort_by, "desc": False}],
    }
    rest = {
        "fieldConfig": {"defaults": defaults, "overrides": list(overrides)},
        "options": options,
        "transformations": [{"id": "merge", "options": {}}, {"id": "organize", "options": organize}],
    }
    return Panel("table", title, description, _once(queries), 24, height, rest, format="table")


def totals(
    title: str, description: str, query: Query, *, width: int = 8, height: int = 8, overrides: Sequence[Json] = ()
) -> Panel:
    """Sums over the whole time range, one bar with its number for each series."""
    defaults: Json = {
        "unit": "short",
        "decimals": 0,
        "min": 0,
        "color": {"mode": "palette-classic-by-name"},
        "thresholds": steps(),
    }
    options = {
        "displayMode": "basic",
        "valueMode": "text",
        "namePlacement": "left",
        "orientation": "horizontal",
        "showUnfilled": True,
        "sizing": "auto",
        "minVizWidth": 8,
        "minVizHeight": 16,
        "maxVizHeight": 300,
        "legend": {"showLegend": False, "displayMode": "list", "placement": "bottom", "calcs": []},
        "reduceOptions": {"values": False, "calcs": ["lastNotNull"], "fields": ""},
    }
    rest = {"fieldConfig": {"defaults": defaults, "overrides": list(overrides)}, "options": options}
    return Panel("bargauge", title, description, _once([query]), width, height, rest)
