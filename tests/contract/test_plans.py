"""Plans and locks of the store's exact statements on large tables: the index in its order, few rows locked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from qd.outcome import Action
from qd.store.claim.take import Taken, take
from qd.store.dialect import Cursor
from qd.store.protocol import Claim, ClaimPath, HeldLease
from tests.contract.bench import Bench, ended, finished, new_token, sequence
from tests.contract.recording import RecordingSession, Statement, explained

ROWS = 100_000

LOADS: dict[str, dict[str, str]] = {
    "ready": {"lane": "0", "reserved_by": "NULL", "available_at": "NOW(6) - INTERVAL 1 + seq SECOND"},
    "delayed": {
        "lane": "0",
        "reserved_by": "NULL",
        "available_at": "IF(seq % 100 = 0, NOW(6) - INTERVAL seq SECOND, NOW(6) + INTERVAL seq SECOND)",
    },
    "expired": {
        "lane": "IF(seq % 100 = 0, 0, 1)",
        "reserved_by": "IF(seq % 100 = 0, NULL, CONCAT('dead:', seq))",
        "available_at": "NOW(6) - INTERVAL 1 + seq SECOND",
    },
    "foreign": {
        "lane": "0",
        "reserved_by": "NULL",
        "available_at": "NOW(6) - INTERVAL 1 + seq SECOND",
        "queue": "IF(seq % 100 = 0, 'default', 'other')",
    },
}
"""What fills the table: all ready; 99 % delayed; 99 % expired leases; 99 % another queue's."""


STATISTICS = [*((load, "as they come") for load in LOADS), ("ready", "of an empty table"), ("ready", "exact")]


@pytest.fixture(params=STATISTICS, ids=" statistics ".join)
def loaded(request: pytest.FixtureRequest, mariadb_bench: Bench) -> Iterator[Bench]:
    """100,000 rows over three priorities, with statistics as the load left them, much too old, or made anew."""
    load, statistics = request.param
    if statistics == "of an empty table":
        mariadb_bench.sql("ALTER TABLE qd_jobs STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0")
        mariadb_bench.sql("ANALYZE TABLE qd_jobs")
    columns = {"queue": "'default'", **LOADS[load], "type": "'noop'", "priority": "seq % 3 + 1"}
    names, values = ", ".join(columns), ", ".join(columns.values())
    mariadb_bench.sql(f"INSERT INTO qd_jobs ({names}) SELECT {values} FROM {sequence(ROWS)}")
    if statistics == "exact":
        mariadb_bench.sql("ANALYZE TABLE qd_jobs")
    mariadb_bench.store.ensure_posts(["default"])
    yield mariadb_bench


def _lived(bench: Bench) -> list[Statement]:
    """Everything that a daemon sends in a job's life."""
    store = bench.new_store("recorded")
    session = RecordingSession(store._session)
    store._session = store._claimer._session = store._settler._session = session
    for full in (True, False, False):
        store.look(["default"], full=full)
        jobs = store.claim(Claim("default", 20, 60.0, new_token(), 9))
        store.renew([HeldLease(job.id, job.token, 60.0) for job in jobs])
        actions = [Action.RETRY, Action.RELEASE, Action.BURY, Action.POSTPONE]
        some = [ended(job, action, delay=60.0) for job, action in zip(jobs, actions, strict=False)]
        store.settle([*some, *(finished(job) for job in jobs[4:])])
        for row in store.stale(["default"], 50)[:2]:
            store.reclaim(row, 9)
    store.depths()
    return session.sent


def test_no_statement_of_a_jobs_life_sorts_or_walks_a_table(loaded: Bench) -> None:
    bad: list[tuple[str, dict[str, Any]]] = []
    seen = 0
    for statement in _lived(loaded):
        for line in explained(loaded, statement):
            seen += 1
            wanted = "PRIMARY" if " id = " in statement[0] or "STRAIGHT_JOIN" in statement[0] else "qd_jobs_claim"
            if line["key"] != wanted or "filesort" in str(line["Extra"]):
                bad.append((statement[0][:300], line))
    assert seen > 50
    assert not bad


class _Seen(Exception):
    """Ends a transaction that was only looked at."""


def test_a_claim_locks_no_more_than_it_takes_and_a_second_one_gets_others_at_once(loaded: Bench) -> None:
    if loaded.database.check().claim_path is not ClaimPath.SKIP_LOCKED:
        pytest.skip("this server has no SKIP LOCKED, and the test is about those that have")
    for limit in (1, 5):
        _two_claims(loaded, limit)


def _two_claims(loaded: Bench, limit: int) -> None:
    locked: list[int] = []
    ids: list[list[int]] = []

    def claim_and_watch(cursor: Cursor) -> None:
        cursor.execute("SELECT CONNECTION_ID()")
        number = cursor.fetchone()[0]
        ids.append([row.id for row in _take(loaded, cursor, limit).rows])
        locked.append(loaded.rows_locked(number))
        if len(ids) == 1:
            other = loaded.new_store("second")
            with pytest.raises(_Seen):
                other._session.transaction(claim_and_watch)
        raise _Seen

    with pytest.raises(_Seen):
        loaded.store._session.transaction(claim_and_watch)
    assert [len(some) for some in ids] == [limit, limit]
    assert set(ids[0]).isdisjoint(ids[1])
    # each row counts in the claim index and by its primary key; the second claim has passed the first's
    assert locked[0] <= 2 * limit + 4, f"rows locked by the inner and the outer claim of {limit}: {locked}"
    assert locked[1] <= 4 * limit + 4, f"rows locked by the inner and the outer claim of {limit}: {locked}"


def _take(bench: Bench, cursor: Cursor, limit: int) -> Taken:
    claim = Claim("default", limit, 60.0, new_token(), 9)
    return take(cursor, bench.store._session.dialect, claim, bench.database._shared.marks, limit)


def test_an_empty_claim_locks_nothing(skipping_bench: Bench) -> None:
    skipping_bench.store.ensure_posts(["default"])
    locked: list[int] = []

    def claim_and_watch(cursor: Cursor) -> None:
        cursor.execute("SELECT CONNECTION_ID()")
        number = cursor.fetchone()[0]
        _take(skipping_bench, cursor, 5)
        locked.append(skipping_bench.rows_locked(number))

    skipping_bench.store._session.transaction(claim_and_watch)
    assert locked[0] <= 4, f"rows locked by an empty claim over four lanes: {locked[0]}"


def test_the_plan_of_the_sqlite_claim_uses_its_index_in_order(sqlite_bench: Bench) -> None:
    store = sqlite_bench.store
    session = RecordingSession(store._session)
    store._session = store._claimer._session = session
    sqlite_bench.add(50)
    for full in (True, False):
        store.look(["default"], full=full)
        store.claim(Claim("default", 5, 60.0, new_token(), 9))
    store.stale(["default"], 10)
    for sql, params in session.sent:
        if "ORDER BY" in sql:
            plan = sqlite_bench.sql(f"EXPLAIN QUERY PLAN {sql.replace('%%', '%')}", *params)
            text = " ".join(str(row[3]) for row in plan)
            assert "qd_jobs_claim" in text
            assert "TEMP B-TREE" not in text
