"""How soon a job is picked up in a steady trickle of producers that commit late.

A real daemon with the default polls, and 8 producer processes: each INSERTs, waits for 1 to 100 ms, and commits; half
of them write `available_at = NOW()`, whole seconds. Pickup is the time from right before the producer sends its COMMIT
to the handler's first line, both by CLOCK_MONOTONIC, which all processes share. That is the strict one of the two
moments that a producer knows: what its COMMIT itself took counts as pickup.
`python -m benchmarks.trickle --scale 0.05 --servers mariadb` runs it alone.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.alone import alone
from benchmarks.measured import Measured, Plan, of_rounds
from benchmarks.members import running, title
from benchmarks.producer import Produced, produce
from benchmarks.seen import percentile
from benchmarks.shipped import daemon
from benchmarks.subject import QUEUE, Subject
from tests.support.private import PrivateServer
from tests.support.waiting import wait_for

PRODUCERS = 8

SECONDS, LEAST_SECONDS = 60.0, 5.0
"""How long the trickle flows, by the scale."""

LATEST = 60.0
"""Seconds after which a job that hasn't been run counts as lost."""


def measure(plan: Plan) -> list[Measured]:
    """Pickup p50, p99 and maximum on every server of the plan; every committed job must have been run."""
    return [one for name in plan.servers for one in _on_server(plan, name)]


def _on_server(plan: Plan, name: str) -> Iterator[Measured]:
    rounds: list[list[float]] = []
    note = ""
    with running(name) as server:
        for number in range(plan.rounds):
            plan.say(f"trickle on {title(server)}: round {number + 1} of {plan.rounds}")
            seconds = max(LEAST_SECONDS, SECONDS * plan.scale)
            produced, began = _flow(server, seconds)
            rounds.append([(began[job.id] - job.sent) / 1e6 for job in produced])
            commit = median(job.answered - job.sent for job in produced) / 1e6
            note = f"{len(produced) / seconds:.0f} jobs/s, none lost; a producer's COMMIT is {commit:.1f} ms of it"
    for part, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        yield of_rounds(f"trickle.{name}.{part}", [percentile(one, share) for one in rounds], "ms", note)


def _flow(server: PrivateServer, seconds: float) -> tuple[list[Produced], dict[int, int]]:
    """What was produced, and when each job's handler began.

    Raises:
        AssertionError: a job was lost, or run twice.
    """
    subject = Subject(server)
    with tempfile.TemporaryDirectory(prefix="qd-bench-") as folder:
        file = Path(folder) / "stamps"
        file.touch()
        with daemon(server, subject.config.name, STAMPS=str(file)):
            produced = _produced(server, subject, seconds)
            wait_for(lambda: len(_stamps(file)) >= len(produced), LATEST, f"{len(produced)} jobs to be run")
        stamps = _stamps(file)
    subject.close()
    assert sorted(id for id, _ in stamps) == sorted(job.id for job in produced), "jobs that were lost, or run twice"
    return produced, dict(stamps)


def _stamps(file: Path) -> list[tuple[int, int]]:
    return [(int(id), int(began)) for id, began in map(str.split, file.read_text().splitlines())]


def _produced(server: PrivateServer, subject: Subject, seconds: float) -> list[Produced]:
    shop = server.config(subject.config.name, "shop")
    login = {"host": shop.host, "port": shop.port, "database": shop.name, "user": shop.user, "password": shop.password}
    spawn = multiprocessing.get_context("spawn")  # nothing of this process is shared
    with spawn.Pool(PRODUCERS) as pool:
        asked = [(login, QUEUE, number, seconds) for number in range(PRODUCERS)]
        return [job for some in pool.starmap(produce, asked, chunksize=1) for job in some]


if __name__ == "__main__":
    alone(measure)
