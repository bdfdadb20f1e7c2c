"""Where the daemon's configuration comes from: the file, and what systemd gave beside it.

Built before the environment is scrubbed; read at the start and at each reload.
May import: config.
"""

from __future__ import annotations

import os
from typing import Protocol

from qd.config import find_config, read_config
from qd.config.model import Config
from qd.config.password import CREDENTIAL


class ConfigSource(Protocol):
    """Where a configuration is read from.

    Attributes:
        file: its name, for the log.
    """

    file: str

    def read(self) -> Config:
        """The configuration as it is now. Raises ConfigError."""
        ...


class Source:
    """The configuration's file.

    Args:
        path: as it was named, or None to look where the documentation says.

    Attributes:
        file: its name.

    Raises:
        ConfigError: there is none.
    """

    def __init__(self, path: str | None) -> None:
        self._place = find_config(path)
        self.file = str(self._place.file)
        self._folder = os.environ.get("CREDENTIALS_DIRECTORY")
        self._credential = os.path.join(self._folder, CREDENTIAL) if self._folder else None

    def read(self) -> Config:
        """The configuration as the file is now; systemd's credential is its password file where it names none.

        Raises:
            ConfigError: with every problem of the file.
        """
        config = read_config(self._place)
        database, credential = config.database, self._credential
        database._handed = self._folder
        named = database.password is not None or database.password_file is not None
        if database.driver == "sqlite" or named or credential is None or not os.path.lexists(credential):
            return config
        filed = database.model_copy(update={"password_file": credential})
        return config.model_copy(update={"database": filed})
