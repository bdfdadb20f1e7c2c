"""`qd console passwd`: users of the web console. May import: the modules of cli."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from qd.cli import users


@click.group()
def console() -> None:
    """Users of the web console."""


@console.command()
@click.option(
    "--file", "file", required=True, type=click.Path(path_type=Path, dir_okay=False), help="`console.users_file`."
)
@click.option("--role", type=click.Choice(users.ROLES), help="Of a new user: viewer; of an old one: as it is.")
@click.argument("user")
def passwd(file: Path, role: str | None, user: str) -> None:
    """Add USER, or change the password. It is read from stdin, or asked for twice."""
    is_new = users.set_user(file, user, role, _password())
    click.echo(f"{'added' if is_new else 'changed'} {user} in {file}")


def _password() -> str:
    if sys.stdin.isatty():
        asked: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        return asked
    return sys.stdin.readline().rstrip("\r\n")
