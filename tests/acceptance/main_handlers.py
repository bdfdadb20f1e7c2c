"""Handlers of the main acceptance test: each run leaves `id start` and, if it ends well, `id end` in $LEDGER."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import wraps

import qd


def noted(function: Callable[[qd.Job], None]) -> Callable[[qd.Job], None]:
    """Registers a handler under its own name, its runs written down."""

    @wraps(function)
    def run(job: qd.Job) -> None:
        note(f"{job.id} start {job.attempt} {time.time():.6f} {job.token}")
        function(job)
        note(f"{job.id} end {job.attempt} {time.time():.6f} {job.token}")

    return qd.handler(function.__name__)(run)


def note(line: str) -> None:
    """Appends a line in one write, so that several daemons' lines don't mix."""
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, f"{line}\n".encode())
    os.close(ledger)


@noted
def quick(job: qd.Job) -> None:
    """Does nothing."""


@noted
def brief(job: qd.Job) -> None:
    """Takes a few milliseconds."""
    time.sleep(job.id % 5 / 1000)


@noted
def at_third(job: qd.Job) -> None:
    """Succeeds at its third attempt."""
    if job.attempt < 3:
        raise ValueError(f"attempt {job.attempt} is too early")


@noted
def never(job: qd.Job) -> None:
    """Always fails."""
    raise RuntimeError("never works")


@noted
def refused(job: qd.Job) -> None:
    """Is rejected."""
    raise qd.Reject("no such customer")


@noted
def snoozed(job: qd.Job) -> None:
    """Snoozes until its time has come."""
    if time.time() < job.payload["until"]:
        raise qd.Snooze(0.3)
