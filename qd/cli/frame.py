"""What `qd status --watch` draws: the newest picture, how the queues change, and what is wrong with the database.

May import: status, terminal, the pure modules, the protocol's values; rich inside the functions.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from qd.cli.status import COUNTS, DAEMON_HEADERS, HEADERS, Picture
from qd.cli.terminal import plural, rich_table, safe
from qd.duration import spell
from qd.store.protocol import QueueDepth

BLOCKED = 1 + COUNTS.index("blocked")
"""The column that is left out while it holds nothing."""

WINDOW = 10.0
"""Seconds over which a change is told."""

LATE = 2.0
"""Seconds without an answer after which it is said that there is none."""

AROUND = 11
"""Lines of a frame that are no rows: two for its head and a complaint, the others around two tables."""

CUT = 200
"""Characters of a complaint."""


@dataclass
class Seen:
    """What was seen so far. All moments are monotonic.

    Attributes:
        picture: the newest; it came at `at`.
        trouble: why there is none newer, or None.
        asked: when the look that has no answer yet was begun; None: none is under way.
    """

    picture: Picture | None = None
    at: float = 0.0
    clock: str = ""
    trouble: str | None = None
    asked: float | None = None
    _counts: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)

    def came(self, picture: Picture, now: float) -> None:
        """A picture has come."""
        self.picture, self.at, self.trouble = picture, now, None
        self.clock = time.strftime("%H:%M:%S")
        self._counts.append((now, {depth.queue: depth.jobs for depth in picture.depths}))
        while self._counts[0][0] < now - WINDOW and len(self._counts) > 2:
            self._counts.popleft()

    def failed(self, trouble: str) -> None:
        """A look has failed; the counts before are no base for a change any more."""
        self.trouble = trouble
        self._counts.clear()

    def change(self, queue: str) -> str:
        """By how many jobs a second the queue has grown, or shrunk."""
        if len(self._counts) < 2:
            return "-"
        (before, old), (after, new) = self._counts[0], self._counts[-1]
        rate = (new.get(queue, 0) - old.get(queue, 0)) / max(after - before, 0.001)
        return f"{rate:+,.1f}/s" if abs(rate) >= 0.05 else "0"

    def complaint(self, now: float) -> str | None:
        """What is wrong with the database, and how old the picture is for that."""
        if self.trouble is not None:
            said = f"the database is away: {safe(self.trouble, CUT)}"
        elif self.asked is not None and now - self.asked > LATE:
            said = f"the database hasn't answered for {spell(now - self.asked)}"
        else:
            return None
        return f"{said}; what follows is {spell(now - self.at)} old" if self.picture is not None else said


def frame(seen: Seen, now: float, every: float, height: int, width: int) -> Any:
    """One frame, no higher than the terminal, as long as that has room for a queue.

    Args:
        every: seconds between two looks, for the head.
    """
    from rich.console import Group
    from rich.text import Text

    picture, complaint = seen.picture, seen.complaint(now)
    head = f"{seen.clock or 'looking ...'}  every {spell(every)}, Ctrl-C ends"
    parts: list[Any] = [
        Text(head if picture is None else f"{safe(picture.server.server)} at {safe(picture.place)}  {head}")
    ]
    if complaint is not None:
        parts.append(Text(complaint, style="bold red"))
    if picture is not None:
        parts += _fitting(picture, seen, height - _lines(Group(*parts), width), width)
    return Group(*parts)


def _fitting(picture: Picture, seen: Seen, height: int, width: int) -> list[Any]:
    """Both tables with as many rows as their lines leave room for: a cell may be folded into several."""
    queues, daemons = _room(len(picture.depths), len(picture.daemons), height + 2 - AROUND)
    queues = min(queues, len(picture.depths))
    while True:
        parts = [_queues(picture, seen, queues), _daemons(picture, daemons)]
        tall = [_lines(part, width) for part in parts]
        over = sum(tall) - height
        if over <= 0 or (queues <= 1 and not daemons):
            return parts
        fewer = max(1, over // 4)
        if daemons and (queues <= 1 or tall[1] > height // 3 + 2):
            daemons = max(0, daemons - fewer)
        else:
            queues = max(1, queues - fewer)


def _lines(part: Any, width: int) -> int:
    """How many lines of a terminal it takes."""
    from rich.console import Console

    console = Console(width=width)
    return len(console.render_lines(part, pad=False))


def _room(queues: int, daemons: int, lines: int) -> tuple[int, int]:
    """How many rows of each table are drawn: daemons get up to a third, queues the rest."""
    some = min(daemons, max(1, lines // 3, lines - queues))
    return max(1, lines - some), some


def _queues(picture: Picture, seen: Seen, most: int) -> Any:
    from rich.console import Group

    depths = picture.depths
    shown = depths if len(depths) <= most else sorted(depths, key=_fullness)[: max(1, most - 1)]
    columns = [column for column in range(len(HEADERS)) if column != BLOCKED or any(depth.blocked for depth in depths)]
    headers = [HEADERS[column].removesuffix(" READY") for column in columns]
    cells = [[row[column] for column in columns] for row in picture.queue_rows(shown)]
    for row, depth in zip(cells, shown, strict=True):
        row.insert(-1, seen.change(depth.queue))
    headers.insert(-1, "CHANGE")
    table = rich_table(headers, cells, range(1, len(headers) - 1))
    return Group(table, *_left_out(len(depths) - len(shown), "queue"))


def _fullness(depth: QueueDepth) -> tuple[int, int, str]:
    """The order in which queues are drawn where not all fit: those that have most first."""
    return -depth.jobs, -depth.failed, depth.queue


def _daemons(picture: Picture, most: int) -> Any:
    from rich.console import Group
    from rich.text import Text

    rows = picture.daemon_rows()
    if not rows:
        return Text(picture.no_daemon)
    shown = rows if len(rows) <= most else rows[: max(min(1, most), most - 1)]
    table = [rich_table(DAEMON_HEADERS, shown)] if shown else []
    return Group(*table, *_left_out(len(rows) - len(shown), "daemon"))


def _left_out(count: int, thing: str) -> list[Any]:
    from rich.text import Text

    return [Text(f"and {plural(count, f'more {thing}')}: `qd status` shows all")] if count else []
