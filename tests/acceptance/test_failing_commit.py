"""A claim whose COMMIT the cluster refuses was none: nothing of it has started, and no attempt is spent."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.answering import AnsweringProxy, Talk
from tests.support.daemon import Qd
from tests.support.mariadb import free_port
from tests.support.server import Server
from tests.support.waiting import wait_for

JOBS = 1000


class Conflicts:
    """Says that every third COMMIT of a claim lost against another node's, as Galera's loser is told."""

    def __init__(self, errno: int) -> None:
        self.errno, self.said = errno, 0
        self._chance = random.Random(errno)

    def __call__(self, talk: Talk, statement: bytes) -> int | None:
        claims = any(b"SKIP LOCKED" in sent for sent in talk.transaction)
        takes = any(sent.lstrip().startswith((b"UPDATE", b"SET STATEMENT")) for sent in talk.transaction)
        if not (claims and takes and statement.lower() == b"commit") or self._chance.random() > 0.3:
            return None
        self.said += 1
        return self.errno


@pytest.mark.parametrize("errno", [1213, 1047])
def test_two_daemons_start_a_thousand_jobs_once_each_though_commits_fail(
    folder: Path, mariadb: Server, mysql_database: str, errno: int
) -> None:
    conflicts = Conflicts(errno)
    both = []
    with closing(AnsweringProxy(mariadb.port, conflicts)) as proxy:
        for name in ("a", "b"):
            (folder / name).mkdir()
            qd = Qd(folder / name, mariadb, mysql_database)
            qd.ledger = folder / "ledger"
            qd.port = free_port()
            qd.write(
                database={"port": proxy.port, "tls": {"mode": "disabled"}},
                queues={"default": {"lease": "6s", "max_attempts": 2}},
                batch=10,
            )
            both.append(qd)
        ids = both[0].enqueue("nap", JOBS, seconds=0)
        try:
            daemons = [qd.start() for qd in both]
            wait_for(lambda: both[0].jobs() == 0, 90, "all jobs to be done")
            assert conflicts.said > 5
            assert sorted(both[0].ran("start")) == ids == sorted(both[0].ran("end"))
            assert both[0].sql("SELECT COUNT(*) FROM qd_failed_jobs") == [(0,)]
            assert [daemon.stop() for daemon in daemons] == [0, 0]
        finally:
            for qd in both:
                qd.end()
