"""`qd demo`: the main job on real files. May import: demo (inside the function)."""

from __future__ import annotations

import click


@click.command()
@click.argument("folder", metavar="[DIR]", required=False)
@click.option("--mysql", is_flag=True, help="On a private MariaDB that it starts, instead of the embedded store.")
def demo(folder: str | None, mysql: bool) -> int:
    """Hash and measure every file of DIR, one job each, with a live view.

    Without DIR it takes Python's own standard library. It needs no configuration and no server,
    checks its own result, and leaves nothing behind.
    """
    from qd.demo.app import run

    return run(folder, mysql=mysql)
