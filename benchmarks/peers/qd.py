"""qd itself: real daemons of this checkout on MariaDB."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.backends.mariadb import MariaDB
from benchmarks.peers.contestant import Command, Contestant, Turn, filled
from benchmarks.peers.on_mariadb import LEFT, own_env
from qd.version import __version__
from tests.support.private import free_port


class Qd(Contestant):
    """`qd run` with four threads, and everything else as shipped: logging, metrics, polls, leases.

    Args:
        batch: `auto`, as shipped, or a number.
        daemons: how many side by side.
        jobs: at full scale.
    """

    backend: MariaDB

    def __init__(self, backend: MariaDB, batch: str | int, daemons: int = 1, jobs: int = 50_000) -> None:
        self.backend, self._batch, self._daemons, self.jobs = backend, batch, daemons, jobs
        self.name = f"qd.{batch}" + (f".{daemons}daemons" if daemons > 1 else "")
        self.adds_as = "qd" if batch == "auto" and daemons == 1 else None
        self.setting = f"{daemons} daemon{'s' if daemons > 1 else ''}, 4 threads, batch {batch}, logs and metrics on"

    def prepare(self) -> None:
        """See Contestant."""
        self.backend.new_database()

    def fill(self, turn: Turn) -> dict[str, float]:
        """See Contestant."""
        return filled([sys.executable], "qd_jobs:fill", own_env(self.backend, turn), turn)

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        env = own_env(self.backend, turn)
        files = [self._config(turn.folder / f"qd{number}.yaml") for number in range(self._daemons)]
        return [Command([sys.executable, "-m", "qd", "--config", str(file), "run"], env) for file in files]

    def _config(self, file: Path) -> Path:
        login = self.backend.server.config(self.backend.database)
        place = {"host": login.host, "port": login.port, "name": login.name, "user": login.user}
        config: dict[str, Any] = {
            "database": place | {"password": str(login.password)},
            "handlers": {"modules": ["qd_jobs"]},
            "workers": [{"queues": ["default"], "threads": 4}],
            "batch": self._batch,
            "http": {"listen": f"127.0.0.1:{free_port()}"},
        }
        file.write_text(json.dumps(config))  # JSON is YAML
        file.chmod(0o600)
        return file

    def left(self) -> int:
        """See Contestant."""
        return self.backend.count(LEFT)

    def who(self) -> str:
        """See Contestant."""
        return f"qd {__version__}"
