"""What lists and acts on many share: `--queue`, `--json`, `--limit`, `--after`, and the word on what comes next.

May import: the modules of cli, config (what the metrics call unknown queues).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from qd.duration import duration
from qd.errors import NotFound

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

LIMIT = 100
MOST = 10_000

as_json = click.option("--json", "as_json", is_flag=True, help="As JSON.")
yes = click.option("--yes", is_flag=True, help="Don't ask.")
job_id = click.argument("job_id", metavar="ID", type=click.IntRange(1))
job_ids = click.argument("job_ids", metavar="ID...", nargs=-1, type=click.IntRange(1))


def _of_one_queue(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    """The name, unless it is the metrics' for many: a filter by that would find nothing, silently."""
    from qd.config.limits import OTHER

    if name == OTHER:
        raise NotFound(
            f"{OTHER} is what metrics and alerts call all queues that the configuration doesn't know; `qd status` "
            "names them: give --queue one of those, or list without --queue"
        )
    return name


queue = click.option("--queue", metavar="QUEUE", callback=_of_one_queue, help="Only of this queue.")


class Duration(click.ParamType):  # type: ignore[type-arg]
    """`30s`, `5m`, `1h30m`: seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds of a duration as people write it."""
        try:
            return duration(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


def pages(after: str) -> Callable[[F], F]:
    """Adds `--limit`, `--after` and `--json` to a list.

    Args:
        after: what `--after` takes, for its help.
    """

    def add(function: F) -> F:
        most = click.IntRange(1, MOST)
        for option in (
            click.option("--json", "as_json", is_flag=True, help="As JSON; `next` is for --after."),
            click.option("--after", type=click.IntRange(0), metavar="ID", help=f"Begin after {after}."),
            click.option("--limit", type=most, default=LIMIT, show_default=True, help="Rows at most."),
        ):
            function = option(function)
        return function

    return add


def page(rows: Sequence[T], limit: int, key: Callable[[T], Any]) -> tuple[Sequence[T], Any]:
    """The rows of a page of which one more was fetched, and what `--after` takes for the next.

    Returns:
        The page, and None in place of a key where nothing follows.
    """
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], key(rows[limit - 1])


def say_more(next_key: Any) -> None:
    """Says on stderr how to get the next page, so that stdout holds rows only."""
    if next_key is not None:
        click.echo(f"there are more: --after {next_key}", err=True)
