"""The demo's ledger: one line per completed job, appended and never overwritten.

So a job that ran to its end twice stands there twice, which a keyed table would hide. Lines of
several processes don't mix: each is one write to a file opened for appending. May import: job, clock.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qd.clock import monotonic
from qd.job import Job

VARIABLE = "QD_DEMO_LEDGER"
"""Environment variable of the daemon that holds the ledger's path."""


@dataclass(frozen=True, slots=True)
class Line:
    """One completion.

    Attributes:
        at: monotonic seconds of this machine, or None where a program wrote the line.
        file: the file's path in base64, for jobs that hash one.
    """

    type: str
    job: int
    attempt: int
    at: float | None = None
    file: str | None = None
    sha256: str | None = None
    size: int | None = None


def record(job: Job, **facts: Any) -> None:
    """Adds a line for a job that is done."""
    line = {"type": job.type, "job": job.id, "attempt": job.attempt, "at": monotonic(), **facts}
    file = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


def read(path: Path) -> list[Line]:
    """All lines, in the order in which they were written."""
    if not path.exists():
        return []
    return [Line(**json.loads(line)) for line in path.read_text().splitlines()]
