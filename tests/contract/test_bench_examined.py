"""What `qd bench` looks at closely: the rows that a server reads for a look and for a claim, both ways of claiming."""

from __future__ import annotations

from qd.bench.examined import Examiner
from qd.bench.plan import Plan
from qd.bench.result import Looked
from tests.contract.bench import Bench

PLAN = Plan(batch=20)


def examined(bench: Bench) -> dict[str, Looked] | None:
    """What it finds on this database."""
    bench.database.check()

    def enqueue(jobs: int) -> None:
        bench.add(jobs, queue=PLAN.queue)

    return Examiner(bench.store, PLAN, enqueue, lease=30.0).examine()


def test_each_state_of_the_queue_is_told_with_what_was_asked_for_and_what_came(server_bench: Bench) -> None:
    found = examined(server_bench)
    assert found is not None
    assert {state: (looked.asked, looked.claimed) for state, looked in found.items()} == {
        "look_empty": (0, 0),
        "claim_nearly_empty": (20, 1),
        "look_backlog": (0, 0),
        "claim_backlog": (20, 20),
        "claim_backlog_singly": (1, 1),
    }
    assert found["claim_backlog"].rows >= 20 > found["claim_backlog_singly"].rows >= 1
    assert found["look_empty"].rows < 50 and found["look_backlog"].rows < 50, "a look walks no backlog"


def test_a_database_that_does_not_count_is_asked_nothing_else(sqlite_bench: Bench) -> None:
    assert examined(sqlite_bench) is None
    assert sqlite_bench.one("SELECT COUNT(*) FROM qd_jobs") == 0
