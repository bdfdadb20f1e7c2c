"""Some daemons on one database behind a proxy, and the jobs they are given."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.faults.ledger import Ledger, Wanted
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB
from tests.support.proxy import FaultProxy
from tests.support.waiting import wait_for

QUEUES = {"urgent": 4, "default": 3, "once": 1}
"""The most attempts that each queue allows."""

LEASE = 6.0
"""Seconds, in every queue."""


@dataclass(frozen=True)
class NewJob:
    """What a job is to do, and may do; `max_attempts` None: what its queue allows."""

    seconds: float = 0.0
    failures: int = 0
    queue: str = "default"
    priority: int = 2
    max_attempts: int | None = None


class Fleet:
    """One daemon for each batch size that is given.

    Attributes:
        daemons: those that run now.
    """

    def __init__(self, folder: Path, server: MariaDB, batches: Sequence[object]) -> None:
        self.server, self.database = server, server.new_database()
        self.proxy = FaultProxy(server.port)
        self.ledger = Ledger(server, self.database, folder / "ledger")
        ledger = folder / "ledger"
        self._configs = [self._config(folder / str(at), ledger, batch) for at, batch in enumerate(batches)]
        self.user = self._configs[0].user
        self.daemons: list[Daemon] = [config.start() for config in self._configs]

    def _config(self, folder: Path, ledger: Path, batch: object) -> Qd:
        folder.mkdir()
        qd = Qd(folder, self.server, self.database)
        qd.ledger = ledger
        policy = {"lease": f"{LEASE:g}s", "timeout": "60s", "backoff": {"base": "200ms", "cap": "1s"}}
        qd.write(
            database={"port": self.proxy.port, "tls": {"mode": "disabled"}, "statement_timeout": "2s"},
            handlers={"modules": ["tests.faults.handlers"]},
            queues={queue: {**policy, "max_attempts": most} for queue, most in QUEUES.items()},
            workers=[{"queues": list(QUEUES), "threads": 3}, {"queues": ["once", "default"], "threads": 2}],
            batch=batch,
        )
        return qd

    def enqueue(self, *jobs: NewJob) -> None:
        """Puts jobs in by plain SQL, committed together."""
        insert = "INSERT INTO qd_jobs (queue, type, payload, priority, max_attempts) VALUES (%s, 'work', %s, %s, %s)"
        with closing(self.server.connect(self.database, autocommit=False)) as connection:
            with closing(connection.cursor()) as cursor:
                for job in jobs:
                    payload = json.dumps({"seconds": job.seconds, "failures": job.failures})
                    cursor.execute(insert, (job.queue, payload, job.priority, job.max_attempts))
                    self.ledger.wanted[cursor.lastrowid] = Wanted(job.max_attempts or QUEUES[job.queue], job.failures)
            connection.commit()

    def kill(self, number: int) -> None:
        """Kills one without warning, and starts another in its place."""
        daemon = self.daemons[number]
        self.ledger.cut_off.append((daemon.process.pid, time.time()))
        daemon.process.kill()
        daemon.process.wait()
        self.daemons[number] = self._configs[number].start(ready=False)

    def freeze(self, number: int) -> Daemon:
        """Stops one where it stands."""
        daemon = self.daemons[number]
        self.ledger.cut_off.append((daemon.process.pid, time.time()))
        daemon.send(signal.SIGSTOP)
        return daemon

    def reload(self, number: int, batch: object) -> None:
        """Another configuration for one of them."""
        self._configs[number].write(batch=batch)
        if self.daemons[number].notify.times("READY=1"):
            self.daemons[number].send(signal.SIGHUP)

    def jobs(self) -> int:
        """Rows of qd_jobs that are jobs."""
        return self._configs[0].jobs()

    def until_empty(self, within: float) -> None:
        """Waits until every job is finished or a dead letter."""
        wait_for(lambda: self.jobs() == 0, within, "all jobs to be settled")

    def sizes(self) -> list[tuple[int, int]]:
        """Threads and open files of each daemon."""
        return [(daemon.threads(), len(os.listdir(f"/proc/{daemon.process.pid}/fd"))) for daemon in self.daemons]

    def lines(self, event: str) -> list[str]:
        """The log lines of an event, of all daemons that there were."""
        return [line for config in self._configs for daemon in config.started for line in daemon.lines(event)]

    def end(self) -> None:
        """Ends all."""
        for config in self._configs:
            config.end()
        self.proxy.close()
