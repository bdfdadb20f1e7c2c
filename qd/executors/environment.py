"""What programs and children see of the daemon's environment. Owns the list of what they don't.

May import: job.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, MutableMapping

from qd.job import Job

_OF_THE_MANAGER = re.compile(r"(NOTIFY|WATCHDOG|LISTEN|CREDENTIALS)_.*")
_SECRET = re.compile(r"QD_.*(PASSWORD|SECRET|CREDENTIAL).*")
_hidden: frozenset[str] = frozenset()

PART = 6
"""Characters from which on a value that is a part of a secret is kept back too: `${USER}` in a
password mustn't take `LANG=C` from every program."""


def scrub(environ: MutableMapping[str, str]) -> None:
    """Removes what systemd meant for the daemon alone (NOTIFY_*, WATCHDOG_*, LISTEN_*, CREDENTIALS_*).

    For the daemon's start, once it has read them: no program that a handler starts may speak for
    the daemon, feed its watchdog or take its sockets.
    """
    for name in [name for name in environ if _OF_THE_MANAGER.fullmatch(name)]:
        del environ[name]


def hide(secrets: Iterable[str | None]) -> None:
    """Keeps variables that hold one of these values, or a good part of one, from command handlers and children.

    For each engine's start, with the password that `${NAME}` brought into the configuration: the
    variable must stay for the next reload, but no program needs to see it.
    """
    global _hidden
    _hidden |= {secret for secret in secrets if secret}


def for_child() -> dict[str, str]:
    """The environment of a child that runs Python handlers: the daemon's without its secrets."""
    return {
        name: value
        for name in list(os.environ)
        if (value := os.environ.get(name)) is not None and _is_shown(name, value)
    }


def for_command(job: Job) -> dict[str, str]:
    """The environment of a command handler: the daemon's without its secrets, and the job's QD_* variables."""
    environ = for_child()
    environ.update(
        QD_JOB_ID=str(job.id),
        QD_JOB_TYPE=job.type,
        QD_QUEUE=job.queue,
        QD_ATTEMPT=str(job.attempt),
        QD_MAX_ATTEMPTS=str(job.max_attempts),
        QD_TOKEN=job.token,
    )
    return environ


def _is_shown(name: str, value: str) -> bool:
    return not (_OF_THE_MANAGER.fullmatch(name) or _SECRET.fullmatch(name) or _is_hidden(value))


def _is_hidden(value: str) -> bool:
    return value in _hidden or (len(value) >= PART and any(value in secret for secret in _hidden))
