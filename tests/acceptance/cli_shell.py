"""The real command `qd`, run as a user's shell would, on a fresh database."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from qd.config.model import DatabaseConfig
from tests.support.server import ROOT, Server

HANDLERS = """
import qd

@qd.handler("send")
def send(job):
    pass

@qd.handler("boom")
def boom(job):
    raise RuntimeError("boom")
"""


def policy() -> dict[str, Any]:
    """A queue's: retries are a minute away, so that no test meets one unasked."""
    return {"max_attempts": 3, "backoff": {"base": "60s", "factor": 2, "cap": "10m", "jitter": 0}}


class Shell:
    """A folder with qd.yaml and a module of handlers.

    Args:
        database: the section of that name.
    """

    def __init__(self, folder: Path, database: dict[str, Any], **sections: Any) -> None:
        self.folder = folder
        self.config = folder / "qd.yaml"
        (folder / "shell_handlers.py").write_text(HANDLERS)
        config: dict[str, Any] = {
            "database": database,
            "handlers": {"modules": ["shell_handlers"]},
            "queues": {"default": policy(), "mails": policy()},
            "workers": [{"queues": ["mails", "default"]}],
            **sections,
        }
        self.config.write_text(yaml.safe_dump(config, sort_keys=False))
        self.config.chmod(0o600)

    def command(self, *args: object) -> list[str]:
        """The argv of a verb."""
        return [sys.executable, "-m", "qd", *map(str, args)]

    def environment(self) -> dict[str, str]:
        """A plain environment, with the configuration named."""
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("QD_", "NOTIFY_"))}
        return {**plain, "QD_CONFIG": str(self.config), "PYTHONPATH": str(ROOT)}

    def qd(self, *args: object, input: str = "", timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Runs a verb to its end; stdin is no terminal."""
        return subprocess.run(
            self.command(*args), input=input, capture_output=True, text=True, timeout=timeout,
            cwd=self.folder, env=self.environment(),
        )  # fmt: skip

    def ok(self, *args: object, input: str = "") -> str:
        """The stdout of a verb that must exit 0."""
        ended = self.qd(*args, input=input)
        assert ended.returncode == 0, f"{args}: {ended.returncode}: {ended.stderr}{ended.stdout}"
        return ended.stdout

    def start(self, *args: object, **more: Any) -> subprocess.Popen[str]:
        """Starts a verb; the caller ends it."""
        return subprocess.Popen(self.command(*args), text=True, cwd=self.folder, env=self.environment(), **more)


class ServerShell(Shell):
    """A shell on a database of a server, as the daemon's account of docs/grants.sql."""

    def __init__(self, folder: Path, server: Server, name: str, **sections: Any) -> None:
        self.server, self.name = server, name
        super().__init__(folder, section(server.config(name)), **sections)

    def sql(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """A statement by a stranger, committed."""
        return self.server.run(sql, params, self.name)

    def count(self) -> int:
        """Jobs, posts left out."""
        return int(self.sql("SELECT COUNT(*) FROM qd_jobs WHERE type <> 'qd.post'")[0][0])


def section(config: DatabaseConfig) -> dict[str, Any]:
    """The `database` section of a configuration file."""
    return {
        "host": config.host, "port": config.port, "name": config.name, "user": config.user,
        "password": str(config.password), "connect_timeout": "2s", "statement_timeout": "5s",
    }  # fmt: skip
