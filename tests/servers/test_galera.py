"""On three Galera nodes, each with its daemon and its producers: conflicts come at COMMIT, nodes lag and leave."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest

import qd
from qd.errors import StoreError, TransactionFailed
from qd.outcome import Verdict
from qd.store.callers.complete import complete
from qd.store.mysql.database import MySqlDatabase
from qd.store.protocol import HeldLease, Renewal
from tests.contract.bench import Bench, finished
from tests.faults.fleet import Fleet
from tests.faults.jobs import LEASE, NewJob, some_job
from tests.faults.jobs import put as put_jobs
from tests.servers.galera import Galera, Node
from tests.servers.producers import elapsed, producing
from tests.support.waiting import wait_for

NewFleet = Callable[..., Fleet]

SETTLED_WITHIN = 120.0
"""Seconds for leases, back-offs and the longest jobs on a busy machine."""


def judged(fleet: Fleet, galera: Galera) -> dict[int, list[str]]:
    """What is wrong with which job, once all nodes know all."""
    fleet.until_empty(SETTLED_WITHIN)
    galera.in_step()
    return {job: wrongs for job, (wrongs, _) in fleet.ledger.wrongs().items()}


def test_writers_on_all_nodes_lose_no_job_and_run_none_twice(galera: Galera, new_fleet: NewFleet) -> None:
    fleet = new_fleet(galera)

    def put(node: Node, seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(140):
            jobs = [some_job(rng, long=0.01) for _ in range(5)]
            _undone_again(lambda: put_jobs(node, fleet.database, jobs))  # noqa: B023

    threads = [threading.Thread(target=put, args=(node, node.number)) for node in galera.nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert judged(fleet, galera) == {}
    assert len(fleet.ledger.stories()) == 3 * 140 * 5
    assert fleet.lines("lease.lost") == fleet.lines("stale.reclaimed") == fleet.lines("database.lost") == []


def _undone_again(act: Callable[[], object]) -> None:
    for _ in range(100):
        try:
            act()
            return
        except Exception as error:  # the driver raises more than its own errors
            if getattr(error, "errno", None) != 1213:
                raise
    raise AssertionError("undone a hundred times")


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_a_node_that_leaves_and_comes_back_stops_only_its_own_daemon(
    galera: Galera, new_fleet: NewFleet, how: str
) -> None:
    fleet, node = new_fleet(galera), galera.nodes[1]
    cut_off = fleet.ledger.excuses.add(fleet.members[1].pid, f"its node was {how}", time.time())
    others = [galera.nodes[0], galera.nodes[2]]
    with producing(others, fleet.database):
        wait_for(lambda: len(fleet.ledger.lines()) > 100, 30, "jobs to run")
        cut_off.begin = time.time()
        node.kill() if how == "killed" else node.freeze()
        wait_for(lambda: galera.nodes[0].status("wsrep_cluster_size") == "2", 30, "the others to go on without it")
        gone_at = time.time()
        wait_for(lambda: _started_since(fleet, gone_at) > 50, 30, "jobs to be started on the other nodes")
        wait_for(elapsed(1), 10, "a moment")
        galera.rejoin(node) if how == "killed" else node.thaw()
        wait_for(lambda: node.status("wsrep_local_state_comment") == "Synced", 60, "the node to be back")
        cut_off.end = back = time.time()
        wait_for(lambda: _started_since(fleet, back, fleet.members[1].pid), 30, "its daemon to go on")
    assert judged(fleet, galera) == {}
    assert fleet.members[1].daemon.alive()


def _started_since(fleet: Fleet, moment: float, pid: int | None = None) -> int:
    lines = [line for _, line in fleet.ledger.lines() if line.what == "start" and line.at > moment]
    return sum(pid in (None, line.pid) for line in lines)


# ---------------------------------------------------------------------- a node that lags


@pytest.fixture
def lagging(galera: Galera) -> Iterator[tuple[Bench, Bench, Callable[[], None]]]:
    """Stores on two nodes, and a call after which the second is some seconds behind the first."""
    first, second = galera.nodes[:2]
    database = galera.new_database()
    for node in galera.nodes:  # nobody waits for who is slow
        node.run("SET GLOBAL wsrep_provider_options = 'gcs.fc_limit=100000'")
    first.run("CREATE TABLE big (id BIGINT PRIMARY KEY, x INT)", (), database)
    first.run("INSERT INTO big SELECT seq, 0 FROM seq_1_to_150000", (), database)
    galera.in_step()
    benches = [_bench(node, database) for node in (first, second)]
    yield benches[0], benches[1], lambda: first.run("UPDATE big SET x = x + 1", (), database) and None
    for bench in benches:
        bench.close()


def _bench(node: Node, database: str) -> Bench:
    config = node.config(database)
    return Bench("mariadb", config, lambda events: MySqlDatabase(config, events), node)


Lagging = tuple[Bench, Bench, Callable[[], None]]


def test_an_end_written_on_a_node_that_does_not_know_the_claim_yet_stands(lagging: Lagging, galera: Galera) -> None:
    near, far, lag = lagging
    ids = near.add(1)
    galera.in_step()
    far.store.look(["default"], full=True)
    lag()
    (job,) = near.claim(1)
    assert far.row(ids[0], "lane") == (0,), "the node didn't lag: the test shows nothing"
    assert far.store.settle([finished(job)]) == [Verdict.SETTLED]
    galera.in_step()
    assert near.jobs() == 0


def test_a_lease_is_not_called_lost_by_a_node_that_does_not_know_the_claim_yet(
    lagging: Lagging, galera: Galera
) -> None:
    near, far, lag = lagging
    ids = near.add(1)
    galera.in_step()
    far.store.look(["default"], full=True)
    lag()
    (job,) = near.claim(1)
    assert far.row(ids[0], "lane") == (0,), "the node didn't lag: the test shows nothing"
    assert far.store.renew([HeldLease(job.id, job.token, 60.0)]) == [Renewal.RENEWED]
    assert far.store.renew([HeldLease(job.id, "another's", 60.0)]) == [Renewal.LOST]


def test_a_handler_on_a_node_that_does_not_know_the_claim_yet_completes_its_job(
    lagging: Lagging, galera: Galera
) -> None:
    near, far, lag = lagging
    ids = near.add(1)
    galera.in_step()
    lag()
    (job,) = near.claim(1)
    assert far.row(ids[0], "lane") == (0,), "the node didn't lag: the test shows nothing"
    with closing(galera.nodes[1].connect(far.config.name)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        assert complete(cursor, job.id, job.token)
        connection.commit()
    galera.in_step()
    assert near.jobs() == 0


def test_a_node_that_lags_takes_back_no_lease_that_was_renewed(lagging: Lagging, galera: Galera) -> None:
    near, far, lag = lagging
    near.add(1)
    (job,) = near.claim(1)
    near.shift(job.id, -1.0)
    galera.in_step()
    (seen,) = far.store.stale(["default"], 10)
    lag()
    assert near.store.renew([HeldLease(job.id, job.token, 60.0)]) == [Renewal.RENEWED]
    assert far.store.stale(["default"], 10) == [seen], "the node didn't lag: the test shows nothing"
    taken_back = None
    with suppress(TransactionFailed):  # refused, if the renewal has not arrived by then either
        taken_back = far.store.reclaim(seen, 3)
    assert taken_back in (None, Verdict.LOST)
    galera.in_step()
    assert near.row(job.id, "reserved_by", "crashes") == (job.token, 0)


def test_of_two_nodes_that_claim_the_same_row_one_has_it(galera: Galera) -> None:
    database = galera.new_database()
    galera.in_step()
    benches = [_bench(node, database) for node in galera.nodes]
    had: list[int] = []
    refused: list[int] = []

    def claim_all(bench: Bench) -> None:
        while bench.jobs():
            try:
                jobs = bench.claim(5)
                had.extend(job.id for job in jobs)
                bench.store.settle([finished(job) for job in jobs])
            except TransactionFailed:
                refused.append(1)

    ids = benches[0].add(150)
    galera.in_step()
    threads = [threading.Thread(target=claim_all, args=(bench,)) for bench in benches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    galera.in_step()
    for bench in benches:
        bench.close()
    assert sorted(had) == ids
    assert refused, "no claim was refused: the nodes weren't rivals, the test shows nothing"


def test_a_row_with_a_lower_id_that_another_node_commits_later_is_found_at_once(
    galera: Galera, new_fleet: NewFleet
) -> None:
    fleet = new_fleet(galera)
    early = galera.nodes[2].connect(fleet.database, autocommit=False)
    with closing(early), closing(early.cursor()) as cursor:
        cursor.execute("INSERT INTO qd_jobs (type, payload) VALUES ('work', %s)", (NewJob().payload(),))
        lower = cursor.lastrowid
        ids = [put_jobs(galera.nodes[0], fleet.database, [NewJob()])[0] for _ in range(20)]
        wait_for(lambda: fleet.jobs() == 0, 30, "the later ones to be done")
        early.commit()
        committed = time.time()
    wait_for(lambda: _started_since(fleet, committed - 1), 30, "the early one's start")
    assert lower < max(ids)
    assert judged(fleet, galera) == {}


def test_two_nodes_enqueue_under_one_unique_key_and_one_job_comes_of_it(galera: Galera) -> None:
    database = galera.new_database()
    galera.in_step()
    made: list[int] = []

    def enqueue(node: Node) -> None:
        def once() -> None:
            with closing(node.connect(database, autocommit=False)) as connection:
                with closing(connection.cursor()) as cursor:
                    job_id = qd.enqueue(cursor, "noop", unique_key="the only one")
                connection.commit()
                made.append(job_id)

        _undone_again(once)

    threads = [threading.Thread(target=enqueue, args=(node,)) for node in galera.nodes * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    galera.in_step()
    rows = galera.nodes[2].run("SELECT id FROM qd_jobs WHERE type = 'noop'", (), database)
    assert [(job_id,) for job_id in set(made)] == rows
    assert len(made) == 9


def test_many_ids_enqueued_at_once_are_the_rows_own_on_every_node(galera: Galera) -> None:
    database = galera.new_database()
    galera.in_step()
    for node in galera.nodes:
        with closing(node.connect(database, autocommit=False)) as connection, closing(connection.cursor()) as cursor:
            ids = qd.enqueue_many(cursor, [qd.NewJob("noop", number) for number in range(2500)])
            connection.commit()
            cursor.execute("SELECT id FROM qd_jobs WHERE type = 'noop' ORDER BY id DESC LIMIT 2500")
            assert [row[0] for row in reversed(cursor.fetchall())] == ids


def test_posts_put_up_on_all_nodes_at_once_are_there_once(galera: Galera) -> None:
    database = galera.new_database()
    galera.in_step()
    benches = [_bench(node, database) for node in galera.nodes]

    def put_up(bench: Bench) -> None:
        while True:
            try:
                bench.store.ensure_posts(["default", "mails"])
                return
            except StoreError:  # as the service around it does
                continue

    threads = [threading.Thread(target=put_up, args=(bench,)) for bench in benches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    galera.in_step()
    posts = galera.nodes[1].run("SELECT COUNT(*), COUNT(DISTINCT queue, priority) FROM qd_jobs", (), database)
    for bench in benches:
        bench.close()
    assert posts == [(8, 8)]


assert LEASE > 3, "a node is given up after 2 to 4 s, which must not cost a lease"
