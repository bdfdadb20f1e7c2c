"""A configuration on a fresh SQLite file, and the command line run on it in this process."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from qd.cli.root import cli

NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now', '{:+.3f} seconds')"


class Shop:
    """A folder with qd.yaml and a migrated SQLite file.

    Args:
        extra: further YAML for the configuration.
    """

    def __init__(self, folder: Path, extra: str = "") -> None:
        self.folder, self.database = folder, folder / "qd.sqlite3"
        self.config = folder / "qd.yaml"
        self.config.write_text(
            f"database: {{driver: sqlite, path: {self.database}}}\n"
            "queues: {default: {}, mails: {max_attempts: 5}}\n"
            f"workers: [{{queues: [mails, default]}}]\n{extra}"
        )
        self.ok("migrate")

    def qd(self, *args: str, input: str | None = None) -> Result:
        """Runs a verb; stdin is no terminal."""
        return CliRunner().invoke(cli, ["--config", str(self.config), *args], input=input)

    def ok(self, *args: str, input: str | None = None) -> str:
        """The stdout of a verb that must exit 0."""
        result = self.qd(*args, input=input)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *args: str) -> Any:
        """The JSON that a verb prints."""
        return json.loads(self.ok(*args, "--json"))

    def sql(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """A statement by a stranger, committed."""
        with closing(sqlite3.connect(self.database, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # this test's rows needn't survive a power cut
            return connection.execute(sql, params).fetchall()

    def job(self, state: str = "ready", **columns: Any) -> int:
        """Inserts a job in a state; its id."""
        lane, due = {"ready": (0, -10), "delayed": (0, 600), "reserved": (1, 60), "stale": (1, -10)}[state]
        values = {"type": "send", "lane": lane, "reserved_by": "web1:7:x:w:1" if lane else None, **columns}
        return self._insert("qd_jobs", values, {"available_at": due})

    def dead(self, failed: float = -10, **columns: Any) -> int:
        """Inserts a dead letter; its own id."""
        values = {"job_id": 500, "queue": "default", "type": "send", "payload": "{}", "priority": 2, "attempts": 3,
                  "reason": "error", "error": "boom", **columns}  # fmt: skip
        return self._insert("qd_failed_jobs", values, {"failed_at": failed})

    def ids(self, table: str = "qd_jobs") -> list[int]:
        """All ids of a table."""
        return [row[0] for row in self.sql(f"SELECT id FROM {table} ORDER BY id")]

    def _insert(self, table: str, values: dict[str, Any], moments: dict[str, float]) -> int:
        columns = ", ".join([*values, *moments])
        made = ", ".join(["?"] * len(values) + [NOW.format(seconds) for seconds in moments.values()])
        sql = f"INSERT INTO {table} ({columns}) VALUES ({made}) RETURNING id"
        return int(self.sql(sql, *values.values())[0][0])
