"""The main job: 2,000 mixed jobs by plain SQL, command line and Python, three daemons side by side,
a ledger that has to add up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from typing import NamedTuple

import pytest

import qd as api
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import free_port
from tests.support.server import ROOT
from tests.support.waiting import wait_for

PROGRAM = """
cat >/dev/null
printf '%s start %s 0 t\\n' "$QD_JOB_ID" "$QD_ATTEMPT" >>"$LEDGER"
printf '%s end %s 0 t\\n' "$QD_JOB_ID" "$QD_ATTEMPT" >>"$LEDGER"
"""
"""A program as a handler, whose runs are written down as those of the functions are."""


class Run(NamedTuple):
    attempt: int
    started: float
    token: str
    ended: bool


def runs(qd: Qd) -> dict[int, list[Run]]:
    """What the handlers wrote down, by job."""
    starts: dict[int, list[Run]] = defaultdict(list)
    ends = set()
    for line in qd.ledger.read_text().splitlines():
        job, what, attempt, at, token = line.split()
        if what == "start":
            starts[int(job)].append(Run(int(attempt), float(at), token, False))
        else:
            ends.add((int(job), token))
    return {job: [run._replace(ended=(job, run.token) in ends) for run in mine] for job, mine in starts.items()}


@pytest.fixture
def trio(qd: Qd) -> list[Daemon]:
    """Three daemons on one database, each with its own port."""
    qd.write(
        handlers={
            "modules": ["tests.acceptance.main_handlers"],
            "commands": {"hash": {"argv": ["sh", "-c", PROGRAM]}},
        },
        queues={
            "mails": {"lease": "6s", "backoff": {"base": "200ms", "cap": "1s"}},
            "default": {"lease": "6s", "max_attempts": 3, "backoff": {"base": "200ms", "cap": "1s"}},
        },
        workers=[{"queues": ["default", "mails"], "threads": 3}],
    )
    daemons = []
    for _ in range(3):
        qd.write(http={"listen": f"127.0.0.1:{free_port()}"})
        daemons.append(qd.start())
    return daemons


def by_command_line(qd: Qd, *args: str) -> list[int]:
    """Enqueues with `qd enqueue`; the ids that it printed."""
    argv = [sys.executable, "-m", "qd", "--config", str(qd.file), "enqueue", *args]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=True, cwd=qd.folder, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    return [int(line) for line in done.stdout.split()]


def by_python(qd: Qd) -> tuple[list[int], list[int]]:
    """Enqueues in two transactions; the ids of the one that was committed, and of the other."""
    connection = qd.server.connect(qd.database, autocommit=False)
    cursor = connection.cursor()
    kept = [api.enqueue(cursor, "quick", {"i": i}) for i in range(50)]
    kept += api.enqueue_many(cursor, [api.NewJob("brief", {"i": i}, queue="mails") for i in range(150)])
    connection.commit()
    gone = [api.enqueue(cursor, "quick", {"gone": i}) for i in range(50)]
    connection.rollback()
    connection.close()
    return kept, gone


def test_two_thousand_mixed_jobs_on_three_daemons_end_exactly_as_they_should(qd: Qd, trio: list[Daemon]) -> None:
    once = qd.enqueue("brief", 900) + qd.enqueue("quick", 500, queue="mails")
    once += by_command_line(qd, "quick", '{"by": "cli"}', "--count", "300")
    kept, gone = by_python(qd)
    once += kept + qd.enqueue("hash", 20)
    delayed_at = time.time()
    delayed = by_command_line(qd, "quick", "--delay", "2s", "--count", "20")
    thrice, dead, no = qd.enqueue("at_third", 30), qd.enqueue("never", 15), qd.enqueue("refused", 10)
    later = qd.enqueue("snoozed", 5, until=time.time() + 1)
    everything = {*once, *delayed, *thrice, *dead, *no, *later}
    assert len(everything) == 2000
    wait_for(lambda: qd.jobs() == 0, 120, "all jobs to be settled")
    ran = runs(qd)
    assert set(ran) == everything - set(gone)
    assert all([run.attempt for run in ran[job]] == [1] and ran[job][0].ended for job in [*once, *delayed])
    assert all([run.attempt for run in ran[job]] == [1, 2, 3] and ran[job][2].ended for job in thrice)
    assert all([run.attempt for run in ran[job]] == [1, 2, 3] for job in dead)
    assert all(len(ran[job]) == 1 for job in no)
    assert all({run.attempt for run in ran[job]} == {1} and ran[job][-1].ended for job in later)
    assert min(ran[job][0].started for job in delayed) >= delayed_at + 2
    rows = dict(qd.sql("SELECT job_id, reason FROM qd_failed_jobs"))
    assert rows == {**dict.fromkeys(dead, "error"), **dict.fromkeys(no, "rejected")}
    history = json.loads(qd.one("SELECT history FROM qd_failed_jobs WHERE job_id = %s", (dead[0],)))
    assert [entry["outcome"] for entry in history] == ["failed"] * 3
    tokens = [run.token for mine in ran.values() for run in mine if run.token != "t"]
    workers = {token.rsplit(":", 2)[0] for token in tokens}
    assert len(workers) == 3, "each of the three daemons had a part"
    assert [daemon.stop() for daemon in trio] == [0, 0, 0]
    said = "".join(daemon.said() for daemon in trio)
    assert "lease.lost" not in said and "Traceback" not in said and "stale.reclaimed" not in said
