"""A COMMIT without an answer: what stood is known again, what was lost is told, nothing runs twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qd.errors import ConnectionLost
from qd.job import ClaimedJob
from qd.outcome import Action, Outcome, OutcomeKind, Reason, Settlement, Verdict
from qd.store.mysql.database import MySqlDatabase
from qd.store.protocol import Claim, ClaimPath, StaleRow
from qd.store.store import SqlStore
from tests.contract.bench import Bench, ended, finished, new_token
from tests.contract.cutting import CuttingProxy

UNKNOWN = Outcome(OutcomeKind.REJECTED, Reason.UNKNOWN_TYPE, error="nobody knows it")


class Cut:
    """A store behind the proxy, beside a bench on the same rows."""

    def __init__(self, bench: Bench) -> None:
        assert bench.server is not None
        self.bench = bench
        self.proxy = CuttingProxy(bench.server.port)
        tls = bench.config.tls.model_copy(update={"mode": "disabled"})
        through = bench.config.model_copy(update={"port": self.proxy.port, "tls": tls, "statement_timeout": 5.0})
        forced = ClaimPath.CONDITIONAL if bench.kind == "conditional" else None
        self.database = MySqlDatabase(through, bench.database._shared.events, claim_path=forced)
        self.path = self.database.check().claim_path  # so that the first COMMIT that is cut isn't the probe's
        self.store: SqlStore = bench.new_store("cut", self.database)

    def claimed(self, count: int = 1) -> list[ClaimedJob]:
        """Jobs, claimed by the store behind the proxy."""
        self.bench.add(count)
        return self.bench.claim(count, self.store)

    def claim_cut(self, how: str, count: int) -> None:
        """Claims; the COMMIT that reserves the first row is lost."""
        self.proxy.cut = how
        self.proxy.spared = 3 if self.path is ClaimPath.CONDITIONAL else 0  # looks at three priorities
        with pytest.raises(ConnectionLost):
            self.bench.claim(count, self.store)

    def settle_cut(self, how: str, ends: list[Settlement]) -> None:
        """Settles; the COMMIT is lost `before` or `after` the server has it."""
        self.proxy.cut = how
        with pytest.raises(ConnectionLost) as lost:
            self.store.settle(ends)
        assert lost.value.outcome_unknown


@pytest.fixture
def cut(server_bench: Bench) -> Iterator[Cut]:
    made = Cut(server_bench)
    yield made
    made.proxy.close()


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("action", [Action.FINISH, Action.RETRY, Action.RELEASE, Action.BURY, Action.POSTPONE])
def test_an_end_of_unknown_outcome_is_settled_once_when_it_comes_again(cut: Cut, how: str, action: Action) -> None:
    (job,) = cut.claimed()
    end = ended(job, action, UNKNOWN if action is Action.POSTPONE else Outcome(OutcomeKind.FAILED, error="x"))
    cut.settle_cut(how, [end])
    assert cut.store.settle([end]) == [Verdict.SETTLED]
    assert cut.store.settle([end]) == [Verdict.LOST]
    assert cut.bench.jobs() + cut.bench.dead() == (0 if action is Action.FINISH else 1)


@pytest.mark.parametrize("how", ["before", "after"])
def test_many_ends_of_unknown_outcome_are_all_known_again(cut: Cut, how: str) -> None:
    jobs = cut.claimed(6)
    actions = [Action.FINISH, Action.RETRY, Action.BURY, Action.RELEASE, Action.FINISH, Action.FINISH]
    ends = [ended(job, action) for job, action in zip(jobs, actions, strict=True)]
    cut.settle_cut(how, ends)
    assert cut.store.settle(ends) == [Verdict.SETTLED] * 6
    assert (cut.bench.jobs(), cut.bench.dead()) == (2, 1)


@pytest.mark.parametrize("how", ["before", "after"])
def test_after_a_split_commit_the_rest_may_come_again_one_by_one(cut: Cut, how: str) -> None:
    ends = [finished(job) for job in cut.claimed(4)]
    cut.settle_cut(how, ends)
    assert [cut.store.settle([end]) for end in ends] == [[Verdict.SETTLED]] * 4


@pytest.mark.parametrize("action", [Action.FINISH, Action.RETRY, Action.RELEASE, Action.BURY])
def test_a_lease_that_went_to_another_before_the_end_came_again_is_told_as_lost(cut: Cut, action: Action) -> None:
    (job,) = cut.claimed()
    end = ended(job, action)
    cut.settle_cut("before", [end])
    _taken_back(cut.bench, job, 3)
    (theirs,) = cut.bench.claim(1)
    assert cut.store.settle([end]) == [Verdict.LOST]
    assert cut.bench.row(job.id, "reserved_by") == (theirs.token,)


@pytest.mark.parametrize("action", [Action.FINISH, Action.RETRY, Action.RELEASE, Action.BURY])
def test_a_lease_that_was_buried_by_the_sweep_is_told_as_lost(cut: Cut, action: Action) -> None:
    (job,) = cut.claimed()
    cut.settle_cut("before", [ended(job, action)])
    _taken_back(cut.bench, job, 1)
    assert cut.store.settle([ended(job, action)]) == [Verdict.LOST]
    assert cut.bench.store.failed(job.id).reason == "lost"


@pytest.mark.parametrize("action", [Action.FINISH, Action.RETRY, Action.RELEASE, Action.BURY])
def test_a_lease_that_went_to_another_who_buried_the_job_is_told_as_lost(cut: Cut, action: Action) -> None:
    (job,) = cut.claimed()
    end = ended(job, action)
    cut.settle_cut("before", [end])
    _taken_back(cut.bench, job, 3)
    (theirs,) = cut.bench.claim(1)
    assert cut.bench.store.settle([ended(theirs, Action.BURY)]) == [Verdict.SETTLED]
    assert cut.store.settle([end]) == [Verdict.LOST]


def test_a_retry_that_stood_and_is_claimed_by_another_by_now_is_settled(cut: Cut) -> None:
    (job,) = cut.claimed()
    end = ended(job, Action.RETRY)
    cut.settle_cut("after", [end])
    (theirs,) = cut.bench.claim(1)
    assert cut.store.settle([end]) == [Verdict.SETTLED]
    assert cut.bench.store.settle([finished(theirs)]) == [Verdict.SETTLED]


@pytest.mark.parametrize("how", ["before", "after"])
def test_a_claim_of_unknown_outcome_costs_no_job_and_no_attempt(cut: Cut, how: str) -> None:
    ids = cut.bench.add(3)
    cut.claim_cut(how, 3)
    jobs = [*cut.bench.claim(3, cut.store), *cut.bench.claim(3, cut.store)]
    assert sorted((job.id, job.attempt) for job in jobs) == [(job_id, 1) for job_id in ids]
    assert cut.store.settle([finished(job) for job in jobs]) == [Verdict.SETTLED] * 3


@pytest.mark.parametrize("next_act", ["claim from another queue", "resolve", "close"])
def test_a_claim_of_unknown_outcome_is_given_back_at_the_next_act(cut: Cut, next_act: str) -> None:
    (job_id,) = cut.bench.add(1, max_attempts=1)
    cut.claim_cut("after", 1)
    assert cut.bench.row(job_id, "lane", "attempts") == (1, 1)
    if next_act == "resolve":
        cut.store.resolve()
    elif next_act == "close":
        cut.store.close()
    else:
        assert cut.store.claim(Claim("other", 1, 60.0, new_token(), 3)) == []
    assert cut.bench.row(job_id, "lane", "attempts") == (0, 0)


def _taken_back(bench: Bench, job: ClaimedJob, limit: int) -> None:
    """The sweep of another daemon takes a stale row back."""
    bench.shift(job.id, -1)
    (row,) = bench.store.stale(["default"], 10)
    assert isinstance(row, StaleRow)
    assert bench.store.reclaim(row, limit) is (Verdict.SETTLED if limit > 1 else Verdict.BURIED)
    assert row.job_id == job.id
