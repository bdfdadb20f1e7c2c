"""A row of the dashboard as a picture. May import: grafana.board, the drawing modules."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from PIL import Image

from grafana.board import dashboard
from grafana.panels import Json
from grafana.pictures.answers import Source
from grafana.pictures.cells import draw_bars, draw_heat, draw_stat, draw_table
from grafana.pictures.lines import Mark, draw_lines, draw_states
from grafana.pictures.look import COLUMN, FAINT, LINE, Sheet

FOOT = 22
WITHOUT_TIME = {
    "stat": draw_stat,
    "table": draw_table,
    "bargauge": draw_bars,
    "heatmap": draw_heat,
    "state-timeline": draw_states,
}
ABOUT = "Data: a Prometheus that scraped qd. Drawing: matplotlib, by the dashboard's own layout, queries and bounds."
LETTERS = {"Starts": "S", "Versions": "V", "Refused reloads": "R", "Alerts": "A"}
MARKED = "Marks: S a daemon started, V another version, R a reload was refused, A an alert fires."


def draw_rows(source: Source, into: Path) -> list[Path]:
    """Writes a picture for each row; which."""
    board, colours = dashboard(), dict[str, str]()
    marks = _marks(board, source)
    rows = [(row, list(panels)) for row, panels in _by_row(board["panels"])]
    return [_write(_row(panels, source, marks, colours), into / f"dashboard-{_slug(row)}.png") for row, panels in rows]


def _by_row(placed: list[Json]) -> list[tuple[str, list[Json]]]:
    """Each row's title with its panels; a row's numbers share their hundred."""
    grouped = {number: list(panels) for number, panels in groupby(placed, key=lambda panel: int(panel["id"]) // 100)}
    return [(panels[0]["title"], panels[1:]) for panels in grouped.values()]


def _slug(title: str) -> str:
    return title.split()[0].lower()


def _marks(board: Json, source: Source) -> list[Mark]:
    """What annotations mark within the range: once where it begins."""
    found: list[Mark] = []
    for one in board["annotations"]["list"]:
        for series in source.over_time(one["expr"]) if "expr" in one else ():
            marked = np.flatnonzero(np.nan_to_num(series.values) > 0)
            begun = marked[np.diff(marked, prepend=-2) > 1]
            times = series.values[marked] / 1000 if one.get("useValueForTime") else source.times[begun]
            found += [(float(at), LETTERS[one["name"]], one["iconColor"]) for at in np.unique(times)]
    begun = source.times[0] + 0.03 * (source.times[-1] - source.times[0])
    return sorted(mark for mark in found if begun < mark[0] < source.times[-1])


def _row(panels: list[Json], source: Source, marks: Sequence[Mark], colours: dict[str, str]) -> Sheet:
    top = min(panel["gridPos"]["y"] for panel in panels)
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    sheet = Sheet(24 * COLUMN, (bottom - top) * LINE + FOOT, colours)
    for panel in panels:
        box = sheet.card(panel, top)
        if panel["type"] == "timeseries":
            draw_lines(sheet, panel, box, source, marks)
        else:
            WITHOUT_TIME[panel["type"]](sheet, panel, box, source)
    lines = any(panel["type"] == "timeseries" for panel in panels)
    sheet.text(8, sheet.height - FOOT + 6, f"{ABOUT} {MARKED if lines else ''}", size=6.5, colour=FAINT)
    return sheet


def _write(sheet: Sheet, file: Path) -> Path:
    """As a PNG of few colours, which is small."""
    whole = io.BytesIO()
    sheet.figure.savefig(whole, format="png")
    Image.open(whole).convert("RGB").quantize(256, kmeans=3, dither=Image.Dither.NONE).save(file, optimize=True)
    return file
