"""The handler of the fault tests: it does what its payload says, and writes down when it begins and ends."""

from __future__ import annotations

import os
import time

import qd

_ledger = os.open(os.environ.get("LEDGER", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(job: qd.Job, what: str) -> None:
    """A line in one write: job, what, attempt, token."""
    os.write(_ledger, f"{job.id} {what} {job.attempt} {job.token}\n".encode())


@qd.handler("work")
def work(job: qd.Job) -> None:
    """Works for `seconds`; fails in its first `failures` attempts."""
    note(job, "start")
    end = time.monotonic() + job.payload["seconds"]
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.05))
    if job.attempt <= job.payload["failures"]:
        note(job, "fail")
        raise ValueError("as it was told")
    note(job, "end")
