"""How the pictures look: colours, sizes in pixels, and where a panel's parts go. May import: matplotlib."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from grafana.panels import Json

COLUMN, LINE, MARGIN = 52, 38, 4
DPI = 100
INK, FAINT, PAPER, EDGE = "#1f2329", "#6b7178", "#f4f5f5", "#d8dadd"

COLOURS = {
    "green": "#37872d", "blue": "#1f60c4", "purple": "#8f3bb8", "red": "#d6263d", "dark-red": "#8a1021",
    "orange": "#e8730c", "dark-orange": "#a8480a", "yellow": "#b8890b", "text": INK,
}  # fmt: skip
"""Grafana's names, as they are readable on white."""

PALETTE = ("#1f60c4", "#e8730c", "#37872d", "#8f3bb8", "#0a8a8a", "#b8890b", "#c2185b", "#5d4037", "#607d8b", "#7cb342")


@dataclass(frozen=True)
class Box:
    """A place on the figure, in pixels from its upper left."""

    x: float
    y: float
    width: float
    height: float

    def inner(self, left: float, top: float, right: float, bottom: float) -> Box:
        """What is left without these edges."""
        return Box(self.x + left, self.y + top, self.width - left - right, self.height - top - bottom)


class Sheet:
    """A figure with pixels for coordinates.

    Args:
        colours: of series by their name, shared by all sheets, so that a queue looks the same everywhere.
    """

    def __init__(self, width: float, height: float, colours: dict[str, str]) -> None:
        self.width, self.height, self._colours = width, height, colours
        self.figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor=PAPER)

    def colour(self, name: str, taken: Collection[str]) -> str:
        """Of a series: what it had before, unless another of its panel has it; else one that is free."""
        free = [colour for colour in PALETTE if colour not in taken] or list(PALETTE)
        wanted = self._colours.setdefault(name, free[len(self._colours) % len(free)])
        return wanted if wanted in free else free[0]

    def axes(self, box: Box) -> Axes:
        """Axes at a place, without a frame."""
        place = box.x / self.width, 1 - (box.y + box.height) / self.height
        axes = self.figure.add_axes((*place, box.width / self.width, box.height / self.height))
        axes.tick_params(labelsize=7, colors=FAINT, length=0)
        axes.set_facecolor("white")
        for spine in axes.spines.values():
            spine.set_visible(False)
        return axes

    def text(self, x: float, y: float, words: str, *, size: float = 8, colour: str = INK, **more: object) -> None:
        """Words at a place, by their upper left unless `ha` or `va` say otherwise."""
        given: dict[str, object] = {"va": "top", "ha": "left", **more}
        self.figure.text(x / self.width, 1 - y / self.height, words, fontsize=size, color=colour, **given)  # type: ignore[arg-type]

    def card(self, panel: Json, top: int) -> Box:
        """A panel's paper with its title; the place that is left for what it shows."""
        grid = panel["gridPos"]
        box = Box(grid["x"] * COLUMN, (grid["y"] - top) * LINE, grid["w"] * COLUMN, grid["h"] * LINE)
        box = box.inner(MARGIN, MARGIN, MARGIN, MARGIN)
        place = box.x / self.width, 1 - (box.y + box.height) / self.height
        size = box.width / self.width, box.height / self.height
        paper = FancyBboxPatch(
            place, *size, boxstyle="square,pad=0", facecolor="white", edgecolor=EDGE, linewidth=0.8,
            transform=self.figure.transFigure, zorder=-1,
        )  # fmt: skip
        self.figure.add_artist(paper)
        self.text(box.x + 9, box.y + 8, panel["title"], size=8.5, weight="bold")
        return box.inner(8, 26, 8, 6)
