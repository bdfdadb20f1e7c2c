"""What the demo shows: a live view on a terminal, plain lines elsewhere, a table at the end.

May import: the store's values, the demo's verdict and tree. Owns the console.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from qd.clock import monotonic
from qd.store.protocol import QueueDepth

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
        self._console, self._total = console, total
        self._began = self._said = monotonic()
        self._seen: list[tuple[float, int]] = [(self._began, 0)]
        self._progress = Progress(
            SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(), TextColumn("{task.fields[states]}"),
            console=console, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._progress.add_task("jobs", total=total, rate="", states="")
        console.print(f"watch it at {url}", markup=False, highlight=False)

    def show(self, depth: QueueDepth, done: int) -> None:
        """Shows the newest counts; on a terminal at once, elsewhere once in LINE_EVERY seconds."""
        now = monotonic()
        self._seen = [(at, count) for at, count in self._seen if now - at < 2.0] or self._seen[-1:]
        since, before = self._seen[0]
        rate = f"{(done - before) / max(now - since, 0.001):,.0f} jobs/s"
        self._seen.append((now, done))
        states = " ".join(f"{state} {getattr(depth, state):,}" for state in STATES)
        self._progress.update(self._task, completed=done, rate=rate, states=states)
        if not self._console.is_terminal and (now - self._said >= LINE_EVERY or done == self._total):
            self._said = now
            self._console.print(f"{done:,} of {self._total:,} done, {rate}: {states}", markup=False, highlight=False)

    def __enter__(self) -> LiveView:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._progress.stop()


def table(console: Console, rows: Sequence[tuple[str, str]]) -> None:
    """Prints what came out, line by line."""
    grid = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for what, value in rows:
        grid.add_row(Text(what), Text(value))
    console.print(grid)


def say(console: Console, text: str, style: str = "") -> None:
    """Prints one line as it is."""
    console.print(Text(text, style=style), highlight=False, soft_wrap=True)
