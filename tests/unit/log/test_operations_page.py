"""What docs/operations.md says of the log's lines and of dead letters is all that there is, and no more."""

from __future__ import annotations

import re
from pathlib import Path

from qd import events
from qd.daemon import stacks
from qd.events import Event
from qd.log import records
from qd.outcome import Reason

PAGE = (Path(__file__).parents[3] / "docs/operations.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The rows of a section's table, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [
        [cell.strip(" `") for cell in line.strip("|").split("|")] for line in re.findall(r"^\| `.*$", section, re.M)
    ]


def kinds() -> list[type[Event]]:
    """All kinds of event that the module has."""
    return [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, Event)]


def test_every_line_of_the_log_is_explained_with_its_level() -> None:
    there = {kind.NAME: kind.LEVEL for kind in kinds() if kind.NAME}
    assert len(there) > 20
    told = {row[0]: row[1] for row in table("The log's lines")}
    assert told == there | {stacks.EVENT: "info", records.EVENT: "any"}


def test_every_reason_of_a_dead_letter_is_explained() -> None:
    assert [row[0] for row in table("Why a job was given up")] == [reason.value for reason in Reason]
