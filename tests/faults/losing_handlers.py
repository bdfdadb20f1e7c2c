"""Handlers that wait until their lease is lost, and then do what they shouldn't."""

from __future__ import annotations

import os

import qd

_ledger = os.open(os.environ.get("LEDGER", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def _until_lost(job: qd.Job) -> None:
    os.write(_ledger, f"{job.id} start\n".encode())
    if job.lost.wait(job.remaining()):
        os.write(_ledger, f"{job.id} lost\n".encode())


@qd.handler("returns")
def returns(job: qd.Job) -> str:
    """As if nothing had been."""
    _until_lost(job)
    return "done"


@qd.handler("fails")
def fails(job: qd.Job) -> None:
    """As a handler does that gives up."""
    _until_lost(job)
    raise qd.LeaseLost("gave up")


@qd.handler("rejects")
def rejects(job: qd.Job) -> None:
    """It would be a dead letter."""
    _until_lost(job)
    raise qd.Reject("no good")


@qd.handler("snoozes")
def snoozes(job: qd.Job) -> None:
    """It would give the attempt back."""
    _until_lost(job)
    raise qd.Snooze(60)
