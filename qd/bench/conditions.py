"""Under which conditions a bench runs: looked up before it begins. May import: store, config, errors, the result."""

from __future__ import annotations

import os
import platform
from contextlib import suppress

from qd.bench.result import Conditions
from qd.config import is_loopback
from qd.config.model import DatabaseConfig, PollConfig
from qd.errors import SetupWrong
from qd.store.protocol import FullStore, ServerInfo
from qd.version import __version__


def observe(database: DatabaseConfig, info: ServerInfo, store: FullStore) -> Conditions:
    """The conditions as they are now.

    Args:
        info: of a database that was checked.
    """
    depths, poll = store.depths(), PollConfig()
    return Conditions(
        qd=__version__,
        python=platform.python_version(),
        server=info.server,
        connector=info.connector,
        claim_path=info.claim_path.value if info.claim_path else "unknown",
        place=database.place,
        local=is_local(database),
        settings=store.settings(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        load=_load(),
        jobs_before=sum(depth.jobs for depth in depths),
        failed_before=sum(depth.failed for depth in depths),
        poll=(poll.min, poll.max),
    )


def refuse_without_rights(store: FullStore) -> None:
    """Raises SetupWrong where the account lacks a right: jobs would be written that nothing could run or remove."""
    for finding in store.inspect():
        if finding.what == "grants" and finding.level == "FAIL":
            raise SetupWrong(f"the account of `database:` can't run a bench; its rights: {finding.detail}")


def is_local(database: DatabaseConfig) -> bool:
    """Whether it is on this machine, as far as its address tells: a tunnel's end is here too."""
    return database.driver == "sqlite" or database.unix_socket is not None or is_loopback(database.host)


def _load() -> tuple[float, ...]:
    with suppress(OSError):
        return os.getloadavg()
    return ()
