"""A purge that has read its candidates deletes none that an operator has retried since."""

from __future__ import annotations

import threading

from qd.outcome import Action
from tests.contract.bench import Bench, ended
from tests.support.waiting import wait_for

OLD = "UPDATE qd_failed_jobs SET failed_at = NOW(6) - INTERVAL 60 DAY"
BACK = "INSERT INTO qd_jobs (id, queue, type, payload) SELECT job_id, queue, type, payload FROM qd_failed_jobs WHERE "


def test_a_dead_letter_that_is_retried_between_a_purges_read_and_its_delete_is_kept(server_bench: Bench) -> None:
    bench = server_bench
    bench.add(3)
    jobs = bench.claim(3)
    bench.store.settle([ended(job, Action.BURY) for job in jobs])
    bench.sql(OLD)
    retried = jobs[1].id
    purged: list[int] = []
    purging = threading.Thread(target=lambda: purged.append(bench.store.purge_failed(86_400.0, 100)))
    where = f"job_id = {retried}"
    with bench.stranger(BACK + where, f"DELETE FROM qd_failed_jobs WHERE {where}") as operator:
        purging.start()
        wait_for(lambda: bench.lock_waits() == 1, 5, "the purge's DELETE to wait for the operator")
        operator.execute("COMMIT")
    purging.join(10)
    assert purged == [2]
    assert (bench.jobs(), bench.dead()) == (1, 0)
    assert [job.id for job in bench.claim(3)] == [retried]


def test_of_two_operators_who_retry_one_dead_letter_one_finds_it(server_bench: Bench) -> None:
    bench = server_bench
    bench.add(1)
    (job,) = bench.claim(1)
    bench.store.settle([ended(job, Action.BURY)])
    where = f"job_id = {job.id}"
    found: list[object] = []

    def other() -> None:
        try:
            found.append(bench.new_store("operator").retry_failed(job.id))
        except Exception as error:  # which one is what is asked
            found.append(type(error).__name__)

    second = threading.Thread(target=other)
    with bench.stranger(BACK + where, f"DELETE FROM qd_failed_jobs WHERE {where}") as first:
        second.start()
        wait_for(lambda: bench.lock_waits() == 1, 5, "the second to wait for the first")
        first.execute("COMMIT")
    second.join(10)
    assert found == ["NotFound"]
    assert (bench.jobs(), bench.dead()) == (1, 0)
