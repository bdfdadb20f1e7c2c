"""qd: a job queue in the MySQL or MariaDB that you already run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qd.errors import BadInput, ConfigError, HandlerError, LeaseLost, NotFound, QdError, Refused, StoreError
from qd.job import Job, NewJob
from qd.outcome import JobInterrupted, JobTimeout, Reject, Retry, Snooze
from qd.registry import handler

if TYPE_CHECKING:
    from qd.client import Client
    from qd.store.enqueue import enqueue, enqueue_many
    from qd.waking import wake

__version__ = "1.0.0"

__all__ = [
    "BadInput", "Client", "ConfigError", "HandlerError", "Job", "JobInterrupted", "JobTimeout",
    "LeaseLost", "NewJob", "NotFound", "QdError", "Refused", "Reject", "Retry", "Snooze",
    "StoreError", "enqueue", "enqueue_many", "handler", "wake",
]  # fmt: skip

_LAZY = {
    "Client": "qd.client",
    "enqueue": "qd.store.enqueue",
    "enqueue_many": "qd.store.enqueue",
    "wake": "qd.waking",
}


def __getattr__(name: str) -> Any:
    """Loads the heavier parts at their first use: a handler module needs none of them."""
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'qd' has no attribute {name!r}")
