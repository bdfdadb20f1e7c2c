"""What the contestants on MariaDB have in common. May import: contestant, the MariaDB backend."""

from __future__ import annotations

import os

from benchmarks.backends.backend import ROOT
from benchmarks.backends.mariadb import MariaDB
from benchmarks.peers.contestant import INSIDE, Turn

LEFT = "SELECT COUNT(*) FROM qd_jobs WHERE type <> 'qd.post'"
"""Jobs that aren't finished: a finished one's row is deleted."""


def url(backend: MariaDB, user: str = "qd") -> str:
    """Where the database is of the contestant whose turn it is, and an account of docs/grants.sql for it."""
    login = backend.server.config(backend.database, user)
    return f"mysql://{login.user}:{login.password}@{login.host}:{login.port}/{login.name}"


def own_env(backend: MariaDB, turn: Turn) -> dict[str, str]:
    """Of what runs from this checkout."""
    return turn.env(PYTHONPATH=os.pathsep.join([str(ROOT), str(INSIDE)]), BENCH_URL=url(backend))
