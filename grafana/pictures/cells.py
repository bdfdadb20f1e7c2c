"""Draws what isn't a line: large numbers, heatmaps, tables, bars. May import: look, lines, words."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from matplotlib.colors import PowerNorm

from grafana.panels import Json
from grafana.pictures.answers import Series, Source
from grafana.pictures.lines import time_axis
from grafana.pictures.look import COLOURS, EDGE, FAINT, INK, Box, Sheet
from grafana.pictures.words import judged, meaning, named, worded


def draw_stat(sheet: Sheet, panel: Json, box: Box, source: Source) -> None:
    """Large numbers, side by side."""
    defaults = panel["fieldConfig"]["defaults"]
    own = {one["matcher"]["options"]: one["properties"][0]["value"] for one in panel["fieldConfig"]["overrides"]}
    shown = [(target["legendFormat"], one) for target in panel["targets"] for one in source.ask(target)]
    for place, (name, series) in enumerate(shown or [("__auto", Series({}, np.array([np.nan])))]):
        middle = box.x + box.width * (place + 0.5) / max(1, len(shown))
        word = meaning(series.last, defaults.get("mappings", []))
        colour = word[1] if word else judged(series.last, own.get(name, defaults["thresholds"]))
        text = word[0] if word else worded(series.last, defaults["unit"]) if shown else "No data"
        sheet.text(middle, box.y + box.height / 2 - 4, text, size=20, colour=COLOURS[colour], ha="center", va="center")
        if len(shown) > 1:
            sheet.text(middle, box.y + box.height - 16, name, size=7.5, colour=FAINT, ha="center", va="center")


def draw_heat(sheet: Sheet, panel: Json, box: Box, source: Source) -> None:
    """Buckets over time, the darker the more."""
    bounds, counts = _buckets(source.ask(panel["targets"][0]))
    used = np.flatnonzero(np.nansum(counts, axis=1) > 0)
    first, last = (max(used[0] - 1, 0), min(used[-1] + 2, len(bounds))) if len(used) else (0, len(bounds))
    cells = np.where(counts[first:last] > 1e-9, counts[first:last], np.nan)
    axes = sheet.axes(box.inner(62, 4, 8, 46))
    ends: Any = [datetime.fromtimestamp(at) for at in [*source.times, source.times[-1] + source.step]]
    norm = PowerNorm(0.5, vmin=0, vmax=np.nanmax(cells) if len(used) else 1)
    drawn = axes.pcolormesh(ends, np.arange(last - first + 1), cells, cmap="Oranges", norm=norm, rasterized=True)
    words = [worded(bound, "s") if np.isfinite(bound) else "more" for bound in bounds[first:last]]
    axes.set_yticks(np.arange(1, last - first + 1), words)
    axes.grid(axis="y", color=EDGE, linewidth=0.4)
    time_axis(axes, source)
    scale = sheet.axes(box.inner(62, box.height - 22, box.width - 262, 14))
    bar = sheet.figure.colorbar(drawn, cax=scale, orientation="horizontal")
    bar.outline.set_visible(False)
    bar.set_ticks([])
    most = worded(norm.vmax or 0.0, "ops")
    sheet.text(box.x + 56, box.y + box.height - 18, "0", size=7, colour=FAINT, ha="right", va="center")
    sheet.text(box.x + 268, box.y + box.height - 18, most, size=7, colour=FAINT, va="center")


def _buckets(found: list[Series]) -> tuple[list[float], Any]:
    """Bounds in order, and how many fell between each and the one before."""
    ordered = sorted(found, key=lambda one: float(one.labels["le"]))
    upto = np.array([one.values for one in ordered])
    return [float(one.labels["le"]) for one in ordered], np.diff(upto, axis=0, prepend=0.0).clip(min=0)


def draw_table(sheet: Sheet, panel: Json, box: Box, source: Source) -> None:
    """What holds now, a line for each thing; columns that have nothing at all are left out, as Grafana does."""
    organize = panel["transformations"][1]["options"]
    lines = _merged(panel, source, set(organize["excludeByName"]))
    there = {column for line in lines for column in line}
    columns = {name: title for name, title in organize["renameByName"].items() if name in there}
    own = {one["matcher"]["options"]: {part["id"]: part["value"] for part in one["properties"]}
           for one in panel["fieldConfig"]["overrides"]}  # fmt: skip
    width = (box.width - 12) / len(columns)
    axes = sheet.axes(box)
    axes.set_axis_off()
    axes.set(xlim=(0, box.width), ylim=(box.height, 0))
    for place, (name, title) in enumerate(columns.items()):
        numbers = name.startswith("Value")
        at, side = (place + 1) * width - 20 if numbers else 6 + place * width, "right" if numbers else "left"
        axes.text(at, 10, title, fontsize=7.5, weight="bold", color=FAINT, va="center", ha=side)
        for row, line in enumerate(lines):
            text, colour = _cell(line.get(name), {**panel["fieldConfig"]["defaults"], **own.get(title, {})})
            axes.text(at, 34 + 23 * row, text, fontsize=8, color=COLOURS[colour], va="center", ha=side)
    for row in range(len(lines) + 1):
        axes.axhline(22 + 23 * row, color=EDGE, linewidth=0.7)


def _merged(panel: Json, source: Source, hidden: set[str]) -> list[dict[str, str | float]]:
    """The answers of all queries, put together where their labels are the same."""
    lines: dict[tuple[tuple[str, str], ...], dict[str, str | float]] = {}
    for target in panel["targets"]:
        column = "Value" if len(panel["targets"]) == 1 else f"Value #{target['refId']}"
        for one in source.ask(target):
            labels = {name: value for name, value in one.labels.items() if name not in hidden}
            lines.setdefault(tuple(sorted(labels.items())), dict(labels))[column] = one.last
    first = next(iter(panel["transformations"][1]["options"]["renameByName"]))
    return sorted(lines.values(), key=lambda line: str(line.get(first, "")))


def _cell(value: str | float | None, field: Json) -> tuple[str, str]:
    if value is None:
        return field["noValue"], "text"
    if isinstance(value, str):
        return value, "text"
    return meaning(value, field.get("mappings", [])) or (
        worded(value, field["unit"]),
        judged(value, field["thresholds"]),
    )


def draw_bars(sheet: Sheet, panel: Json, box: Box, source: Source) -> None:
    """A bar with its number for each series."""
    target, overrides = panel["targets"][0], panel["fieldConfig"]["overrides"]
    colours = {one["matcher"]["options"]: one["properties"][0]["value"]["fixedColor"] for one in overrides}
    shown = [(named(target["legendFormat"], one.labels), one.last) for one in source.ask(target)]
    axes = sheet.axes(box.inner(70, 4, 60, 8))
    most = max((value for _, value in shown), default=1.0) or 1.0
    for place, (name, value) in enumerate(shown):
        axes.barh(place, most, height=0.62, color="#eef0f1")
        axes.barh(place, value, height=0.62, color=COLOURS[colours[name]], alpha=0.75)
        axes.text(most * 1.02, place, worded(round(value), "short"), fontsize=8, color=INK, va="center")
    axes.set_yticks(range(len(shown)), [name for name, _ in shown], fontsize=7.5, color=INK)
    axes.set_xticks([])
    axes.set(xlim=(0, most), ylim=(len(shown) - 0.5, -0.5))
