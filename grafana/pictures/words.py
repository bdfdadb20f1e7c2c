"""Numbers in words, about as Grafana writes its units. May import: nothing of qd."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from grafana.panels import Json

SPANS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (0.0, "µs"))
SUFFIXES = {"ops": " ops/s", "cpm": " c/m", "none": "", "short": "", "string": ""}


def worded(value: float, unit: str) -> str:
    """A number with its unit: 0.0123 s is 12.3 ms."""
    if math.isnan(value):
        return "–"
    if unit == "s":
        return _span(value)
    if unit == "percentunit":
        return f"{_short(value * 100)} %"
    if unit == "bytes":
        return _scaled(value, 1024.0, (" B", " KiB", " MiB", " GiB"))
    return _scaled(value, 1000.0, ("", " K", " Mil")) + SUFFIXES[unit]


def _span(seconds: float) -> str:
    if seconds <= 0:
        return f"{seconds:.0f} s"
    size, name = next((size, name) for size, name in SPANS if seconds >= size)
    return f"{_short(seconds / (size or 1e-6))} {name}"


def _scaled(value: float, base: float, names: tuple[str, ...]) -> str:
    place = 0
    while abs(value) >= base and place < len(names) - 1:
        value, place = value / base, place + 1
    return _short(value) + names[place]


def _short(value: float) -> str:
    """Three digits that count."""
    if value == round(value) and abs(value) < 1e5:
        return f"{value:.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1g}"


def named(pattern: str, labels: Mapping[str, str]) -> str:
    """A legend's name for a series."""
    if pattern == "__auto":
        return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))
    return re.sub(r"{{\s*(\w+)\s*}}", lambda found: labels.get(found[1], ""), pattern).strip()


def meaning(value: float, mappings: list[Json]) -> tuple[str, str] | None:
    """The word and the colour that a panel has for a number."""
    for mapping in mappings:
        found = mapping["options"].get(f"{value:g}")
        if found is not None:
            return str(found["text"]), str(found["color"])
    return None


def judged(value: float, thresholds: Json) -> str:
    """The colour that thresholds give a number."""
    colour = thresholds["steps"][0]["color"]
    for step in thresholds["steps"][1:]:
        colour = step["color"] if value >= step["value"] else colour
    return str(colour)
