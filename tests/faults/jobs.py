"""What the jobs of the fault tests are asked to do, and how they are put in."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from tests.support.server import Server

QUEUES = {"urgent": 4, "default": 3, "once": 1, "boxed": 3, "risky": 3}
"""The most attempts that each queue allows. `boxed` runs in child processes; `risky` in threads, also of what
ends the whole daemon."""

BOXED = {"timeout": "9s", "memory": "300MiB"}
"""More of that queue's policy."""

LEASE = 6.0
"""Seconds, in every queue."""

HARMLESS_POISON = ("raise", "interrupt", "sys.exit")
"""What a handler's thread survives."""

DEADLY_POISON = ("os._exit", "segfault", "kill")
"""What ends the process that it runs in."""

BOXED_POISON = (*DEADLY_POISON, "memory")
"""What a process is needed for; besides these `hang`, which can only be killed."""


@dataclass(frozen=True)
class NewJob:
    """What a job is to do, and may do; `max_attempts` None: what its queue allows."""

    seconds: float = 0.0
    failures: int = 0
    queue: str = "default"
    priority: int = 2
    max_attempts: int | None = None
    type: str = "work"
    does: str = ""

    def payload(self) -> str:
        return json.dumps({"seconds": self.seconds, "failures": self.failures, "does": self.does})


def some_job(rng: random.Random, long: float = 0.05) -> NewJob:
    """Most are quick and succeed; a few fail once or always, or are poison.

    Args:
        long: the share of those that take seconds, half of them longer than their lease.
    """
    kind = rng.choice(["work"] * 16 + ["work_async", "work_snooze", "work_complete", "command", "poison"])
    quick = [0.0] * 12 + [0.02] * 6 + [0.3] * 5 + [1.0] * 2
    return NewJob(
        seconds=rng.choice([2.5, LEASE + 1]) if rng.random() < long else rng.choice(quick),
        failures=rng.choice([0] * 16 + [1, 1, 9]),
        queue=rng.choice(["default", "default", "once", "urgent", "boxed", "risky"]),
        priority=rng.choice([0, 2, 2, 3]),
        max_attempts=rng.choice([None, None, None, 1, 2]),
        type=kind,
        does=rng.choice(HARMLESS_POISON) if kind == "poison" else "",
    )


def put(server: Server, database: str, jobs: Sequence[NewJob]) -> list[int]:
    """Puts jobs in by plain SQL, committed together; their ids.

    The audit tells which jobs there are, so a COMMIT whose answer is lost puts nothing out of step.
    """
    insert = "INSERT INTO qd_jobs (queue, type, payload, priority, max_attempts) VALUES (%s, %s, %s, %s, %s)"
    ids = []
    with closing(server.connect(database, autocommit=False)) as connection:
        with closing(connection.cursor()) as cursor:
            for job in jobs:
                cursor.execute(insert, (job.queue, job.type, job.payload(), job.priority, job.max_attempts))
                ids.append(int(cursor.lastrowid))
        connection.commit()
    return ids
