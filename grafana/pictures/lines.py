"""Draws what runs over time: lines and areas with their legend, states, and what is marked. May import: look, words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, DateFormatter
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator, MultipleLocator, NullLocator

from grafana.panels import Json
from grafana.pictures.answers import Floats, Series, Source
from grafana.pictures.look import COLOURS, EDGE, FAINT, INK, Box, Sheet
from grafana.pictures.words import meaning, named, worded

ENTRIES = 4
"""Series that a legend has room for; Grafana's scrolls."""

SPANS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
POWERS = (1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 60, 600, 3600, 36000, 86400)
BETWEEN = tuple(part * power for power in POWERS[:5] for part in (2, 5))
"""Seconds that an axis has marks at."""

Mark = tuple[float, str, str]
"""A moment, its letter and its colour."""


def draw_lines(sheet: Sheet, panel: Json, box: Box, source: Source, marks: Sequence[Mark]) -> None:
    """A time series panel."""
    shown = [
        (named(target["legendFormat"], one.labels), one) for target in panel["targets"] for one in source.ask(target)
    ]
    shown.sort(key=lambda pair: pair[0])
    defaults, styles = panel["fieldConfig"]["defaults"], _styles(panel, [name for name, _ in shown], sheet)
    legend = 13 * min(len(shown), ENTRIES + 1) + 16
    axes = sheet.axes(box.inner(50, 4, 8, 18 + legend))
    times = _times(source.times)
    if defaults["custom"]["stacking"]["mode"] == "normal":
        _stack(axes, times, shown, styles)
    else:
        _single(axes, times, shown, styles, defaults["custom"]["lineInterpolation"] == "stepAfter")
    _scale(axes, defaults, shown)
    _limit(axes, defaults)
    time_axis(axes, source)
    _mark(axes, marks)
    _legend(sheet, box.inner(0, box.height - legend, 0, 0), shown, styles, defaults["unit"])


def _styles(panel: Json, names: list[str], sheet: Sheet) -> dict[str, dict[str, Any]]:
    """Colour and dashes of each series, as the panel's overrides say."""
    given = {one["matcher"]["options"]: {part["id"]: part["value"] for part in one["properties"]}
             for one in panel["fieldConfig"]["overrides"]}  # fmt: skip
    styles: dict[str, dict[str, Any]] = {}
    for name in names:
        own, taken = given.get(name, {}), [style["color"] for style in styles.values()]
        colour = COLOURS[own["color"]["fixedColor"]] if "color" in own else sheet.colour(name, taken)
        dashed = own.get("custom.lineStyle", {}).get("fill") == "dash"
        styles[name] = {"color": colour, "linestyle": (0, (4, 2.5)) if dashed else "-"}
    return styles


def _single(axes: Axes, times: Any, shown: list[tuple[str, Series]], styles: dict[str, Any], jumps: bool) -> None:
    for name, series in reversed(shown):
        drawn = "steps-post" if jumps else "default"
        axes.plot(times, series.values, linewidth=1.2, drawstyle=drawn, solid_capstyle="butt", **styles[name])


def _stack(axes: Axes, times: Any, shown: list[tuple[str, Series]], styles: dict[str, Any]) -> None:
    below = np.zeros(len(times))
    for name, series in shown:
        above = below + np.nan_to_num(series.values)
        axes.fill_between(times, below, above, color=styles[name]["color"], alpha=0.3, linewidth=0)
        axes.plot(times, np.where(above > below, above, np.nan), linewidth=1.1, **styles[name])
        below = above


def _scale(axes: Axes, defaults: Json, shown: list[tuple[str, Series]]) -> None:
    custom, unit = defaults["custom"], defaults["unit"]
    if custom["scaleDistribution"]["type"] == "log":
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(FixedLocator(POWERS if high / low > 300 else sorted({*POWERS, *BETWEEN})))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        most = np.nanmax([one.most for _, one in shown] + [custom.get("axisSoftMax", 0)])
        axes.set_ylim(0, max(axes.get_ylim()[1], most * 1.05, 1e-3 if most else 1.0))
        axes.yaxis.set_major_locator(_ticks(unit, axes.get_ylim()[1]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: worded(value, unit)))
    axes.grid(axis="y", color=EDGE, linewidth=0.6)
    axes.set_axisbelow(True)


def _ticks(unit: str, high: float) -> Locator:
    """About five round numbers; of bytes, round in powers of two."""
    if unit == "bytes":
        return MultipleLocator(2.0 ** math.ceil(math.log2(high / 5)))
    if unit == "s" and high > 5:
        return MultipleLocator(next((span for span in SPANS if span >= high / 5), SPANS[-1]))
    return MaxNLocator(5, integer=unit == "short")


def _limit(axes: Axes, defaults: Json) -> None:
    """Thresholds as a dashed line, where they are in sight."""
    if defaults["custom"]["thresholdsStyle"]["mode"] == "off":
        return
    for step in defaults["thresholds"]["steps"][1:]:
        low, high = axes.get_ylim()
        axes.axhline(step["value"], color=COLOURS[step["color"]], linewidth=1, linestyle=(0, (6, 4)))
        axes.set_ylim(low, high)


def time_axis(axes: Axes, source: Source) -> None:
    """Hours and minutes below."""
    first, last = _times(source.times[[0, -1]])
    axes.set_xlim(first, last)
    axes.xaxis.set_major_locator(AutoDateLocator(minticks=3, maxticks=6))  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))  # type: ignore[no-untyped-call]


def _times(times: Floats) -> Any:
    return np.array([datetime.fromtimestamp(at) for at in times])


def _mark(axes: Axes, marks: Sequence[Mark]) -> None:
    """A thin line at each moment, with its letter above."""
    first, last = axes.get_xlim()
    for place, (at, letter, colour) in enumerate(marks):
        side = "left" if place and at - marks[place - 1][0] < 0.02 * 86400 * (last - first) else "center"
        moment: Any = datetime.fromtimestamp(at)
        axes.axvline(moment, color=COLOURS[colour], linewidth=0.8, linestyle=":", zorder=1)
        axes.annotate(
            letter, (moment, 1), xycoords=("data", "axes fraction"), fontsize=6, ha=side, va="bottom",
            color=COLOURS[colour], annotation_clip=True,
        )  # fmt: skip


def _legend(sheet: Sheet, box: Box, shown: list[tuple[str, Series]], styles: dict[str, Any], unit: str) -> None:
    """Names with their last and greatest number."""
    right, column = box.x + box.width - 6, 62
    sheet.text(right - column, box.y, "last", size=6.5, colour=FAINT, ha="right")
    sheet.text(right, box.y, "max", size=6.5, colour=FAINT, ha="right")
    greatest = sorted(shown, key=lambda pair: -np.nan_to_num(pair[1].most, nan=-1.0))
    for place, (name, series) in enumerate(greatest[:ENTRIES]):
        y = box.y + 12 + 13 * place
        line = sheet.axes(Box(box.x + 4, y + 1, 20, 9))
        line.set_axis_off()
        line.plot([0, 1], [0, 0], linewidth=1.6, **styles[name])
        sheet.text(box.x + 30, y, name or "all", size=7)
        sheet.text(right - column, y, worded(series.last, unit), size=7, ha="right")
        sheet.text(right, y, worded(series.most, unit), size=7, ha="right")
    if len(shown) > ENTRIES:
        more = f"… {len(shown) - ENTRIES} more, none of them greater"
        sheet.text(box.x + 30, box.y + 12 + 13 * ENTRIES, more, size=6.5, colour=FAINT)


def draw_states(sheet: Sheet, panel: Json, box: Box, source: Source) -> None:
    """A state timeline: stretches with a word in each."""
    target, mappings = panel["targets"][0], panel["fieldConfig"]["defaults"]["mappings"]
    shown = sorted((named(target["legendFormat"], one.labels), one) for one in source.ask(target))
    axes = sheet.axes(box.inner(90, 4, 8, 22))
    for row, (_, series) in enumerate(shown):
        for first, last, value in _stretches(series.values):
            word, colour = meaning(value, mappings) or (f"{value:g}", "text")
            begin, end = source.times[first], source.times[last] + source.step
            moment: Any = datetime.fromtimestamp(begin)
            width: Any = datetime.fromtimestamp(end) - moment
            hatch = None if colour == "green" else "////"
            paint: dict[str, Any] = {
                "facecolor": COLOURS[colour],
                "edgecolor": "white",
                "linewidth": 0,
                "alpha": 0.55,
                "hatch": hatch,
            }
            axes.barh(row, width, left=moment, height=0.72, **paint)
            if (end - begin) / (source.times[-1] - source.times[0]) > (5.2 * len(word) + 10) / (box.width - 98):
                axes.text(moment, row, f"  {word}", fontsize=6.5, va="center", color=INK, clip_on=True)
    axes.set_yticks(range(len(shown)), [name for name, _ in shown], fontsize=7, color=INK)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    time_axis(axes, source)


def _stretches(values: Floats) -> list[tuple[int, int, float]]:
    """Where the same number stands: first and last step, and the number."""
    found: list[tuple[int, int, float]] = []
    for place, value in enumerate(values):
        if np.isnan(value):
            continue
        if found and found[-1][2] == value and found[-1][1] == place - 1:
            found[-1] = (found[-1][0], place, value)
        else:
            found.append((place, place, float(value)))
    return found
