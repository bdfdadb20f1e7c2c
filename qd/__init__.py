"""qd: a job queue in the MySQL or MariaDB that you already run.

Nothing is loaded before it is used: a handler module needs no database driver, and the daemon
takes its signals over before anything that takes time.
"""

from __future__ import annotations

from qd.version import __version__ as __version__

TYPE_CHECKING = False  # typing's own is dear to import
if TYPE_CHECKING:
    from typing import Any

    from qd.client import Client
    from qd.errors import BadInput, ConfigError, HandlerError, LeaseLost, NotFound, QdError, Refused, StoreError
    from qd.job import Job, NewJob
    from qd.outcome import JobInterrupted, JobTimeout, Reject, Retry, Snooze
    from qd.registry import handler
    from qd.store.callers.enqueue import enqueue, enqueue_many
    from qd.waking import wake

__all__ = [
    "BadInput", "Client", "ConfigError", "HandlerError", "Job", "JobInterrupted", "JobTimeout",
    "LeaseLost", "NewJob", "NotFound", "QdError", "Refused", "Reject", "Retry", "Snooze",
    "StoreError", "enqueue", "enqueue_many", "handler", "wake",
]  # fmt: skip

_HOME = {
    "BadInput": "qd.errors",
    "Client": "qd.client",
    "ConfigError": "qd.errors",
    "HandlerError": "qd.errors",
    "Job": "qd.job",
    "JobInterrupted": "qd.outcome",
    "JobTimeout": "qd.outcome",
    "LeaseLost": "qd.errors",
    "NewJob": "qd.job",
    "NotFound": "qd.errors",
    "QdError": "qd.errors",
    "Refused": "qd.errors",
    "Reject": "qd.outcome",
    "Retry": "qd.outcome",
    "Snooze": "qd.outcome",
    "StoreError": "qd.errors",
    "enqueue": "qd.store.callers.enqueue",
    "enqueue_many": "qd.store.callers.enqueue",
    "handler": "qd.registry",
    "wake": "qd.waking",
}


def __getattr__(name: str) -> Any:
    """Loads a public name's module at its first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'qd' has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    """The public names, for who explores."""
    return sorted([*globals(), *__all__])
