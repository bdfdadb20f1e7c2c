"""`qd queues`: list, pause, resume. May import: the modules of cli, the protocol's values, waking."""

from __future__ import annotations

import click

from qd.cli import paging
from qd.cli.context import Cli, pass_cli
from qd.cli.shape import depth_json
from qd.cli.status import HEADERS, RIGHT, look
from qd.cli.terminal import show_json, table
from qd.errors import NotFound

name_of_queue = click.argument("names", metavar="QUEUE...", nargs=-1, required=True)


@click.group()
def queues() -> None:
    """Queues: those of the configuration, and all that have rows."""


@queues.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON; `next` is for --after.")
@click.option(
    "--limit", type=click.IntRange(1, paging.MOST), default=paging.LIMIT, show_default=True, help="Rows at most."
)
@click.option("--after", metavar="QUEUE", help="Begin after this name.")
@pass_cli
def list_queues(cli: Cli, as_json: bool, limit: int, after: str | None) -> None:
    """List queues by name, with their counts."""
    picture = look(cli, cli.store)
    later = [depth for depth in picture.depths if after is None or depth.queue > after]
    page, following = paging.page(later, limit, lambda depth: depth.queue)
    if as_json:
        rows = [depth_json(depth, depth.queue in picture.known) for depth in page]
        show_json({"queues": rows, "next": following})
        return
    table(HEADERS, picture.queue_rows(page), right=RIGHT)
    paging.say_more(following)


@queues.command()
@name_of_queue
@pass_cli
def pause(cli: Cli, names: tuple[str, ...]) -> None:
    """Claim nothing of these queues any more. What runs goes on to its end."""
    _require(cli, names)
    for name in names:
        cli.store.pause(name)
        click.echo(f"{name} is paused")


@queues.command()
@name_of_queue
@pass_cli
def resume(cli: Cli, names: tuple[str, ...]) -> None:
    """Let these queues be claimed again."""
    _require(cli, names)
    for name in names:
        cli.store.resume(name)
        click.echo(f"{name} goes on")
    from qd.waking import wake

    wake(*names)


def _require(cli: Cli, names: tuple[str, ...]) -> None:
    """Refuses names that neither the configuration nor a row knows: a slip would do nothing, silently."""
    known = {*cli.config.queues, *(depth.queue for depth in cli.store.depths())}
    for name in names:
        if name not in known:
            raise NotFound(f"no queue {name!r}; there are {', '.join(sorted(known))}")
