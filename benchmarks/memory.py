"""What a daemon with 16 threads needs while a million no-op jobs pass through it.

The jobs are there before it starts. Its memory is read from the kernel after its READY and when 10, 50 and 100 % of
them are done, by its own counters, which are read a few times a second, as a Prometheus would more rarely.
`python -m benchmarks.memory --scale 0.05` runs it alone.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from contextlib import closing

from benchmarks.alone import alone
from benchmarks.measured import Measured, Plan, of_rounds
from benchmarks.members import OWN, running, title
from benchmarks.procfs import memory
from benchmarks.shipped import daemon
from tests.support.daemon import Daemon
from tests.support.private import PrivateServer

JOBS, THREADS = 1_000_000, 16
LOOKS = {"at10": 0.1, "at50": 0.5, "at100": 1.0}
"""By the name in the keys: the share of the jobs that is done."""

STALLED = 120.0
"""Seconds without a finished job that end the section."""

DONE = re.compile(r'^qd_job_attempts_total\{[^}]*outcome="succeeded"[^}]*\} (\S+)$', re.MULTILINE)

ROWS = 10_000
"""Of one statement of the filling."""


def measure(plan: Plan) -> list[Measured]:
    """`memory.peak`, `memory.growth` from 10 % of the jobs to the last, and what there was in between, in MiB."""
    taken: dict[str, list[float]] = defaultdict(list)
    count = plan.jobs(JOBS)
    with running(OWN) as server:
        for number in range(plan.rounds):
            plan.say(f"memory on {title(server)}: {count:,} jobs, round {number + 1} of {plan.rounds}")
            for name, value in _passed(server, count).items():
                taken[name].append(value)
    said = f"{THREADS} threads, {count:,} no-op jobs"
    notes = {"peak": f"VmHWM; {said}", "growth": "VmRSS when all are done, less that at 10 %"}
    return [of_rounds(f"memory.{name}", rounds, "MiB", notes.get(name, "VmRSS")) for name, rounds in taken.items()]


def _passed(server: PrivateServer, count: int) -> dict[str, float]:
    database = server.new_database()
    _fill(server, database, count)
    seen: dict[str, float] = {}
    workers = [{"queues": ["default"], "threads": THREADS}]
    with daemon(server, database, queues=("default",), workers=workers) as running:
        pid = running.process.pid
        seen["start"] = memory(pid)["VmRSS"]
        for name, share in LOOKS.items():
            _wait(running, share * count)
            seen[name] = memory(pid)["VmRSS"]
        seen["peak"] = memory(pid)["VmHWM"]
    server.drop_database(database)
    return {"peak": seen.pop("peak"), "growth": seen["at100"] - seen["at10"], **seen}


def _fill(server: PrivateServer, database: str, count: int) -> None:
    with closing(server.connect(database)) as connection, closing(connection.cursor()) as cursor:
        for first in range(0, count, ROWS):
            rows = min(ROWS, count - first)
            cursor.execute("INSERT INTO qd_jobs (type) VALUES " + ", ".join(["('noop')"] * rows))
            connection.commit()


def _wait(running: Daemon, wanted: float) -> None:
    """Until so many are done.

    Raises:
        RuntimeError: nothing moves any more.
    """
    done, moved = -1.0, time.monotonic()
    while done < wanted:
        now = sum(float(value) for value in DONE.findall(running.get("/metrics")[1]))
        if now > done:
            done, moved = now, time.monotonic()
        if time.monotonic() - moved > STALLED:
            raise RuntimeError(f"{done:,.0f} jobs were done {STALLED:g} s ago, and none since")
        time.sleep(0.2)


if __name__ == "__main__":
    alone(measure)
