"""The ends of one batch and the claim of the next in one transaction: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from qd.clock import monotonic
from qd.errors import ConnectionLost, StoreError
from qd.events import TransactionEnded
from qd.job import ClaimedJob
from qd.outcome import Action, Outcome, OutcomeKind, Reason, Verdict
from qd.store.protocol import Claim
from qd.store.store import SqlStore
from tests.contract.bench import Bench, ended, finished, new_token
from tests.contract.test_unknown_commit import Cut

SETTLED, LOST = Verdict.SETTLED, Verdict.LOST


def claim(limit: int = 3, token: str | None = None) -> Claim:
    """One of queue `default`."""
    return Claim("default", limit, 60.0, token or new_token(), 3, (2,))


@pytest.fixture
def cut(server_bench: Bench) -> Iterator[Cut]:
    made = Cut(server_bench)
    yield made
    made.proxy.close()


def shares(bench: Bench) -> bool:
    """Whether a claim is one transaction on this server, which ends can share."""
    return bench.store._claimer.at_once()


def claimed_or_not(bench: Bench, jobs: list[ClaimedJob] | None) -> list[ClaimedJob]:
    """What was claimed, by another call where claims are several transactions."""
    assert (jobs is None) == (not shares(bench))
    return bench.claim(3) if jobs is None else jobs


def test_the_ends_are_written_and_the_next_are_ours(bench: Bench) -> None:
    ids = bench.add(5)
    first = bench.claim(2)
    actions = [Action.FINISH, Action.RETRY]
    verdicts, jobs = bench.store.turn_over(
        [ended(job, act, delay=60.0) for job, act in zip(first, actions, strict=True)], claim()
    )
    assert verdicts == [SETTLED, SETTLED]
    assert [job.id for job in claimed_or_not(bench, jobs)] == ids[2:]
    assert bench.jobs() == 4 and bench.row(ids[0], "id") is None


def test_it_is_one_transaction_with_one_commit(bench: Bench) -> None:
    if not shares(bench):
        pytest.skip("a claim is several transactions without SKIP LOCKED")
    bench.add(200)
    first = bench.claim(100)
    bench.seen.clear()
    verdicts, jobs = bench.store.turn_over([finished(job) for job in first], claim(100))
    assert len(verdicts) == len(jobs or ()) == 100
    (transaction,) = bench.events(TransactionEnded)
    assert transaction.committed
    assert bench.kind == "sqlite" or transaction.statements == 4, "DELETE, SELECT, UPDATE, COMMIT"


def test_where_nothing_is_ready_only_the_ends_are_written(bench: Bench) -> None:
    bench.add(2)
    verdicts, jobs = bench.store.turn_over([finished(job) for job in bench.claim(2)], claim())
    assert verdicts == [SETTLED, SETTLED] and not jobs and bench.jobs() == 0


def test_where_a_lease_was_lost_the_others_ends_stand_and_nothing_is_claimed(bench: Bench) -> None:
    ids = bench.add(4)
    first = bench.claim(2)
    bench.sql("UPDATE qd_jobs SET reserved_by = 'other:1:n:w:1' WHERE id = %s", ids[0])
    verdicts, jobs = bench.store.turn_over([finished(job) for job in first], claim())
    assert verdicts == [LOST, SETTLED] and jobs is None
    assert bench.row(ids[0], "reserved_by") == ("other:1:n:w:1",)
    assert bench.row(ids[2], "lane", "attempts") == (0, 0) == bench.row(ids[3], "lane", "attempts")


def test_an_unknown_type_that_becomes_a_dead_letter_is_told_as_one(bench: Bench) -> None:
    database = bench.again(bench.database._shared.events)
    database._shared.unknown_type_patience = 0.0
    store = bench.new_store("impatient", database)
    nobody = Outcome(OutcomeKind.REJECTED, Reason.UNKNOWN_TYPE, error="nobody knows it")
    bench.add(1)
    for want in (SETTLED, Verdict.BURIED):
        (job,) = bench.claim(1)
        verdicts, _ = store.turn_over([ended(job, Action.POSTPONE, nobody, delay=60.0)], claim())
        assert verdicts == [want]
        bench.shift(job.id, -1.0)
    assert (bench.jobs(), bench.dead()) == (0, 1)


def test_an_end_that_is_refused_undoes_the_claim_too(server_bench: Bench) -> None:
    bench = server_bench
    ids = bench.add(3)
    first = bench.claim(1)
    bench.sql("CREATE TRIGGER t BEFORE DELETE ON qd_jobs FOR EACH ROW SIGNAL SQLSTATE '45000'")
    with pytest.raises(StoreError):
        bench.store.turn_over([finished(job) for job in first], claim())
    bench.sql("DROP TRIGGER t")
    assert [bench.row(job_id, "lane", "attempts") for job_id in ids] == [(1, 1), (0, 0), (0, 0)]
    assert bench.new_store("another").settle([finished(job) for job in first]) == [SETTLED]


def test_rows_that_others_have_locked_are_passed_over(server_bench: Bench) -> None:
    bench = server_bench
    ids = bench.add(4)
    first = bench.claim(1)
    with bench.stranger(f"SELECT id FROM qd_jobs WHERE id = {ids[1]} FOR UPDATE"):
        verdicts, jobs = bench.store.turn_over([finished(job) for job in first], claim())
        assert verdicts == [SETTLED]
        assert [job.id for job in claimed_or_not(bench, jobs)] == ids[2:]


@pytest.mark.parametrize("how", ["before", "after"])
def test_without_an_answer_both_halves_are_found_out(cut: Cut, how: str) -> None:
    """The ends are known again, once; what may have been claimed is given back uncounted."""
    ids = cut.bench.add(5)
    first = cut.bench.claim(2, cut.store)
    ends = [finished(job) for job in first]
    cut.proxy.cut = how
    with pytest.raises(ConnectionLost) as lost:
        cut.store.turn_over(ends, claim())
    assert lost.value.outcome_unknown
    assert cut.store.settle(ends) == [SETTLED, SETTLED]
    cut.store.resolve()
    assert [cut.bench.row(job_id, "lane", "attempts", "reserved_by") for job_id in ids[2:]] == [(0, 0, None)] * 3
    assert cut.store.settle(ends) == [LOST, LOST]
    assert cut.bench.jobs() == 3


@pytest.mark.parametrize("how", ["before", "after"])
def test_without_an_answer_an_end_may_come_again_together_with_a_claim(cut: Cut, how: str) -> None:
    ids = cut.bench.add(3)
    ends = [finished(job) for job in cut.bench.claim(1, cut.store)]
    cut.proxy.cut = how
    with pytest.raises(ConnectionLost):
        cut.store.turn_over(ends, claim())
    verdicts, jobs = cut.store.turn_over(ends, claim())
    assert verdicts == [SETTLED] and jobs is None, "ends in doubt are settled by themselves"
    assert [job.id for job in cut.bench.claim(3, cut.store)] == ids[1:]
    assert {cut.bench.row(job_id, "attempts") for job_id in ids[1:]} == {(1,)}


def test_the_time_that_ends_take_is_not_the_claims(mariadb_bench: Bench) -> None:
    """Else it would count twice for the wait of what is claimed behind them."""
    bench = mariadb_bench
    if not shares(bench):
        pytest.skip("a claim is several transactions without SKIP LOCKED")
    bench.add(2)
    first = bench.claim(1)
    bench.sql("CREATE TRIGGER t BEFORE DELETE ON qd_jobs FOR EACH ROW SET @slept = SLEEP(0.5)")
    before = monotonic()
    _, jobs = bench.store.turn_over([finished(job) for job in first], claim())
    assert jobs is not None and [job.claimed_at >= before + 0.5 for job in jobs] == [True]


def hit_behind_the_commit(store: SqlStore, stray: BaseException) -> None:
    """The store's next transaction is committed; then something that isn't the database's hits its thread."""
    session: Any = store._session
    transaction = session.transaction

    def once(work: Callable[[Any], Any]) -> None:
        session.transaction = transaction
        transaction(work)
        raise stray

    session.transaction = once


@pytest.mark.parametrize("stray", [SystemExit("left behind by a handler"), ValueError("a bug")])
def test_what_hits_the_thread_behind_the_commit_is_found_out_about_like_a_lost_answer(
    bench: Bench, stray: BaseException
) -> None:
    ids = bench.add(5)
    ends = [finished(job) for job in bench.claim(2)]
    hit_behind_the_commit(bench.store, stray)
    with pytest.raises(type(stray)):
        bench.store.turn_over(ends, claim())
    assert bench.store.settle(ends) == [SETTLED, SETTLED]
    bench.store.resolve()
    hit_behind_the_commit(bench.store, stray)
    with pytest.raises(type(stray)):
        bench.claim(3)
    bench.store.resolve()
    assert [bench.row(job_id, "lane", "attempts", "reserved_by") for job_id in ids[2:]] == [(0, 0, None)] * 3
    assert bench.store.settle(ends) == [LOST, LOST]


def test_a_connection_that_died_before_is_replaced_and_all_is_done_once(server_bench: Bench) -> None:
    bench = server_bench
    ids = bench.add(4)
    first = bench.claim(1)
    for (connection,) in bench.sql(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = %s AND ID <> CONNECTION_ID()", bench.config.name
    ):
        bench.sql(f"KILL {connection}")
    verdicts, jobs = bench.store.turn_over([finished(job) for job in first], claim())
    assert verdicts == [SETTLED]
    assert [(job.id, job.attempt) for job in claimed_or_not(bench, jobs)] == [(job_id, 1) for job_id in ids[1:]]
