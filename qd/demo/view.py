"""What the demo shows: a live view on a terminal, plain lines elsewhere, a table at the end.

May import: the store's values, the demo's verdict and tree, clock. Owns the console.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from qd.clock import monotonic
from qd.store.protocol import QueueDepth

SPINNER = "line"
"""One that every terminal can show."""

LINE_EVERY = 1.0
"""Seconds between lines where there is no terminal."""

STATES = ("ready", "delayed", "reserved", "stale", "failed")


class LiveView:
    """Shows how far the jobs are. A context manager: what it draws ends with it.

    Args:
        total: jobs in all.
        url: the address of /metrics, shown all the time.
    """

    def __init__(self, console: Console, total: int, url: str) -> None:
        self._console, self._total, self._url = console, total, url
        self._draws = console.is_terminal and not console.is_dumb_terminal
        self._began = self._said = monotonic()
        self._seen: list[tuple[float, int]] = [(self._began, 0)]
        self._progress = Progress(
            SpinnerColumn(SPINNER), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
        )  # fmt: skip
        self._task = self._progress.add_task("jobs", total=total, rate="")
        self._states = Text()
        self._live = Live(Group(self._progress, self._states, Text(f"metrics: {url}")), console=console)

    def show(self, depth: QueueDepth, done: int) -> None:
        """Shows the newest counts; on a terminal at once, elsewhere once in LINE_EVERY seconds."""
        now = monotonic()
        self._seen = [(at, count) for at, count in self._seen if now - at < 2.0] or self._seen[-1:]
        since, before = self._seen[0]
        # While all wait for their time a rate would tell of that alone.
        rate = f"{(done - before) / max(now - since, 0.001):,.0f} jobs/s" if depth.ready or depth.reserved else ""
        self._seen.append((now, done))
        states = "  ".join(f"{state} {getattr(depth, state):,}" for state in STATES)
        if self._draws:
            self._progress.update(self._task, completed=done, rate=rate)
            self._states.plain = states
        elif now - self._said >= LINE_EVERY or done == self._total:
            self._said = now
            say(self._console, f"{done:,} of {self._total:,} done{rate and f', {rate}'}: {states}")

    def __enter__(self) -> LiveView:
        if self._draws:
            self._live.start(refresh=True)
        else:
            say(self._console, f"metrics: {self._url}")
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._live.stop()


def table(console: Console, rows: Sequence[tuple[str, str]]) -> None:
    """Prints what came out, line by line; a row without a value is left out."""
    grid = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for what, value in rows:
        if value:
            grid.add_row(Text(what), Text(value))
    console.print(grid)


def busy(console: Console, text: str) -> AbstractContextManager[object]:
    """Shows on a terminal that something goes on."""
    return console.status(text, spinner=SPINNER)


def say(console: Console, text: str, style: str = "") -> None:
    """Prints one line as it is."""
    console.print(Text(text, style=style), highlight=False, soft_wrap=True)
