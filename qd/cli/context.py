"""What every verb may want, made at its first use: the configuration, the database, a store.

May import: config, store, the pure modules; all of it inside the functions, so that a verb which
needs no database doesn't pay for its driver.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from qd.config.load import Place
    from qd.config.model import Config, QueueConfig
    from qd.store.protocol import Database, FullStore

CONNECTION = "qd cli"
"""The name of the verbs' connection in SHOW PROCESSLIST."""


class Cli:
    """One run of the command line.

    Args:
        config_path: what `--config` says, or None: the usual places are searched.
    """

    def __init__(self, config_path: str | None = None) -> None:
        self.config_path = config_path

    @cached_property
    def config(self) -> Config:
        """The configuration.

        Raises:
            ConfigError: with all its problems.
        """
        from qd.cli.credential import stored
        from qd.config import read_config

        config = read_config(self._place)
        config.database._credential = stored(config.database, self.file)
        return config

    @property
    def file(self) -> Path:
        """Where the configuration is.

        Raises:
            ConfigError: none is named, and none is there.
        """
        return self._place.file

    @cached_property
    def _place(self) -> Place:
        """Found once, so that all of a run goes by the same file."""
        from qd.config import find_config

        return find_config(self.config_path)

    @cached_property
    def database(self) -> Database:
        """The configured database; nothing is opened yet."""
        where = self.config.database
        from qd.events import Events
        from qd.store import open_database

        return open_database(where, Events())

    @cached_property
    def opened(self) -> FullStore:
        """A store with a connection of its own, whatever the schema; it is opened by the first call."""
        return self.database.store(CONNECTION)

    @cached_property
    def store(self) -> FullStore:
        """The same, once it is sure that this qd works with the schema: it may know only half of a row.

        Raises:
            SetupWrong: it doesn't.
        """
        from qd.store.schema import check_compatible

        check_compatible(self.database.schema())
        return self.opened

    def close(self) -> None:
        """Closes what was opened."""
        if "opened" in self.__dict__:
            self.opened.close()

    def policy(self, queue: str) -> QueueConfig:
        """The policy that holds for a queue, configured or not."""
        from qd.config.model import QueueConfig

        return self.config.queues.get(queue) or QueueConfig()

    def unknown_queues(self, names: tuple[str, ...]) -> str | None:
        """What is wrong with these names as queues of the configuration; None: nothing."""
        unknown = [name for name in names if name not in self.config.queues]
        if not unknown:
            return None
        known = ", ".join(self.config.queues)
        return f"unknown queue {', '.join(map(repr, unknown))}; the configuration's `queues:` has {known}"


pass_cli = click.make_pass_decorator(Cli)
"""Hands the Cli to a verb as its first argument."""
