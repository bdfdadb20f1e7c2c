"""What the daemon knows of itself in memory and the page shows: the Runtime protocol.

The engine implements it. Every method is called during a scrape, from any thread: it answers from
memory at once, never waits and never asks the database. May import: store protocol (for the server's name).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from qd.store.protocol import ServerInfo

STOPPING = "stopping"
"""What `Runtime.ready` says of a daemon that claims nothing more because it was told to stop: no fault."""


class Runtime(Protocol):
    """The state behind the gauges of one daemon."""

    def workers(self) -> Mapping[str, tuple[int, int, int]]:
        """Threads of each worker, by its label: idle, busy, waiting out a back-off."""
        ...

    def queue_workers(self) -> Mapping[str, int]:
        """Threads that serve each queue; a queue that isn't named has none."""
        ...

    def oldest_running(self) -> Mapping[str, float]:
        """Seconds that the longest running job of each queue runs; a queue that isn't named has none."""
        ...

    def ready(self) -> str | None:
        """None: jobs can be claimed; STOPPING; else why not."""
        ...

    def database_up(self) -> bool:
        """False from a failure until the next success."""
        ...

    def server(self) -> ServerInfo:
        """Who answers, as far as it is known."""
        ...

    def last_reload_successful(self) -> bool:
        """False from a refused reload until the next applied one."""
        ...
