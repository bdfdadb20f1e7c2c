"""What a measured `qd run` loads as its handlers' module: handlers, and on wish a watch on the store's dear calls.

STAMPS names the file to which the handler `stamp` appends its job's id and its own first moment. CALLS, where it is
set, names the one that each full look, sweep and count of the rows is written to. Moments are nanoseconds of
CLOCK_MONOTONIC, which all processes of a machine share. Nothing else of qd is changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import qd
from qd.store.store import SqlStore

_files: dict[str, int] = {}


def note(variable: str, line: str) -> None:
    """Appends a line, in one write, to the file that an environment variable names."""
    if variable not in _files:
        _files[variable] = os.open(os.environ[variable], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(_files[variable], line.encode())


@qd.handler("stamp")
def stamp(job: qd.Job) -> None:
    """Notes when it began."""
    note("STAMPS", f"{job.id} {time.monotonic_ns()}\n")


@qd.handler("noop")
def noop(job: qd.Job) -> None:
    """Does nothing."""


def _watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def watched(self: SqlStore, *args: Any, **more: Any) -> Any:
        began = time.monotonic_ns()
        try:
            return call(self, *args, **more)
        finally:
            which = ("full_look" if more.get("full") else "quick_look") if name == "look" else name
            note("CALLS", f"{which} {began} {time.monotonic_ns()}\n")

    return watched


if "CALLS" in os.environ:
    for _name in ("look", "stale", "count"):
        setattr(SqlStore, _name, _watched(_name, getattr(SqlStore, _name)))
