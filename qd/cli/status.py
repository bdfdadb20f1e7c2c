"""`qd status`: queues, daemons and database at a glance; `--watch` stands in qd.cli.watch.

May import: the modules of cli, the protocol's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from qd.cli import ending
from qd.cli.context import Cli, pass_cli
from qd.cli.shape import NONE_SEEN, brief, daemon_json, depth_json, seen
from qd.cli.terminal import facts, safe, show_json, table
from qd.duration import duration, spell
from qd.store.protocol import DaemonRow, FullStore, QueueDepth, ServerInfo

COUNTS = ("ready", "delayed", "reserved", "stale", "failed", "blocked")
HEADERS = ("QUEUE", *(count.upper() for count in COUNTS), "OLDEST READY", "")
RIGHT = (1, 2, 3, 4, 5, 6, 7)


@dataclass(frozen=True)
class Picture:
    """What a status shows.

    Attributes:
        known: names of the configured queues.
    """

    depths: list[QueueDepth]
    daemons: list[DaemonRow]
    server: ServerInfo
    place: str
    known: frozenset[str]
    no_daemon = f"no daemon takes jobs: {NONE_SEEN}"

    def queue_rows(self, depths: Sequence[QueueDepth] | None = None) -> list[list[str]]:
        """The table of queues, or of some of them, cells safe for a terminal."""
        return [
            [safe(depth.queue), *(f"{getattr(depth, count):,}" for count in COUNTS),
             spell(depth.oldest_ready_age) if depth.ready else "-", self.remark(depth)]
            for depth in (self.depths if depths is None else depths)
        ]  # fmt: skip

    def remark(self, depth: QueueDepth) -> str:
        """What is special about a queue."""
        words = []
        if depth.paused:
            words.append("paused")
        if depth.queue not in self.known:
            words.append("not in the configuration")
        else:
            words += self._service(depth.queue)
        return ", ".join(words)

    def _service(self, queue: str) -> list[str]:
        serving = [daemon for daemon in self.daemons if queue in daemon.queues]
        if not serving:
            return ["no daemon serves it"]
        return ["who serves it is silent"] if all(daemon.silent for daemon in serving) else []

    def daemon_rows(self) -> list[list[str]]:
        """The table of daemons, cells safe for a terminal."""
        return [
            [safe(row.host), str(row.pid), safe(row.version), safe(",".join(row.queues)), brief(row.started_at),
             seen(row)]
            for row in self.daemons
        ]  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """The stable keys of `qd status --json`."""
        path = self.server.claim_path
        return {
            "queues": [depth_json(depth, depth.queue in self.known) for depth in self.depths],
            "daemons": [daemon_json(row) for row in self.daemons],
            "database": {"server": self.server.server, "connector": self.server.connector,
                         "claim_path": path.value if path else None, "place": self.place},
        }  # fmt: skip


DAEMON_HEADERS = ("DAEMON", "PID", "VERSION", "QUEUES", "SINCE", "SEEN")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--watch", is_flag=True, help="Draw it again and again, until Ctrl-C.")
@click.option("--every", default="1s", show_default=True, metavar="DURATION", help="How often --watch draws.")
@pass_cli
def status(cli: Cli, as_json: bool, watch: bool, every: str) -> int:
    """Queues, daemons and database at a glance."""
    if watch and as_json:
        raise click.UsageError("--watch draws for people; call --json as often as you like")
    if watch:
        return _watch(cli, every)
    picture = look(cli, cli.store)
    if as_json:
        show_json(picture.as_json())
    else:
        show(picture)
    return ending.DONE


def _watch(cli: Cli, every: str) -> int:
    from qd.cli.watch import watch

    try:
        seconds = duration(every)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--every") from error
    return watch(cli, max(0.1, seconds))


def show(picture: Picture) -> None:
    """Writes a picture: tables for people."""
    table(HEADERS, picture.queue_rows(), right=RIGHT)
    click.echo()
    if picture.daemons:
        table(DAEMON_HEADERS, picture.daemon_rows())
    else:
        click.echo(picture.no_daemon)
    click.echo()
    facts([("database", f"{picture.server.server} at {picture.place}")])


def look(cli: Cli, store: FullStore) -> Picture:
    """Asks the database once; configured queues without rows are there with zeros."""
    depths = {depth.queue: depth for depth in store.depths()}
    for queue in cli.config.queues:
        depths.setdefault(queue, QueueDepth(queue))
    return Picture(
        [depths[name] for name in sorted(depths)],
        store.daemons(),
        cli.database.info(),
        cli.config.database.place,
        frozenset(cli.config.queues),
    )
