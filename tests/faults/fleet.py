"""Some daemons on one database, each behind a proxy and with an account of its own, and the jobs they are given."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qd.clock import monotonic
from tests.faults.handlers import COMMAND
from tests.faults.jobs import BOXED, LEASE, QUEUES, NewJob, put
from tests.faults.ledger import Ledger
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB
from tests.support.proxy import FaultProxy, Rule
from tests.support.server import PASSWORD
from tests.support.waiting import wait_for

WORKERS = (
    {"queues": ["urgent", "default", "once"], "threads": 4},
    {"queues": ["once", "default"], "threads": 3},
    {"queues": ["boxed"], "threads": 2, "executor": "process", "max_jobs": 50},
    {"queues": ["risky"], "threads": 1},
)
"""The last entry isn't the first daemon's: jobs of that queue may end the process, and the first is to live."""

GRACE = 4.0
"""Seconds that a stop leaves to running jobs."""


class Member:
    """One daemon of a fleet: whichever process it is now.

    Attributes:
        busy: held while something is done to it that it can't be in twice.
        deaths: exit statuses of processes that ended without having been told to.
    """

    def __init__(self, fleet: Fleet, number: int, port: int, batch: object, workers: Sequence[dict[str, Any]]) -> None:
        self._fleet, self.number = fleet, number
        self.proxy = FaultProxy(port)
        self.account = f"{fleet.server.prefix}qd{number}"
        self.busy = threading.Lock()
        self.deaths: list[tuple[int, int]] = []
        self._grant()
        self.config = self._config(batch, workers)
        self.daemon = self.config.start(ready=False, **self._env())

    def _grant(self) -> None:
        server, database = self._fleet.server, self._fleet.database
        server.run(f"CREATE USER IF NOT EXISTS '{self.account}'@'%' IDENTIFIED BY '{PASSWORD}'")
        server.log_in_once()
        server.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO '{self.account}'@'%'")

    def _config(self, batch: object, workers: Sequence[dict[str, Any]]) -> Qd:
        folder = self._fleet.folder / str(self.number)
        folder.mkdir()
        qd = Qd(folder, self._fleet.server, self._fleet.database)
        qd.ledger = self._fleet.ledger.file
        policy = {"lease": f"{LEASE:g}s", "timeout": "60s", "backoff": {"base": "200ms", "cap": "1s"}}
        place = {"host": "127.0.0.1", "port": self.proxy.port, "user": self.account, "password": PASSWORD}
        qd.write(
            database={**place, "tls": {"mode": "disabled"}, "statement_timeout": "2s"},
            handlers={
                "modules": ["tests.faults.handlers"],
                "commands": {"command": {"argv": ["sh", "-c", COMMAND]}},
            },
            queues={queue: {**policy, "max_attempts": most} for queue, most in QUEUES.items()}
            | {"boxed": {**policy, **BOXED, "max_attempts": QUEUES["boxed"]}},
            workers=list(workers),
            shutdown={"grace": f"{GRACE:g}s"},
            batch=batch,
        )
        return qd

    def _env(self) -> dict[str, str]:
        """What handlers need for a connection of their own: by the way that their daemon takes."""
        place = {"host": "127.0.0.1", "port": self.proxy.port, "database": self._fleet.database, "user": self.account}
        limits = {"connection_timeout": 2, "read_timeout": 2, "write_timeout": 2, "ssl_disabled": True}
        return {"FAULTS_DATABASE": json.dumps({**place, "password": PASSWORD, **limits})}

    @property
    def pid(self) -> int:
        return self.daemon.process.pid

    def start(self) -> None:
        """Another process in the place of one that has ended."""
        self.daemon = self.config.start(ready=False, **self._env())

    def kill(self) -> None:
        """Kills it without warning, and starts another."""
        self._fleet.ledger.excuses.add(self.pid, "killed", time.time())
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.start()

    def stop(self) -> None:
        """Stops it in order, and starts another."""
        cut = self._fleet.ledger.excuses.add(self.pid, "stopped", time.time())
        ready = bool(self.daemon.notify.times("READY=1"))
        status = self.daemon.stop(60)
        cut.end = float("inf")  # what it could not write before its end is taken back by others
        if status != 0 and (ready or status != -signal.SIGTERM):  # before it listens to signals they just end it
            self.deaths.append((self.pid, status))
        self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It stands still for as long as the block lasts."""
        cut = self._fleet.ledger.excuses.add(self.pid, "frozen", time.time())
        self.daemon.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.daemon.send(signal.SIGCONT)
            cut.end = time.time()

    def reload(self, **sections: Any) -> None:
        """Gives it another configuration."""
        self.config.write(**sections)
        if self.daemon.notify.times("READY=1") and self.daemon.alive():
            self.daemon.send(signal.SIGHUP)

    def tend(self) -> None:
        """Starts another process where one has ended by itself, as a service manager would."""
        if self.daemon.alive() or not self.busy.acquire(blocking=False):
            return
        try:
            if not self.daemon.alive():
                self.deaths.append((self.pid, int(self.daemon.process.returncode)))
                self.start()
        finally:
            self.busy.release()

    def size(self) -> tuple[int, int]:
        """Its threads and open files."""
        return self.daemon.threads(), len(os.listdir(f"/proc/{self.pid}/fd"))


class Ways:
    """The proxies of all daemons, as one."""

    def __init__(self, proxies: Sequence[FaultProxy]) -> None:
        self._proxies = proxies

    @property
    def rule(self) -> Rule:
        return self._proxies[0].rule

    @rule.setter
    def rule(self, rule: Rule) -> None:
        for proxy in self._proxies:
            proxy.rule = rule

    @property
    def cuts(self) -> int:
        return sum(proxy.cuts for proxy in self._proxies)

    def cut_all(self) -> None:
        for proxy in self._proxies:
            proxy.cut_all()


class Fleet:
    """One daemon for each batch size that is given.

    Args:
        server: any of the kinds of private server.
        batches: `batch` of each daemon's configuration.
        workers: their `workers`; where there are several, the first goes without the last entry.
        ports: of the server for each daemon, where they don't all use the same.
    """

    def __init__(
        self,
        folder: Path,
        server: MariaDB,
        batches: Sequence[object],
        workers: Sequence[dict[str, Any]] = WORKERS,
        ports: Sequence[int] = (),
    ) -> None:
        self.folder, self.server, self.database = folder, server, server.new_database()
        self.ledger = Ledger(server, self.database, folder / "ledger")
        self.members = [
            Member(self, number, port, batch, workers if number or len(batches) == 1 else workers[:-1])
            for number, (batch, port) in enumerate(zip(batches, ports or [server.port] * len(batches), strict=True))
        ]

    def until_ready(self, within: float = 60.0) -> None:
        """Waits until all daemons have said so."""
        for member in self.members:
            wait_for(lambda: member.daemon.notify.times("READY=1"), within, f"daemon {member.number} to be ready")  # noqa: B023

    @property
    def daemons(self) -> list[Daemon]:
        """Those that run now."""
        return [member.daemon for member in self.members]

    @property
    def proxy(self) -> Ways:
        """The ways of all daemons together."""
        return Ways([member.proxy for member in self.members])

    @property
    def user(self) -> str:
        """The account of the first, or only, daemon."""
        return self.members[0].account

    def sizes(self) -> list[tuple[int, int]]:
        """Threads and open files of each daemon."""
        return [member.size() for member in self.members]

    def enqueue(self, *jobs: NewJob) -> list[int]:
        """Puts jobs in, committed together; their ids."""
        return put(self.server, self.database, jobs)

    def jobs(self) -> int:
        """Rows of qd_jobs that are jobs."""
        return self.members[0].config.jobs()

    def tend(self) -> None:
        """Starts daemons again that have ended by themselves."""
        for member in self.members:
            member.tend()

    def until_empty(self, within: float) -> None:
        """Waits until every job is finished or a dead letter.

        Args:
            within: seconds from one job's end to the next, at most; how long all takes is a matter of the machine.
        """
        least, until = self.jobs() + 1, 0.0

        def empty() -> bool:
            nonlocal least, until
            self.tend()
            if (jobs := self.jobs()) < least:
                least, until = jobs, monotonic() + within
            return jobs == 0 or monotonic() > until

        wait_for(empty, 3600, "all jobs to be settled")
        assert self.jobs() == 0, f"for {within:g} s no job has ended; {self._left()}"

    def _left(self) -> str:
        """The jobs that are left, for who wonders why."""
        rows = self.server.run(
            "SELECT id, queue, lane, priority, attempts, crashes, available_at, reserved_by, NOW(6) FROM qd_jobs "
            "WHERE type NOT LIKE 'qd.%' LIMIT 10",
            (),
            self.database,
        )
        return "\n".join(["what is left, at most ten jobs:", *(" ".join(map(str, row)) for row in rows)])

    def unexplained_deaths(self) -> list[tuple[int, int]]:
        """Daemons that ended by themselves though no job had ended them: (pid, status)."""
        told = self.ledger.deaths()
        return [death for member in self.members for death in member.deaths if death[0] not in told]

    def excuse_deaths(self) -> None:
        """Daemons that a job ended are known from its note; call it before the ledger is read."""
        for pid, at in self.ledger.deaths().items():
            if pid in {pid for member in self.members for pid, _ in member.deaths}:
                self.ledger.excuses.add(pid, "killed by a job", at)

    def lines(self, event: str) -> list[str]:
        """The log lines of an event, of all daemons that there were."""
        started = [daemon for member in self.members for daemon in member.config.started]
        return [line for daemon in started for line in daemon.lines(event)]

    def end(self) -> None:
        """Ends all."""
        for member in self.members:
            member.config.end()
            member.proxy.close()
