"""`qd migrate`: the schema. May import: the modules of cli."""

from __future__ import annotations

import click

from qd.cli.context import Cli, pass_cli
from qd.cli.terminal import facts, show_json


@click.command()
@click.option("--status", is_flag=True, help="Only say what there is and what would be done.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_cli
def migrate(cli: Cli, status: bool, as_json: bool) -> None:
    """Bring the schema up to date. Safe to repeat, and when two run at once."""
    applied = [] if status else cli.database.migrate()
    state = cli.database.schema()
    if as_json:
        show_json({"version": state.version, "compatible_from": state.compatible_from,
                   "applied": applied, "pending": state.pending})  # fmt: skip
        return
    for name in applied:
        click.echo(f"applied {name}")
    if not status:
        click.echo(f"schema version {state.version}" + ("" if applied else ", nothing to do"))
        return
    facts([
        ("version", state.version or "none: there is no schema yet"),
        ("compatible from", state.compatible_from),
        ("pending", "\n".join(state.pending) or "nothing"),
    ])  # fmt: skip
