"""Durations and sizes as people write them. Pure."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)")
_SIZE = re.compile(r"([0-9]+)\s*(B|KiB|MiB|GiB)")


def duration(text: object) -> float:
    """Seconds of `30s`, `5m`, `1h`, `250ms`, `2d`, or of several together (`1h30m`).

    Args:
        text: the duration; a bare number is refused, its unit would be a guess. A float is
            returned as it is (a default).

    Raises:
        ValueError: it isn't one; the message says what is allowed.
    """
    if isinstance(text, float):
        return text
    if isinstance(text, str) and re.fullmatch(rf"(?:{_DURATION.pattern})+", text.strip()):
        return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))
    raise ValueError("not a duration; write a number with a unit, like 250ms, 30s, 5m, 1h or 30d")


def size(text: object) -> int:
    """Bytes of `512MiB`, `64KiB`, `1GiB`.

    Raises:
        ValueError: it isn't one; the message says what is allowed.
    """
    match = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError("not a size; write a number with a unit, like 64KiB, 512MiB or 1GiB")
    return int(match[1]) * _SIZES[match[2]]


def spell(seconds: float) -> str:
    """A duration for people: `250ms`, `1.5s`, `5m`, `1h30m`, `2d3h`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.3g}s"
    parts, left = [], round(seconds)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])
