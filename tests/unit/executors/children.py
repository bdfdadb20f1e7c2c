"""Children for the tests, and attempts in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qd.events import Events
from qd.executors import Attempt, Child, Children, Place
from qd.outcome import Outcome
from qd.payload import encode
from qd.registry import Handler
from tests.support.waiting import wait_for
from tests.unit.executors.jobs import Running, job

MODULE = "tests.unit.executors.child_handlers"


def nothing() -> None:
    """No pulse to keep."""


def new_child(*modules: str) -> Child:
    """A child that knows the handlers."""
    children = Children(modules or [MODULE], None, Events())
    child = children.start("test", nothing)
    assert child is not None, children.problem
    return child


_spare: list[Child] = []
"""Kept for the next test, since a start takes a second on a busy machine; it ends with this process."""


@contextmanager
def a_child() -> Iterator[Child]:
    """A child; after the test it is killed unless it is as good as new."""
    child = _spare.pop() if _spare else new_child()
    try:
        yield child
    finally:
        if child.fit() and not _spare:
            _spare.append(child)
        else:
            child.kill()


def attempt_in(
    child: Child, type: str, payload: Any = None, *, lease: float = 30.0, memory: int | None = None,
    kill_grace: float = 20.0, **fields: Any,
) -> Attempt:  # fmt: skip
    """An attempt at a job of this type."""
    made = job(type=type, **fields)
    handler = Handler(type, function=lambda job: "never run here")
    return Attempt(made, handler, encode(payload), kill_grace=kill_grace, place=Place(child, lease, memory))


def run_in(child: Child, type: str, payload: Any = None, **options: Any) -> Outcome:
    """Runs it to its end."""
    return attempt_in(child, type, payload, **options).run()


def started(child: Child, type: str, inside: Path, payload: dict[str, Any] | None = None, **options: Any) -> Running:
    """Runs it in a thread and waits until the handler says that it is inside."""
    running = Running(attempt_in(child, type, {"inside": str(inside), **(payload or {})}, **options))
    wait_for(inside.exists, 20, "the handler to begin")
    return running


def open_files() -> int:
    """Descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
