"""Both flavours of the driver, unix sockets, and processes that fork."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from qd.events import Events
from qd.outcome import Action, Verdict
from qd.store.mysql.database import MySqlDatabase
from qd.store.protocol import ClaimPath, HeldLease, Renewal
from tests.contract.bench import Bench, ended, finished
from tests.support.mariadb import MariaDB
from tests.support.server import ROOT


@pytest.mark.parametrize("path", [ClaimPath.SKIP_LOCKED, ClaimPath.CONDITIONAL])
def test_a_jobs_life_is_the_same_with_the_drivers_pure_flavour(mariadb_bench: Bench, path: ClaimPath) -> None:
    database = MySqlDatabase(mariadb_bench.config, Events(), claim_path=path, pure=True)
    store = mariadb_bench.new_store("pure", database)
    assert database.check().connector == "pure"
    assert store.ensure_posts(["default"]) == 4
    ids = mariadb_bench.add(5, payload='{"ü": 1}', unique_key=None)
    look = store.look(["default"], full=False)
    assert look.hits["default"][2].id == ids[0]
    jobs = mariadb_bench.claim(5, store)
    assert [(job.id, job.type, job.payload) for job in jobs] == [(job_id, "noop", '{"ü": 1}') for job_id in ids]
    assert store.renew([HeldLease(job.id, job.token, 60.0) for job in jobs]) == [Renewal.RENEWED] * 5
    actions = [Action.RETRY, Action.RELEASE, Action.BURY, Action.FINISH, Action.FINISH]
    ends = [ended(job, action) for job, action in zip(jobs, actions, strict=True)]
    assert store.settle(ends) == [Verdict.SETTLED] * 5
    (depth,) = store.depths()
    assert (depth.ready, depth.failed) == (2, 1)
    lost = mariadb_bench.claim(1, store)[0]
    mariadb_bench.shift(lost.id, -5)
    (row,) = store.stale(["default"], 5)
    assert (row.token, store.reclaim(row, 9)) == (lost.token, Verdict.SETTLED)
    assert store.failed(jobs[2].id).error == "it broke"
    store.close()


def test_a_server_is_reached_by_its_unix_socket(own_mariadb: Callable[..., MariaDB]) -> None:
    server = own_mariadb()
    assert server.socket is not None
    name = server.new_database()
    config = server.config(name, user="qd").model_copy(update={"host": "nowhere.invalid", "unix_socket": server.socket})
    bench = Bench("mariadb", config, lambda events: MySqlDatabase(config, events), server)
    bench.add(1)
    assert len(bench.claim()) == 1
    bench.close()


FORKING = """
import os, sys
from qd.config.model import DatabaseConfig
from qd.events import Events
from qd.store.mysql.database import MySqlDatabase

how, pure, config = sys.argv[1], sys.argv[2] == "pure", DatabaseConfig.model_validate_json(sys.argv[3], strict=False)
config = config.model_copy(update={"password": os.environ["SECRET"]})
store = MySqlDatabase(config, Events(), pure=pure).store("forking")

def number():
    def work(cursor):
        cursor.execute("SELECT CONNECTION_ID()")
        return cursor.fetchone()[0]
    return store._session.transaction(work)

before = number()
child = os.fork()
if child == 0:
    if how == "uses":
        print("child", number() != before, flush=True)
        store.close()
    elif how == "raises":
        raise RuntimeError("in the child")
    sys.exit(0)
os.waitpid(child, 0)
print("same", number() == before)
store.close()
"""


@pytest.mark.parametrize("flavour", ["c", "pure"])
@pytest.mark.parametrize("how", ["exits", "raises", "uses"])
def test_a_forked_child_neither_ends_nor_uses_its_parents_connection(
    mariadb_bench: Bench, tmp_path: Path, how: str, flavour: str
) -> None:
    script = tmp_path / "forking.py"
    script.write_text(FORKING)
    command = [sys.executable, str(script), how, flavour, mariadb_bench.config.model_dump_json()]
    environment = {"PYTHONPATH": str(ROOT), "SECRET": str(mariadb_bench.config.password)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    assert "same True" in done.stdout
    assert ("child True" in done.stdout) == (how == "uses")


def test_a_job_that_is_finished_by_many_threads_first_connections_is_finished_once(mariadb_bench: Bench) -> None:
    """Threads that open their first connections at once, as a daemon's do."""
    ids = mariadb_bench.add(8)
    verdicts: list[Verdict] = []

    def work(number: int) -> None:
        store = mariadb_bench.new_store(f"thread {number}")
        for job in mariadb_bench.claim(1, store):
            verdicts.extend(store.settle([finished(job)]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert verdicts.count(Verdict.SETTLED) + mariadb_bench.jobs() == len(ids)
