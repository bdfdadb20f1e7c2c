"""A real `qd run` with what qd is shipped with, logging and metrics included: only places and names are set."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.subject import QUEUES
from tests.support.daemon import Daemon, Qd
from tests.support.private import PrivateServer

HANDLERS = "benchmarks.daemon_side"


@contextmanager
def daemon(
    server: PrivateServer,
    database: str,
    *,
    queues: Sequence[str] = QUEUES,
    workers: Sequence[dict[str, Any]] = (),
    **env: str,
) -> Iterator[Daemon]:
    """One that is READY; stopped in order afterwards, and killed in any case.

    Args:
        queues: those that it knows.
        workers: as in the configuration; none: the default worker, on all of them.
        env: more for its environment, e.g. STAMPS (see `daemon_side`).
    """
    with tempfile.TemporaryDirectory(prefix="qd-") as folder:
        qd = Qd(Path(folder), server, database)
        qd.config = _shipped(qd.config, queues, workers)
        qd.write()
        more: dict[str, Any] = dict(env)
        try:
            started = qd.start(**more)
            yield started
            started.stop(60.0)
        finally:
            qd.end()


def _shipped(tests: dict[str, Any], queues: Sequence[str], workers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the tests' configuration the places, but none of their short limits."""
    place = {name: value for name, value in tests["database"].items() if not name.endswith("_timeout")}
    return {
        "database": place,
        "handlers": {"modules": [HANDLERS]},
        "queues": {queue: {} for queue in queues},
        "workers": list(workers) or [{"queues": list(queues)}],
        "http": {"listen": tests["http"]["listen"]},
    }
