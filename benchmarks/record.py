"""What a run gave, kept as JSON: figures, what failed, and the conditions. Pure but for reading and writing a file.

May import: measured, sections.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.measured import Measured
from benchmarks.sections import SECTIONS, part_named

T = TypeVar("T")

FORMAT = 1
"""Of the file; raised when an older reader would misread it."""

Conditions = dict[str, dict[str, str]]
"""By group, e.g. `machine`: what was found there, by name."""


@dataclass
class Record:
    """One run. What it has is by part, see `sections.Part.name`.

    Attributes:
        figures: what was measured, in order.
        broken: the error that ended a part.
        missing: why a part could not be run here.
    """

    scale: float
    rounds: int
    figures: dict[str, list[Measured]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=dict)

    def all_figures(self) -> list[Measured]:
        """Of all parts."""
        return [figure for figures in self.figures.values() for figure in figures]

    def parts(self) -> list[str]:
        """What was asked for, whatever came of it, in the order of the sections."""
        asked = {*self.figures, *self.broken, *self.missing}
        order = [section.name for section in SECTIONS]
        return sorted(asked, key=lambda name: (order.index(part_named(name).section.name), name))

    def why_missing(self) -> dict[str, str]:
        """By the beginning of figures' keys: why there are none."""
        whys = {key: "not asked for" for section in SECTIONS for key in section.keys}
        for name in self.parts():
            why = self.broken.get(name) or self.missing.get(name) or "its section gave no such figure"
            whys |= dict.fromkeys(part_named(name).keys, why)
        return whys

    def write(self, file: Path) -> None:
        """Writes it, whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(file.name + ".new")
        new.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n")
        new.replace(file)


def read(file: Path) -> Record:
    """A run that was written.

    Raises:
        ValueError: it isn't one, or of another format.
        OSError: it can't be read.
    """
    kept: Any = json.loads(file.read_text())
    if not isinstance(kept, dict) or kept.pop("format", None) != FORMAT:
        raise ValueError(f"{file}: not a run of `make bench`, or one of another version of it")
    parts = kept.pop("figures")
    figures = {
        name: [Measured(**{**figure, "rounds": tuple(figure["rounds"])}) for figure in part]
        for name, part in parts.items()
    }
    return Record(**kept, figures=figures)


def joined(runs: Iterable[Record]) -> Record:
    """Several runs of different parts as one; of a part that several have the last one's counts.

    Raises:
        ValueError: their scales differ, or there is none.
    """
    all_runs = list(runs)
    if len({run.scale for run in all_runs}) != 1:
        raise ValueError("runs are joined if there are any, and all have the same scale")
    whole = Record(all_runs[0].scale, min(run.rounds for run in all_runs))
    for number, run in enumerate(all_runs, 1):
        for name in run.parts():
            _take(name, run.figures, whole.figures)
            _take(name, run.broken, whole.broken)
            _take(name, run.missing, whole.missing)
        of_run = f", run {number}: {', '.join(run.parts())}" if len(all_runs) > 1 else ""
        whole.conditions |= {group + of_run: facts for group, facts in run.conditions.items()}
    whole.figures = {name: whole.figures[name] for name in whole.parts() if name in whole.figures}
    return whole


def _take(name: str, given: dict[str, T], kept: dict[str, T]) -> None:
    kept.pop(name, None)
    if name in given:
        kept[name] = given[name]
