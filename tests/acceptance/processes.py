"""Looking at the child processes of a daemon under test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.daemon import Daemon, Qd

HANDLERS = "tests.acceptance.process_handlers"


def in_processes(qd: Qd, threads: int = 2, *, worker: dict[str, Any] | None = None, **queue: Any) -> None:
    """Configures workers with `executor: process`; retries follow at once."""
    queues = {"default": {"lease": "6s", "timeout": "60s", "backoff": {"base": "0s", "cap": "0s"}, **queue}}
    workers = [{"queues": ["default"], "threads": threads, "executor": "process", **(worker or {})}]
    qd.write(handlers={"modules": [HANDLERS]}, queues=queues, workers=workers)


def children(daemon: Daemon) -> list[int]:
    """The pids of its living child processes."""
    return [pid for pid in _all() if _parent(pid) == daemon.process.pid and running(pid)]


def running(pid: int) -> bool:
    """Whether a process runs: it is there and no zombie."""
    return _stat(pid)[:1] not in ([], ["Z"], ["X"])


def zombies(daemon: Daemon) -> int:
    """Children of it that have ended and weren't reaped."""
    return sum(_parent(pid) == daemon.process.pid and not running(pid) for pid in _all())


def _all() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]


def _parent(pid: int) -> int:
    return int((_stat(pid) or ["", "0"])[1])


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
