"""Handlers that end in every way that the metrics tell apart, for `executor: process`."""

from __future__ import annotations

import os
import signal
import time

import qd


@qd.handler("end")
def end(job: qd.Job) -> None:
    """Ends as the payload's `how` says, or takes its `seconds` and succeeds."""
    how = job.payload.get("how")
    if how == "reject":
        raise qd.Reject("never")
    if how == "snooze":
        raise qd.Snooze(600)
    if how == "later" and job.attempt == 1:
        raise qd.Retry(after=3)
    if how == "fail":
        raise ValueError("no luck")
    if how == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(job.payload.get("seconds", 0))


@qd.handler("other")
def other(job: qd.Job) -> None:
    """Does nothing."""
