"""Daemons whose jobs add to a counter, killed at chosen moments, and what must be true of the counter then."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.daemon import Daemon, Qd
from tests.support.private import PrivateServer
from tests.support.server import PASSWORD, Server
from tests.support.waiting import wait_for

DAEMONS = 3

TABLES = (
    "CREATE TABLE counter (n BIGINT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO counter VALUES (0)",
    # no unique key: what happened twice is to be seen
    "CREATE TABLE effects (n BIGINT AUTO_INCREMENT PRIMARY KEY, job BIGINT UNSIGNED, token VARCHAR(255), KEY (job)) "
    "ENGINE=InnoDB",
)


class CountingFleet:
    """Three daemons without a ledger of settlements: the counter is the ledger.

    Args:
        workers: of each daemon's configuration, without its queues.
    """

    def __init__(self, folder: Path, server: Server, **workers: Any) -> None:
        self.server, self.database = server, server.new_database()
        for statement in TABLES:
            server.run(statement, database=self.database)
        user = server.config(self.database).user
        for table in ("counter", "effects"):
            server.run(f"GRANT SELECT, INSERT, UPDATE ON {self.database}.{table} TO '{user}'@'%'")
        place = {"host": server.host, "port": server.port, "database": self.database}
        self._shop = json.dumps({**place, "user": user, "password": PASSWORD})
        self.ledger = folder / "starts"
        self.configs = [self._config(folder / str(at), workers) for at in range(DAEMONS)]
        self.daemons = [self._start(at) for at in range(DAEMONS)]

    def _config(self, folder: Path, workers: dict[str, Any]) -> Qd:
        folder.mkdir()
        qd = Qd(folder, self.server, self.database)
        qd.ledger = self.ledger
        # an attempt is spent at each cut, and the batch of a killed daemon is cut as a whole
        policy = {
            "lease": "3s", "timeout": "60s", "max_attempts": 1000,
            "backoff": {"base": "100ms", "cap": "1s"},
        }  # fmt: skip
        qd.write(
            handlers={"modules": ["tests.faults.counting_handlers"]},
            queues={"default": policy},
            workers=[{"queues": ["default"], "threads": 4, **workers}],
        )
        return qd

    def _start(self, at: int) -> Daemon:
        return self.configs[at].start(ready=False, SHOP=self._shop)

    def enqueue(self, count: int, rng: random.Random) -> list[int]:
        """Jobs of both kinds, most of them short, committed together; their ids."""
        insert = "INSERT INTO qd_jobs (type, payload, priority) VALUES (%s, %s, %s)"
        ids: list[int] = []
        with closing(self.server.connect(self.database, autocommit=False)) as connection:
            with closing(connection.cursor()) as cursor:
                for _ in range(count):
                    seconds = rng.choice([0.0, 0.0, 0.02, 0.1, 0.3])
                    kind = rng.choice(["effect_first", "complete_first"])
                    cursor.execute(insert, (kind, json.dumps({"seconds": seconds}), rng.choice([1, 2, 2])))
                    ids.append(int(cursor.lastrowid))
            connection.commit()
        return ids

    def run(self, jobs: Sequence[int], harms: Sequence[Callable[[], None]], rng: random.Random, within: float) -> None:
        """Does each harm once so many jobs are done; then waits until all are."""
        moments = sorted(rng.randrange(len(jobs) * 9 // 10) for _ in harms)
        for moment, harm in zip(moments, harms, strict=True):
            wait_for(lambda: self.counter() >= moment, within, f"{moment} jobs to be done")  # noqa: B023
            harm()
        wait_for(lambda: self.configs[0].jobs() == 0, within, "all jobs to be gone")

    def kill_daemon(self, rng: random.Random) -> None:
        """Ends one without warning, and starts another in its place."""
        at = rng.randrange(DAEMONS)
        self.daemons[at].process.kill()
        self.daemons[at].process.wait()
        self.daemons[at] = self._start(at)

    def kill_server(self) -> None:
        """Ends it without warning and starts it again; what was committed is there."""
        assert isinstance(self.server, PrivateServer)
        self.server.kill()
        self.server.start()

    def counter(self) -> int:
        """What the jobs have added."""
        return int(self.configs[0].one("SELECT n FROM counter"))

    def starts(self) -> int:
        """Runs that were begun."""
        return len(self.ledger.read_text().splitlines())

    def wrongs(self, jobs: Sequence[int]) -> dict[str, Any]:
        """What isn't as it must be once all jobs are gone."""
        sql = self.configs[0].sql
        effects = dict(sql("SELECT job, COUNT(*) FROM effects GROUP BY job"))
        found = {
            "counter": self.counter() - len(jobs),
            "done twice": sorted(job for job, count in effects.items() if count > 1),
            "gone, but not done": sorted(set(jobs) - set(effects)),
            "dead letters": sql("SELECT job_id, reason, error FROM qd_failed_jobs"),
        }
        return {what: wrong for what, wrong in found.items() if wrong}

    def end(self) -> None:
        """Ends all."""
        for config in self.configs:
            config.end()
