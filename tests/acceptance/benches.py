"""Real `qd bench` processes, and what they leave: rows, processes, folders."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.server import ROOT

QUICK = ("--jobs", "60", "--rounds", "1", "--pickups", "0", "--yes")
"""A bench of a moment."""

LONG = ("--jobs", "5000", "--rounds", "20", "--pickups", "0", "--threads", "1", "--batch", "1", "--yes")
"""One that is still in its first round whenever a test interferes: one job at a time takes seconds anywhere."""

DAEMON = "qd/bench/start_daemon.py"
"""What the command line of a bench's daemon has in it."""


def daemons(queue: str = "qd.bench.") -> list[int]:
    """The process ids of benches' daemons, by their queue."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended meanwhile
            continue
        if any(word.endswith(DAEMON) for word in words) and any(word.startswith(queue) for word in words):
            found.append(int(entry.parent.name))
    return found


def queue_of(said: str) -> str:
    """The queue that a bench has told of."""
    named = re.search(r"queue (qd\.bench\.[0-9a-f]+)", said)
    assert named is not None, said
    return named[1]


def documented() -> dict[str, Any]:
    """The JSON that the page shows."""
    page = (ROOT / "docs" / "cli.md").read_text()
    shown = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    made: dict[str, Any] = json.loads(shown[1])
    return made


def keys(value: Any, path: str = "") -> set[str]:
    """All keys of nested objects, dotted."""
    if not isinstance(value, dict):
        return set()
    return {name for key in value for name in ({f"{path}{key}"} | keys(value[key], f"{path}{key}."))}


def told_first(process: subprocess.Popen[str]) -> str:
    """The queue of a running bench, from the line that says what it will do."""
    assert process.stderr is not None
    return queue_of(process.stderr.readline())


def environment_of(pid: int) -> str:
    """The environment of a process, one variable a line; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().replace(b"\0", b"\n").decode(errors="replace")
    except OSError:
        return ""


def command_of(pid: int) -> str:
    """The command line of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    children: list[int] = []
    with suppress(OSError):  # it has ended meanwhile, or one of its threads has
        for task in os.listdir(f"/proc/{pid}/task"):
            children += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return [*children, *(grand for child in children for grand in descendants(child))]


def in_folder(folder: Path) -> str:
    """All that the files below a folder hold."""
    files = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    return "".join(file.read_text(errors="replace") for file in files if file.is_file())
