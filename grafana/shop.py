"""A small shop whose jobs the dashboard is tried and drawn with: they end as their payload says.

Its configuration has workers with threads and with child processes, so that every outcome can be had. May import: qd.
"""

from __future__ import annotations

import os
import time
from typing import Any

import qd

CONFIG: dict[str, Any] = {
    "handlers": {"modules": ["grafana.shop"]},
    "queues": {
        "mails": {"lease": "9s", "timeout": "30s", "backoff": {"base": "3s", "cap": "10s"}},
        "webhooks": {"lease": "9s", "timeout": "3s", "max_attempts": 2, "backoff": {"base": "2s", "cap": "5s"}},
        "images": {"lease": "9s", "timeout": "30s", "backoff": {"base": "1s", "cap": "5s"}},
        "reports": {"lease": "9s", "timeout": "5m"},
    },
    "workers": [
        {"name": "quick", "queues": ["mails", "webhooks"], "threads": 4},
        {"name": "images", "queues": ["images"], "threads": 2, "executor": "process"},
        {"name": "reports", "queues": ["reports"], "threads": 2},
    ],
}


def _end(job: qd.Job) -> None:
    """Takes `seconds`, in steps between which a time-out can stop it, then ends as `ends` says; without it, well."""
    until = time.monotonic() + job.payload.get("seconds", 0)
    while time.monotonic() < until:
        time.sleep(0.02)
    ends = job.payload.get("ends")
    if ends == "reject":
        raise qd.Reject("no such customer")
    if ends == "snooze" and job.enqueued_at.timestamp() > time.time() - 2:
        raise qd.Snooze(2)
    if ends == "crash":
        os._exit(9)
    if ends == "fail" or (ends == "fail once" and job.attempt == 1):
        raise ConnectionError("the other side doesn't answer")


@qd.handler("send_mail", queues=["mails"])
def send_mail(job: qd.Job) -> None:
    _end(job)


@qd.handler("call_webhook", queues=["webhooks"])
def call_webhook(job: qd.Job) -> None:
    _end(job)


@qd.handler("resize_image", queues=["images"])
def resize_image(job: qd.Job) -> None:
    _end(job)


@qd.handler("build_report", queues=["reports"])
def build_report(job: qd.Job) -> None:
    _end(job)
