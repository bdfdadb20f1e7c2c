"""The rest of the protocol's machine: time, crashes, sweeps, people's verbs, handlers and strangers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from qd.errors import Refused
from qd.events import StaleReclaimed
from qd.outcome import Verdict
from qd.store.callers.complete import complete
from qd.store.protocol import ClaimPath, Filter
from tests.contract.protocol_acts import ENDING, OWNERS, PICKS, Ending, Held, settlements_of, when
from tests.contract.protocol_machine import SWEEP_LEASE, ProtocolMachine
from tests.contract.protocol_tables import QUEUES

PICK = st.integers(0, 40)
VERBS = ["recovers"] * 3 + ["releases"] * 3 + ["deletes", "deletes_many", "pauses", "resumes", "configures"]
APART = 12.0
"""Seconds between the sweep's two looks, for its lease of 30 s: a third of it and the keeper's pace."""

assert max(1.0, SWEEP_LEASE / 3) <= APART


def _in_state(*states: str) -> Callable[[ProtocolMachine], bool]:
    return lambda self: any(row.state() in states for row in self.model.jobs.values())


class WholeMachine(ProtocolMachine):
    """Everything that may be done to the rows."""

    def _job(self, pick: int, *states: str) -> int:
        jobs = sorted(job for job, row in self.model.jobs.items() if not states or row.state() in states)
        return jobs[pick % len(jobs)]

    def queue_of(self, job: int) -> str:
        """Where it waits or runs."""
        return self.model.jobs[job].queue

    # ------------------------------------------------------------------ time, and owners' deaths

    @rule(pick=PICK)
    @when(_in_state("reserved"))
    def a_lease_runs_out(self, pick: int) -> None:
        self.tables.move(job := self._job(pick, "reserved"), -5.0)
        self.model.jobs[job].later = False

    @rule(pick=PICK)
    @when(_in_state("delayed"))
    def a_delay_is_over(self, pick: int) -> None:
        self.tables.move(job := self._job(pick, "delayed"), 0.0)
        self.model.jobs[job].later = False

    @rule(pick=PICK)
    @when(_in_state("ready", "delayed"))
    def a_stranger_dates_a_job_back(self, pick: int) -> None:
        """It may then lie below the low watermarks, where only a full look finds it."""
        self.tables.move(job := self._job(pick, "ready", "delayed"), -3600.0)
        self.model.jobs[job].later = False
        self.hidden.add(job)

    @rule(pick=PICK, at=OWNERS, end=ENDING)
    @when(_in_state("reserved"))
    def another_takes_over(self, pick: int, at: int, end: Ending) -> None:
        """The shortest way to two who believe that they hold a job; and the first one ends it, late."""
        job = self._job(pick, "reserved")
        first = [held for held in self.claims if held.job.token == self.model.holder(job) and held.job.id == job]
        self.a_lease_runs_out(pick)
        self.recovers(0, queue := self.queue_of(job))
        for _ in range(len(self.model.ready(queue))):
            if job in self.model.jobs and self.model.holder(job) is None:
                self.claim(at, queue, 8, "full")
        for held in first:
            self._renewed(held.owner, [held], locked=set())
            ends = settlements_of([held], [end])
            assert self.owners[held.owner].store.settle(ends) == self._settled(held.owner, [held], ends)

    @rule(at=OWNERS)
    def an_owner_crashes(self, at: int) -> None:
        self.claims = [held for held in self.claims if held.owner != at]

    # ------------------------------------------------------------------ sweeping

    @rule(
        at=OWNERS, pick=PICK,
        rounds=st.lists(
            st.tuples(
                st.sampled_from([0.0, 5.0, 11.0, 12.0, 13.0]),
                st.sampled_from(["nothing", "nothing", "nothing", "trouble", "renewed", "ran out", "ran out again"]),
            ),
            min_size=1, max_size=4,
        ),
    )  # fmt: skip
    def sweeps(self, at: int, pick: int, rounds: list[tuple[float, str]]) -> None:
        """Rounds of one owner's sweep; before each some time passes, and something may have happened."""
        for seconds, happened in rounds:
            if happened == "ran out" and _in_state("reserved")(self):
                self.a_lease_runs_out(pick)
            elif happened == "ran out again" and _in_state("stale")(self):
                self.tables.move(self._job(pick, "stale"), -1.0)
            elif happened == "renewed" and self.claims:
                self.renew([pick])
            self._sweep(at, seconds, trouble=happened == "trouble")

    def _sweep(self, at: int, seconds: float, *, trouble: bool) -> None:
        """Takes back what was stale at a look long enough ago, unchanged, with no trouble since."""
        owner = self.owners[at]
        owner.clock += seconds
        if trouble:
            owner.troubled = owner.clock
        dues, rows = self.tables.dues(), self.model.jobs.items()
        keys = [(job, str(row.owner), dues[job]) for job, row in rows if row.state() == "stale"]
        owner.seen = {key: self._first_seen(at, key) for key in keys}
        published = len(owner.published)
        owner.sweep.run_once()
        taken = [key for key, first in owner.seen.items() if owner.clock - first >= APART]
        verdicts = {key[0]: self.model.reclaim(key[0]) for key in taken}
        for key in taken:
            del owner.seen[key]
        told = [event for event in owner.published[published:] if isinstance(event, StaleReclaimed)]
        assert {event.job_id: event.dead_lettered for event in told} == {
            job: verdict is Verdict.BURIED for job, verdict in verdicts.items()
        }
        assert len(told) == len(taken)

    @rule(at=OWNERS, pick=PICK, happened=st.sampled_from(["renewed", "ran out again", "released", "completed"]))
    @when(_in_state("stale"))
    def a_look_at_stale_rows_is_out_of_date(self, at: int, pick: int, happened: str) -> None:
        """What has changed since the look is left as it is, also where it is stale again."""
        owner, job = self.owners[at], self._job(pick, "stale")
        row = self.model.jobs[job]
        rows = {row.job_id: row for row in owner.store.stale(QUEUES, 200)}
        holders = [held for held in self.claims if held.job.token == row.owner and held.job.id == job]
        if happened == "ran out again":
            self.moves += 1
            self.tables.move(job, -100.0 * self.moves)  # never the due time that it had, not even by chance
        elif happened == "released":
            self.releases(sorted(self.model.jobs).index(job), row.queue)
        elif happened == "completed" and holders:
            self.handlers_complete([self.claims[::-1].index(holders[0])], commit=True, meanwhile=False)
        elif holders:
            self._renewed(holders[0].owner, holders, locked=set())
        else:
            return
        changed = self.model.jobs.get(job) != row or row.state() != "stale" or happened == "ran out again"
        verdict = owner.store.reclaim(rows[job], self.model.policy[row.queue])
        assert verdict is (Verdict.LOST if changed else self.model.reclaim(job))

    def _first_seen(self, at: int, key: tuple[int, str, str]) -> float:
        owner = self.owners[at]
        first = owner.seen.get(key, owner.clock)
        return first if first > owner.troubled else owner.clock

    def recovers(self, pick: int, queue: str) -> None:
        done = self.desk.recover(queue, dict(self.model.policy), 3)
        assert done == self.recovered(queue)

    # ------------------------------------------------------------------ people

    @rule(
        verb=st.sampled_from(VERBS),
        pick=PICK, queue=st.sampled_from(QUEUES),
    )  # fmt: skip
    @when(lambda self: bool(self.model.jobs))
    def a_person(self, verb: str, pick: int, queue: str) -> None:
        """One of the verbs, on one job or on one queue."""
        getattr(self, verb)(pick, queue)

    def releases(self, pick: int, queue: str) -> None:
        row = self.model.jobs[job := self._job(pick)]
        state, out_of_attempts = row.state(), self.model.spent(row)
        refused = state == "reserved" or (state == "stale" and out_of_attempts)
        assert refused == _refused(lambda: self.desk.release_job(job, self.model.policy[row.queue]))
        if state == "delayed":
            row.later = False
        elif state == "stale" and not refused:
            self.model.reclaim(job)

    def deletes(self, pick: int, queue: str) -> None:
        row = self.model.jobs[job := self._job(pick)]
        alive = row.state() == "reserved"
        assert alive == _refused(lambda: self.desk.delete_job(job))
        if not alive:
            self.model.delete(job)

    def deletes_many(self, pick: int, queue: str) -> None:
        state = ("ready", "delayed", "stale")[pick % 3]
        where = Filter(queue=queue, state=state)
        ids = [job for job, row in self.model.jobs.items() if row.queue == queue and row.state() == state]
        assert sorted(self.desk.job_ids(where)) == sorted(ids)
        assert self.desk.delete_jobs(sorted(self.model.jobs), where) == len(ids)
        for job in ids:
            self.model.delete(job)

    @rule(pick=PICK)
    @when(lambda self: bool(self.model.letters))
    def a_person_retries(self, pick: int) -> None:
        job = sorted(self.model.letters)[pick % len(self.model.letters)]
        brought: list[int] = []
        refused = _refused(lambda: brought.append(self.desk.retry_failed(job)))
        assert refused is not self.model.retry(job)
        assert brought == ([] if refused else [job]), "a job keeps its id"

    @rule(pick=PICK, purge=st.booleans())
    @when(lambda self: bool(self.model.letters))
    def a_dead_letter_is_thrown_away(self, pick: int, purge: bool) -> None:
        job = sorted(self.model.letters)[pick % len(self.model.letters)]
        if purge:
            self.tables.outdate(job)
            assert self.owners[0].store.purge_failed(500.0, 10) == 1
        else:
            self.desk.delete_failed(job)
        self.model.delete_letter(job)

    def pauses(self, pick: int, queue: str) -> None:
        self.desk.pause(queue)
        self.model.paused.add(queue)

    def resumes(self, pick: int, queue: str) -> None:
        self.desk.resume(queue)
        self.model.paused.discard(queue)

    def configures(self, pick: int, queue: str) -> None:
        self.policy(queue, 1 + pick % 3)

    # ------------------------------------------------------------------ handlers, and strangers

    @rule(picks=PICKS, commit=st.booleans(), meanwhile=st.booleans())
    @when(lambda self: bool(self.claims))
    def handlers_complete(self, picks: list[int], commit: bool, meanwhile: bool) -> None:
        """In one transaction of theirs; a renewal meanwhile neither waits for it nor takes it for lost."""
        chosen = self._picked(picks)
        ours = {held.job.id for held in chosen if self.model.holder(held.job.id) == held.job.token}
        with closing(self.caller.cursor()) as cursor:
            if self.bench.server is not None:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            for held in chosen:
                matches = self.model.holder(held.job.id) == held.job.token
                assert complete(cursor, held.job.id, held.job.token) is matches
            if meanwhile and self.bench.server is not None:
                for at, theirs in self._by_owner(chosen):
                    self._renewed(at, theirs, locked=ours)
        (self.caller.commit if commit else self.caller.rollback)()
        for held in chosen if commit else ():
            if self.model.holder(held.job.id) == held.job.token:
                self._finished(held)

    def _finished(self, held: Held) -> None:
        assert not held.settled, "settled twice by one claim"
        held.settled = True
        self.model.finish(held.job.id)

    @rule(
        picks=PICKS, at=OWNERS, queue=st.sampled_from(QUEUES), limit=st.sampled_from([1, 3]),
        act=st.sampled_from(["claim", "renew", "sweep", "recover"]),
    )  # fmt: skip
    @when(lambda self: self.bench.server is not None and bool(self.model.jobs))
    def a_stranger_has_locked_rows(self, picks: list[int], at: int, queue: str, limit: int, act: str) -> None:
        """Nobody waits for him, what he has locked stays as it is, and its neighbours don't mind."""
        jobs = sorted(self.model.jobs)
        locked = {jobs[pick % len(jobs)] for pick in picks}
        with self.tables.locked(sorted(locked)):
            getattr(self, f"_{act}_beside")(locked, at, queue, limit)

    def _claim_beside(self, locked: set[int], at: int, queue: str, limit: int) -> None:
        self._look(at, full=True)
        free = [job for job in self._in_order(queue) if job not in locked]
        got = self._claim(at, queue, limit)
        live = [job for job in free if not self.model.spent(self.model.jobs[job])]
        if self.path is ClaimPath.SKIP_LOCKED:
            assert got or not live or len(free) - len(live) > 50, "ready jobs beside locked ones, but an empty claim"
        self._took(at, queue, limit, free, got, sure=False)
        self.hidden |= locked & set(self.model.ready(queue))  # a full batch may have moved the mark past them

    def _renew_beside(self, locked: set[int], at: int, queue: str, limit: int) -> None:
        for owner, chosen in self._by_owner(self.claims[-10:]):
            self._renewed(owner, chosen, locked)

    def _sweep_beside(self, locked: set[int], at: int, queue: str, limit: int) -> None:
        store = self.owners[at].store
        for row in store.stale([queue], 100):
            verdict = store.reclaim(row, self.model.policy[queue])
            expected = Verdict.LOST if row.job_id in locked else self.model.reclaim(row.job_id)
            assert verdict is expected

    def _recover_beside(self, locked: set[int], at: int, queue: str, limit: int) -> None:
        done = self.desk.recover(queue, dict(self.model.policy), 3)
        assert done == self.recovered(queue, spared=locked)


def _refused(act: Callable[[], Any]) -> bool:
    try:
        act()
    except Refused:
        return True
    return False
