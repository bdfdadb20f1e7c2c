"""Jobs and attempts for the executors' tests, without a row behind them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from qd.clock import monotonic
from qd.executors import Attempt
from qd.job import Job
from qd.outcome import Outcome
from qd.registry import Handler


def job(timeout: float = 60.0, **fields: Any) -> Job:
    """A job that times out in so many seconds."""
    values: dict[str, Any] = {
        "id": 7,
        "queue": "mails",
        "type": "send_email",
        "payload": {"to": 7},
        "attempt": 2,
        "max_attempts": 3,
        "priority": 2,
        "enqueued_at": datetime(2024, 5, 1, tzinfo=timezone.utc),
        "token": "host:1:nonce:worker:1",
        "deadline": monotonic() + timeout,
        "finish": lambda cursor, job: True,
    }
    return Job(**{**values, **fields})


def attempt(function: Callable[[Job], Any], timeout: float = 60.0, kill_grace: float = 5.0) -> Attempt:
    """An attempt at a Python handler."""
    return Attempt(job(timeout), Handler("send_email", function=function), kill_grace=kill_grace)


def command(*argv: str, payload: str | bytes = b"{}", kill_grace: float = 5.0) -> Attempt:
    """An attempt at a program."""
    return Attempt(job(), Handler("send_email", argv=argv), payload, kill_grace=kill_grace)


class Running:
    """An attempt that runs in a thread of its own."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.outcome: Outcome | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.outcome = self.attempt.run()

    def ended(self, within: float = 20.0) -> Outcome:
        """Waits for its end."""
        self._thread.join(within)
        assert self.outcome is not None, f"the attempt hasn't ended within {within} s"
        return self.outcome
