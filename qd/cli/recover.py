"""`qd recover`: stale jobs back into their queues now. May import: the modules of cli, config (a queue's defaults)."""

from __future__ import annotations

import click

from qd.cli import paging
from qd.cli.context import Cli, pass_cli
from qd.cli.terminal import plural, show_json
from qd.config.model import QueueConfig


@click.command()
@paging.queue
@paging.as_json
@pass_cli
def recover(cli: Cli, queue: str | None, as_json: bool) -> None:
    """Take back jobs whose lease has run out, at once and in every queue.

    The daemons do it by themselves, after two looks, in the queues that they serve.
    """
    limits = {name: policy.max_attempts for name, policy in cli.config.queues.items()}
    back, buried = cli.store.recover(queue, limits, QueueConfig().max_attempts)
    if as_json:
        show_json({"recovered": back, "dead_lettered": buried})
        return
    click.echo(f"{plural(back, 'job')} ready again, {buried:,} moved to the dead letters")
