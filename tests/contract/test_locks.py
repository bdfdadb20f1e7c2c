"""Strangers' locks: they cost nobody but the locked row, and qd's own cost the producers nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack, closing

import pytest

from qd.clock import monotonic
from qd.errors import LockWait, TransactionFailed
from qd.events import Events
from qd.job import ClaimedJob
from qd.outcome import Action, Verdict
from qd.store.mysql.database import MySqlDatabase
from qd.store.protocol import ClaimPath, HeldLease, Renewal
from tests.contract.bench import Bench, ended, finished
from tests.support.waiting import wait_for

INSERT = "INSERT INTO qd_jobs (queue, type, payload) VALUES ('default', 'noop', '{}')"


@pytest.mark.parametrize("rows", [1, 4, 20, 100])
def test_an_open_insert_before_and_behind_blocks_no_claim_renewal_or_end(server_bench: Bench, rows: int) -> None:
    """A statement that became a scan would wait for the open insert, and end with 1205."""
    with server_bench.stranger(INSERT), ExitStack() as stack:
        ids = server_bench.add(rows)
        stack.enter_context(server_bench.stranger(INSERT))
        jobs = server_bench.claim(rows)
        assert [job.id for job in jobs] == ids
        leases = [HeldLease(job.id, job.token, 60.0) for job in jobs]
        assert server_bench.store.renew(leases) == [Renewal.RENEWED] * rows
        assert server_bench.store.settle([finished(job) for job in jobs]) == [Verdict.SETTLED] * rows


@pytest.mark.parametrize("action", list(Action))
def test_an_open_insert_blocks_no_kind_of_end(server_bench: Bench, action: Action) -> None:
    with server_bench.stranger(INSERT):
        server_bench.add(3)
        jobs = server_bench.claim(3)
        with server_bench.stranger(INSERT):
            assert server_bench.store.settle([ended(job, action) for job in jobs]) == [Verdict.SETTLED] * 3


def test_the_committed_jobs_are_claimed_while_a_producer_holds_its_insert_open(server_bench: Bench) -> None:
    with server_bench.stranger(INSERT):
        ids = server_bench.add(5)
        assert [job.id for _ in range(5) for job in server_bench.claim(1)] == ids


def test_a_locked_row_is_passed_over_by_a_claim_and_found_once_it_is_free(server_bench: Bench) -> None:
    first, *rest = server_bench.add(3)
    with server_bench.stranger(f"SELECT id FROM qd_jobs WHERE id = {first} FOR UPDATE"):
        assert [job.id for job in server_bench.claim(3)] == rest
    server_bench.store.look(["default"], full=True)
    assert [job.id for job in server_bench.claim(3)] == [first]


def test_a_locked_lease_costs_its_neighbours_nothing_and_is_told_as_locked(server_bench: Bench) -> None:
    server_bench.add(5)
    jobs = server_bench.claim(5, lease=5.0)
    leases = [HeldLease(job.id, job.token, 300.0) for job in jobs]
    with server_bench.stranger(f"SELECT id FROM qd_jobs WHERE id = {jobs[2].id} FOR UPDATE"):
        found = server_bench.store.renew(leases)
    assert [at for at, renewal in enumerate(found) if renewal is Renewal.LOCKED] == [2]
    assert found.count(Renewal.RENEWED) == 4
    far = server_bench.sql("SELECT id FROM qd_jobs WHERE available_at > NOW(6) + INTERVAL 100 SECOND")
    assert len(far) == 4


def test_an_end_behind_a_strangers_lock_fails_in_bounded_time_and_can_come_again(server_bench: Bench) -> None:
    server_bench.add(1)
    (job,) = server_bench.claim(1)
    with server_bench.stranger(f"SELECT id FROM qd_jobs WHERE id = {job.id} FOR UPDATE"), pytest.raises(LockWait):
        server_bench.store.settle([ended(job, Action.BURY)])
    assert (server_bench.jobs(), server_bench.dead()) == (1, 0)
    assert server_bench.store.settle([ended(job, Action.BURY)]) == [Verdict.SETTLED]
    assert (server_bench.jobs(), server_bench.dead()) == (0, 1)


@pytest.mark.parametrize("places", [(0,), (3,), (1, 4), (0, 1, 2)])
def test_ends_that_are_settled_with_a_locked_one_are_written_all_the_same(
    server_bench: Bench, places: tuple[int, ...]
) -> None:
    server_bench.add(6)
    jobs = server_bench.claim(6)
    ends = [finished(job) if at % 2 else ended(job, Action.RETRY) for at, job in enumerate(jobs)]
    locks = [f"SELECT id FROM qd_jobs WHERE id = {jobs[at].id} FOR UPDATE" for at in places]
    with server_bench.stranger(*locks):
        for _ in range(2):
            with pytest.raises(LockWait):
                server_bench.store.settle(ends)
        held = server_bench.sql("SELECT id FROM qd_jobs WHERE lane = 1 ORDER BY id")
        assert [row[0] for row in held] == [jobs[at].id for at in places]
    assert server_bench.store.settle(ends) == [Verdict.SETTLED] * 6
    assert server_bench.jobs() == 3
    assert server_bench.store.settle(ends) == [Verdict.LOST] * 6


def test_a_locked_stale_row_is_left_to_its_owner(server_bench: Bench) -> None:
    server_bench.add(1)
    (job,) = server_bench.claim(1)
    server_bench.shift(job.id, -1)
    (row,) = server_bench.store.stale(["default"], 10)
    with server_bench.stranger(f"SELECT id FROM qd_jobs WHERE id = {job.id} FOR UPDATE"):
        assert server_bench.store.reclaim(row, 3) is Verdict.LOST
    assert server_bench.store.reclaim(row, 3) is Verdict.SETTLED


def test_stale_rows_that_somebody_has_locked_are_told_from_free_ones(server_bench: Bench) -> None:
    server_bench.add(3)
    jobs = server_bench.claim(3)
    for job in jobs:
        server_bench.shift(job.id, -1)
    rows = server_bench.store.stale(["default"], 10)
    with server_bench.stranger(f"SELECT id FROM qd_jobs WHERE id = {jobs[1].id} FOR UPDATE"):
        assert {row.job_id for row in server_bench.store.free(rows)} == {jobs[0].id, jobs[2].id}
    assert server_bench.store.free(rows) == set(rows)
    assert server_bench.store.free([]) == set()


def test_looks_claims_sweeps_and_renewals_of_nothing_cost_a_producer_no_lock_error(server_bench: Bench) -> None:
    """An empty locking read under REPEATABLE READ would lock the gap that producers insert into."""
    stop = threading.Event()

    def idle(name: str) -> None:
        store = server_bench.new_store(name)
        while not stop.is_set():
            store.look(["default", "empty"], full=False)
            server_bench.claim(5, store, queue="empty")
            store.stale(["default", "empty"], 10)
            store.renew([HeldLease(10**9, "nobody", 5.0)])

    idlers = [threading.Thread(target=idle, args=(f"idle {number}",)) for number in range(3)]
    for idler in idlers:
        idler.start()
    try:
        _produce(server_bench, 400)
    finally:
        stop.set()
        for idler in idlers:
            idler.join(20)
    assert server_bench.jobs() == 400


def _produce(bench: Bench, count: int) -> None:
    assert bench.server is not None
    with closing(bench.server.connect(bench.config.name)) as producer, closing(producer.cursor()) as cursor:
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for _ in range(count):
            cursor.execute(INSERT)  # raises 1205 or 1213
            producer.commit()


def test_an_idle_store_leaves_no_transaction_open(server_bench: Bench) -> None:
    server_bench.add(1)
    server_bench.store.look(["default"], full=True)
    server_bench.claim(1)
    server_bench.claim(1)
    server_bench.store.depths()
    assert server_bench.one("SELECT COUNT(*) FROM information_schema.innodb_trx") == 0


def test_a_deadlock_undoes_the_whole_end_and_it_can_come_again(mariadb_bench: Bench) -> None:
    mariadb_bench.add(2)
    first, second = mariadb_bench.claim(2)
    failed: list[BaseException] = []

    def settle() -> None:
        try:
            mariadb_bench.store.settle([ended(first, Action.RETRY), ended(second, Action.BURY)])
        except TransactionFailed as error:
            failed.append(error)

    # a heavy transaction, so that the server chooses the lighter one, ours, as the victim
    heavy = [INSERT] * 30
    lock = "SELECT id FROM qd_jobs WHERE id = {} FOR UPDATE"
    with mariadb_bench.stranger(*heavy, lock.format(second.id)) as stranger:
        ours = threading.Thread(target=settle)
        ours.start()
        wait_for(lambda: mariadb_bench.lock_waits() == 1, 5, "our end to wait for the stranger")
        stranger.execute(lock.format(first.id))
        ours.join(10)
    assert [error.kind for error in failed if isinstance(error, TransactionFailed)] == ["deadlock"]
    assert (mariadb_bench.jobs(), mariadb_bench.dead()) == (2, 0)
    again = [ended(first, Action.RETRY), ended(second, Action.BURY)]
    assert mariadb_bench.store.settle(again) == [Verdict.SETTLED] * 2


def test_a_conditional_claim_waits_for_nobody(mariadb_bench: Bench) -> None:
    """Also for a row that is locked by a committed-row lock, not only by an open insert."""
    bench = mariadb_bench
    no_wait = bench.is_mariadb()  # MySQL can't be told to wait for less than a second
    ids = bench.add(4)
    database = MySqlDatabase(bench.config, Events(), claim_path=ClaimPath.CONDITIONAL)
    store = bench.new_store("conditional", database)
    locks = [f"SELECT id FROM qd_jobs WHERE id = {job_id} FOR UPDATE" for job_id in ids[:3]]
    store.look(["default"], full=True)
    with bench.stranger(*locks):
        began = monotonic()
        taken = [job.id for job in bench.claim(4, store)]
        took = monotonic() - began
    assert set(taken) <= set(ids[3:])
    assert taken or not no_wait
    assert took < (1.0 if no_wait else 2 * 3.0 + 1.0), f"a claim beside three locked rows took {took:.1f} s"


def test_four_rivals_on_two_hundred_jobs_take_each_once(server_bench: Bench) -> None:
    ids = server_bench.add(200)
    taken: list[int] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        store = server_bench.new_store(f"rival {number}")
        deadline = monotonic() + 30
        while len(taken) < len(ids) and monotonic() < deadline:
            jobs = _claimed(lambda: server_bench.claim(3, store))
            store.settle([finished(job) for job in jobs])
            with lock:
                taken.extend(job.id for job in jobs)
            if not jobs:
                store.look(["default"], full=True)

    rivals = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join(40)
    assert sorted(taken) == ids


def _claimed(claim: Callable[[], list[ClaimedJob]]) -> list[ClaimedJob]:
    try:
        return claim()
    except TransactionFailed:  # a deadlock between rivals: nothing was taken
        return []
