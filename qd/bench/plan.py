"""What a bench is to do, and the configuration of the daemons that it does it with.

May import: config, the pure modules. Owns: the names of the queue and the type.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Literal

from qd.config.model import (
    DAY,
    Config,
    DatabaseConfig,
    HandlersConfig,
    HttpConfig,
    QueueConfig,
    RetentionConfig,
    ShutdownConfig,
    WorkerConfig,
)
from qd.job import NewJob, OwnType

TYPE = OwnType("qd.bench")
"""The type of all jobs of a bench; only its own daemons have a handler for it."""

QUEUES = "qd.bench."
"""How the names of benches' queues begin: no configuration may serve one."""

AT_MOST_SINGLY = 1000
"""Jobs of a round that are enqueued one by one: each waits for the server's disk."""

BATCH = 100
"""Jobs that a claim asks for, while claims are looked at closely, where the plan leaves it to the daemon."""

EXAMINED = 1000
"""Jobs that wait meanwhile, at least."""

AT_MOST_WARMED = 50
"""Threads of an idle daemon that open their connections before its jobs count."""

ROWS_BESIDE = 40
"""Rows beside the jobs: the daemons', the posts', and those that the ways of claiming are tried on."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for.

    Attributes:
        jobs: of one round.
        rounds: of enqueuing and draining so many.
        pickups: jobs put one at a time into an idle daemon, in each of two ways; 0: none.
        threads: of each daemon.
        daemons: that drain side by side.
        queue: where all of its jobs are.
    """

    jobs: int = 10_000
    rounds: int = 3
    pickups: int = 20
    threads: int = 4
    batch: Literal["auto"] | int = "auto"
    daemons: int = 1
    executor: Literal["thread", "process"] = "thread"
    queue: str = field(default_factory=lambda: QUEUES + secrets.token_hex(4))

    @property
    def singly(self) -> int:
        """Jobs of a round that are enqueued one by one; the others are in bulk."""
        return max(1, min(AT_MOST_SINGLY, self.jobs // 10))

    @property
    def at_once(self) -> int:
        """Jobs that one claim asks for at most."""
        return BATCH if self.batch == "auto" else self.batch

    @property
    def backlog(self) -> int:
        """Jobs that wait while claims are looked at closely."""
        return max(EXAMINED, 8 * self.at_once)

    @property
    def warming(self) -> int:
        """Jobs that are put into an idle daemon before those that count: its threads open their connections."""
        return 2 * min(self.threads, AT_MOST_WARMED) if self.pickups else 0

    @property
    def rows(self) -> int:
        """Rows that it writes and removes, in all and at most."""
        return self.rounds * self.jobs + self.warming + 2 * self.pickups + self.backlog + ROWS_BESIDE

    def job(self) -> NewJob:
        """One of its jobs: without a payload, due at once."""
        return NewJob(TYPE, queue=self.queue)


def daemon_config(database: DatabaseConfig, plan: Plan) -> Config:
    """The configuration of a daemon of the bench: as shipped, but for what the plan says and what mustn't disturb.

    It never purges anybody's dead letters (they are kept for the longest time there is), and has a port of
    its own. The queue's name is refused in everybody's configuration, so it is put in past the model's checks.
    """
    lease = max(QueueConfig().lease, 3 * database.statement_timeout)
    worker = WorkerConfig(threads=plan.threads, executor=plan.executor)
    queues = {plan.queue: QueueConfig(lease=lease)}
    config = Config(
        database=database,
        handlers=HandlersConfig(modules=("qd.bench.noop",)),
        batch=plan.batch,
        http=HttpConfig(listen="127.0.0.1:0"),
        shutdown=ShutdownConfig(grace=1.0),
        retention=RetentionConfig(failed=3650 * DAY),
    )
    workers = (worker.model_copy(update={"queues": (plan.queue,)}),)
    return config.model_copy(update={"queues": queues, "workers": workers})
