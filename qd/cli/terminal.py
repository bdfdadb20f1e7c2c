"""What the verbs write: text made safe for a terminal, tables, JSON, questions, progress.

Nothing that a job carries reaches the terminal raw: control characters and what reorders text are
shown as escapes. rich is loaded only for a real terminal. May import: nothing of qd.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0\U000e0000-\U000e0fff"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""C0 and C1 controls, marks that reorder or hide text, line separators, lone surrogates."""

CUT = 60
"""Characters of a payload or error that a list shows."""


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    named = {9: "\\t", 10: "\\n", 13: "\\r"}
    return named.get(code) or (f"\\x{code:02x}" if code < 256 else ascii(match[0])[1:-1])


def safe(text: object, cut: int | None = None) -> str:
    """One line that a terminal shows as it is meant.

    Args:
        cut: characters at most; what is left out is marked with an ellipsis.
    """
    line = str(text)
    if cut is not None:
        line = line[: cut + 1]
    line = _UNSAFE.sub(_escape, line)
    return line if cut is None or len(line) <= cut else line[: cut - 1] + "…"


def safe_lines(text: str) -> str:
    """The same for a text of several lines, whose line ends stay."""
    return "\n".join(safe(line) for line in text.replace("\r\n", "\n").split("\n"))


def show_json(value: Any) -> None:
    """Writes a value as JSON."""
    click.echo(as_text(value))


def as_text(value: Any) -> str:
    """A value as JSON, all non-ASCII escaped, so that no terminal and no locale matters."""
    return json.dumps(value, indent=2)


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> None:
    """Writes a table: with rich on a terminal, else plain columns that other programs can cut.

    Args:
        right: numbers of the columns that hold figures.
    """
    cells = [[safe(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(headers, cells, right)
        return
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    for line in [list(headers), *cells]:
        padded = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        click.echo("  ".join(padded).rstrip())


def _rich_table(headers: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[int]) -> None:
    from rich.console import Console

    Console(highlight=False).print(rich_table(headers, cells, right))


def rich_table(headers: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Any:
    """A rich table of cells that are safe already; markup in them means nothing."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for number, header in enumerate(headers):
        figures = number in right
        narrow = figures and " " not in header  # a word that is broken for a figure's sake can't be read
        made.add_column(Text(header), justify="right" if figures else "left", overflow="fold", no_wrap=narrow)
    for row in cells:
        made.add_row(*(Text(cell) for cell in row))
    return made


def facts(pairs: Sequence[tuple[str, object]]) -> None:
    """Writes `name  value` lines; a value of several lines is indented below its name."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        lines = safe_lines(str(value)).rstrip("\n").split("\n")
        click.echo(f"{name.ljust(width)}  {lines[0]}".rstrip())
        for line in lines[1:]:
            click.echo(f"{' ' * width}  {line}".rstrip())


def confirm(count: int, act: str, yes: bool) -> bool:
    """Asks before an act on many rows.

    Args:
        act: what will be done, e.g. `delete 3 dead letters`; the count is in it.
        yes: the user has said so already.

    Returns:
        False: there is nothing to do; it was said.

    Raises:
        click.UsageError: nobody can be asked and `--yes` isn't there.
        click.exceptions.Exit: the answer was no.
    """
    if count == 0:
        click.echo(f"nothing to do: this would {act}", err=True)
        return False
    if yes:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError(f"this would {act}; nobody can be asked here, so say --yes if it is meant")
    if not click.confirm(f"This will {act}. Go on?", err=True):
        click.echo("nothing was done", err=True)
        raise click.exceptions.Exit(1)
    return True


@contextmanager
def progress(label: str, total: int, *, prints: bool = False) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr while a long act runs, where stderr is a terminal.

    Args:
        prints: the act writes lines to stdout meanwhile. Where those scroll by on a terminal they are
            the progress, and a bar would be drawn through them.

    Yields:
        A function that says how many more are done.
    """
    if not sys.stderr.isatty() or (prints and sys.stdout.isatty()):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # rich would otherwise send what is printed meanwhile to its own console, which is stderr
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task, done)


def plural(count: int, thing: str) -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
