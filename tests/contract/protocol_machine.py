"""The acts of owners on a real store, each done in the model too: a Hypothesis state machine.

After every step the tables must say what the model says. `protocol_people` adds what people do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import qd
from qd.config.model import QueueConfig
from qd.errors import ConnectionLost
from qd.events import Events
from qd.job import ClaimedJob
from qd.outcome import Settlement, Verdict
from qd.payload import RawJson
from qd.store.protocol import Claim, ClaimPath, Renewal
from tests.contract.bench import Bench, new_token
from tests.contract.protocol_acts import ENDINGS, OWNERS, PICKS, Ending, Held, settlements_of, when
from tests.contract.protocol_model import Model, Row
from tests.contract.protocol_tables import LEASE, QUEUES, Owner, Tables

SWEEP_LEASE = 30.0
"""What the sweep believes the leases to be: its two looks must be a third of it apart."""

SPARE = 8
"""Rows without attempts left that a claim without SKIP LOCKED may find in its way and give up for now."""


class ProtocolMachine(RuleBasedStateMachine):
    """Two patient owners and one that isn't, on one database.

    Attributes:
        claims: every claim of an owner that hasn't crashed since; most aren't the newest of their job.
        newest: each job's newest token.
        hidden: ready jobs that may lie below a low watermark until a full look.
    """

    def __init__(self, bench: Bench, tables: Tables, path: ClaimPath) -> None:
        super().__init__()
        self.bench, self.tables, self.path = bench, tables, path
        self.model = Model()
        self.claims: list[Held] = []
        self.newest: dict[int, str] = {}
        self.hidden: set[int] = set()
        self.numbers = self.moves = 0
        self.policies: dict[str, QueueConfig] = {}
        self.desk = bench.again(Events()).store("desk")

    @initialize()
    def begin(self) -> None:
        """Empty tables, posts in their places, new owners."""
        self.tables.clear()
        self.policy("default", 3)
        self.policy("other", 2)
        self.owners = [Owner(self.bench, f"owner {at}", self.path, self.policies, patient=at < 2) for at in range(3)]
        self.owners[0].store.ensure_posts(QUEUES)
        self.posts = self.tables.posts()
        self.caller = self.tables.connect()
        for queue, most, delay in (("default", None, 0), ("default", 1, 0), ("other", None, 0), ("default", 3, LEASE)):
            self.enqueue(queue, 2, None, most, delay, 2, True)

    def policy(self, queue: str, most: int) -> None:
        """What the configuration says from now on."""
        self.model.policy[queue] = most
        self.policies[queue] = QueueConfig(lease=SWEEP_LEASE, max_attempts=most)

    def teardown(self) -> None:
        for store in (self.desk, *(owner.store for owner in getattr(self, "owners", ()))):
            store.close()
        if hasattr(self, "caller"):
            self.caller.close()

    # ------------------------------------------------------------------ what must always be so

    @invariant()
    def tables_say_what_the_model_says(self) -> None:
        jobs, letters = self.tables.jobs(), self.tables.letters()
        assert jobs == self.model.jobs
        assert letters == self.model.letters
        places = [*jobs, *letters, *self.model.ended]
        assert len(places) == len(set(places)), "a job is in two places"
        for job, row in jobs.items():
            assert (row.lane == 1) == (row.owner is not None)
            assert row.attempts == self.model.claims[job] - self.model.refunds[job]
            assert row.owner in (None, self.newest.get(job)), "held by another claim than its newest"
        assert self.tables.posts() == self.posts

    @invariant()
    def the_store_counts_what_the_model_counts(self) -> None:
        for depth in self.desk.depths():
            states = {state: getattr(depth, state) for state in ("ready", "delayed", "reserved", "stale", "failed")}
            assert {state: count for state, count in states.items() if count} == +self.model.counts(depth.queue)
            assert depth.paused == (depth.queue in self.model.paused)

    # ------------------------------------------------------------------ enqueuing

    @rule(
        queue=st.sampled_from(QUEUES), priority=st.integers(0, 3), key=st.sampled_from([None, None, None, "a", "b"]),
        most=st.sampled_from([None, None, 1, 2, 3]), delay=st.sampled_from([0, 0, 0, LEASE]),
        count=st.integers(1, 5), commit=st.sampled_from([True, True, True, False]),
    )  # fmt: skip
    def enqueue(
        self, queue: str, priority: int, key: str | None, most: int | None, delay: float, count: int, commit: bool
    ) -> None:
        """Several jobs in a caller's transaction; one that finds its key taken is the one that has it."""
        made: dict[int, Row] = {}
        with closing(self.caller.cursor()) as cursor:
            for _ in range(count):
                self.numbers += 1
                payload = f'{{"n": {self.numbers}}}'
                job = qd.enqueue(
                    cursor, "noop", RawJson(payload), queue=queue, delay=delay, priority=priority,
                    unique_key=key, max_attempts=most,
                )  # fmt: skip
                holder = self.model.of_key(queue, key) or (next(iter(made)) if key and made else None)
                assert holder is None or job == holder, "another job than the one that has the key"
                if holder is None:
                    made[job] = Row(queue, payload, priority, most, key, later=delay > 0)
        (self.caller.commit if commit else self.caller.rollback)()
        if commit:
            assert not made.keys() & (self.model.jobs.keys() | self.model.letters.keys() | self.model.ended.keys())
            self.model.jobs.update(made)

    # ------------------------------------------------------------------ claiming

    @rule(
        at=OWNERS, queue=st.sampled_from(QUEUES), limit=st.sampled_from([1, 2, 3, 8]),
        looking=st.sampled_from(["quick", "full", "none"]),
    )  # fmt: skip
    def claim(self, at: int, queue: str, limit: int, looking: str) -> None:
        """After a look every live job is found, in order; without one none that mustn't be."""
        if looking != "none":
            self._look(at, full=looking == "full")
        ready = self._in_order(queue)
        sure = looking == "full" or (looking == "quick" and self.hidden.isdisjoint(ready))
        self._took(at, queue, limit, ready, self._claim(at, queue, limit), sure=sure)

    @rule(
        at=OWNERS, queue=st.sampled_from(QUEUES), limit=st.sampled_from([1, 3]),
        how=st.sampled_from(["before", "after"]), spared=st.integers(0, 2), rival=st.booleans(),
    )  # fmt: skip
    def claim_without_an_answer(self, at: int, queue: str, limit: int, how: str, spared: int, rival: bool) -> None:
        """Whatever stands of it is given back uncounted, and nobody else has got it before that."""
        owner = self.owners[at]
        ready = self._in_order(queue)
        owner.session.lose, owner.session.spared = how, spared if self.path is ClaimPath.CONDITIONAL else 0
        try:
            got = self._claim(at, queue, limit)
        except ConnectionLost:
            got = []
        owner.session.lose, owner.session.spared = None, 0
        held = {job for job, row in self.tables.jobs().items() if job in ready and row.lane == 1}
        self._took(at, queue, limit, ready, got, sure=False)
        if rival:
            left = [job for job in ready if job not in held and job in self.model.jobs]
            other = (at + 1) % 3
            self._took(other, queue, 3, left, self._claim(other, queue, 3), sure=False)
        owner.store.resolve()

    def _look(self, at: int, *, full: bool) -> None:
        seen = self.owners[at].store.look(QUEUES, full=full)
        assert seen.paused == self.model.paused
        for queue in QUEUES:
            ready = self.model.ready(queue)
            found = set(seen.hits.get(queue, ()))
            due = {self.model.jobs[job].priority for job in ready}
            assert found <= due
            if queue in self.model.paused:
                assert not found
            elif full or self.hidden.isdisjoint(ready):
                assert found == due

    def _in_order(self, queue: str) -> list[int]:
        dues = self.tables.dues()
        return sorted(self.model.ready(queue), key=lambda job: (dues[job], job))

    def _claim(self, at: int, queue: str, limit: int) -> list[ClaimedJob]:
        self.token = new_token()
        claim = Claim(queue, limit, LEASE, self.token, self.model.policy[queue])
        return self.owners[at].store.claim(claim)

    def _took(self, at: int, queue: str, limit: int, ready: list[int], got: list[ClaimedJob], *, sure: bool) -> None:
        """Holds what a claim gave against what it could have given. `sure`: it must have seen all ready jobs."""
        model, ids = self.model, [job.id for job in got]
        spent = [job for job in ready if model.spent(model.jobs[job])]
        live = [job for job in ready if job not in spent]
        level = {job: model.jobs[job].priority for job in ready}
        buried = [job for job in ready if job in self.tables.letters()]
        assert set(buried) <= set(spent), "a job that had attempts left was buried"
        assert len(ids) <= limit and set(ids) <= set(live), "a job that isn't ready, or has no attempt left"
        assert len({level[job] for job in ids}) <= 1
        assert len(ids) <= 1 or not any(model.alone(model.jobs[job]) for job in ids), "in a batch, but must be alone"
        lane = [job for job in live if ids and level[job] == level[ids[0]]]
        assert ids == [job for job in lane if job in ids], "not in order"
        if sure and not ids:
            assert not live or len(spent) > limit + SPARE, "ready jobs, but an empty claim"
        elif sure:
            assert level[ids[0]] == min(level[job] for job in live), "a more urgent job was passed over"
            plain = [job for job in lane if not model.alone(model.jobs[job])]
            assert ids == (lane[:1] if model.alone(model.jobs[lane[0]]) else plain[: len(ids)])
            last = ready.index(ids[-1])
            assert all(job in buried for job in spent if level[job] == level[ids[0]] and ready.index(job) < last)
        for job in buried:
            model.bury_spent(job)
        for job in got:
            self._begun(at, job)

    def _begun(self, at: int, job: ClaimedJob) -> None:
        row = self.model.jobs[job.id]
        said = (job.queue, job.payload, job.priority, job.attempt, job.max_attempts, job.crashes, job.token)
        expected = (row.queue, row.payload, row.priority, row.attempts + 1, row.max_attempts, row.crashes, self.token)
        assert said == expected
        assert job.attempt <= self.model.limit(row)
        self.model.claimed(job.id, job.token)
        self.claims.append(Held(job, at))
        self.newest[job.id] = job.token
        self.hidden.discard(job.id)

    # ------------------------------------------------------------------ renewing

    @rule(picks=PICKS)
    @when(lambda self: bool(self.claims))
    def renew(self, picks: list[int]) -> None:
        """Also by those who have lost it, and whatever the time."""
        for at, chosen in self._by_owner(self._picked(picks)):
            self._renewed(at, chosen, locked=set())

    def _renewed(self, at: int, chosen: list[Held], locked: set[int]) -> None:
        found = self.owners[at].store.renew([held.lease() for held in chosen])
        assert found == [self._renewal(held, locked) for held in chosen]
        for held, renewal in zip(chosen, found, strict=True):
            if renewal is Renewal.RENEWED:
                self.model.jobs[held.job.id].later = True

    def _renewal(self, held: Held, locked: set[int]) -> Renewal:
        if held.job.id not in self.model.jobs:
            return Renewal.GONE
        if self.model.holder(held.job.id) != held.job.token:
            return Renewal.LOST
        return Renewal.LOCKED if held.job.id in locked else Renewal.RENEWED

    def _picked(self, picks: Iterable[int]) -> list[Held]:
        newest_first = self.claims[::-1]
        return [newest_first[at] for at in dict.fromkeys(pick % len(newest_first) for pick in picks)]

    def _by_owner(self, chosen: list[Held]) -> list[tuple[int, list[Held]]]:
        owners = dict.fromkeys(held.owner for held in chosen)
        return [(at, [held for held in chosen if held.owner == at]) for at in owners]

    # ------------------------------------------------------------------ settling

    @rule(picks=PICKS, ends=ENDINGS)
    @when(lambda self: bool(self.claims))
    def settle(self, picks: list[int], ends: list[Ending]) -> None:
        """Several ends in one call, some of them by who has lost his lease."""
        for at, chosen in self._by_owner(self._picked(picks)):
            settlements = settlements_of(chosen, ends)
            assert self.owners[at].store.settle(settlements) == self._settled(at, chosen, settlements)

    @rule(picks=PICKS, endings=ENDINGS, how=st.sampled_from(["before", "after"]), between=st.booleans())
    @when(lambda self: any(not held.settled for held in self.claims))
    def settle_without_an_answer(self, picks: list[int], endings: list[Ending], how: str, between: bool) -> None:
        """Said again, it is told whether it stands, also when others have gone on with the job since."""
        open_ends = [held for held in self._picked(picks) if not held.settled] or [self._unsettled()]
        at, chosen = self._by_owner(open_ends)[0]
        ends, owner = settlements_of(chosen, endings), self.owners[at]
        owner.session.lose = how
        try:
            owner.store.settle(ends)
            raise AssertionError("its COMMIT was not lost")
        except ConnectionLost:
            pass
        told = self._settled(at, chosen, ends) if how == "after" else None
        if between:
            self._others_go_on(at, chosen)
        said = owner.store.settle(ends)
        told = told or self._settled(at, chosen, ends)
        for end, was, verdict in zip(ends, told, said, strict=True):
            trace = end.job.id in self.model.jobs or end.job.id in self.model.letters
            assert verdict is was or (was is Verdict.LOST and not trace), f"{end.job.id}: {verdict}, it was {was}"

    def _unsettled(self) -> Held:
        return next(held for held in reversed(self.claims) if not held.settled)

    def _others_go_on(self, at: int, chosen: list[Held]) -> None:
        """Another process claims what is ready, or takes back what has run out."""
        for held in chosen:
            if self.model.holder(held.job.id) == held.job.token:
                self.tables.move(held.job.id, -5.0)
                self.model.jobs[held.job.id].later = False
                limits = dict(self.model.policy)
                self.desk.recover(held.job.queue, limits, 3)
                self.recovered(held.job.queue)
                break
        other, queue = (at + 1) % 3, chosen[0].job.queue
        self._took(other, queue, 8, self._in_order(queue), self._claim(other, queue, 8), sure=False)

    def recovered(self, queue: str, spared: Collection[int] = ()) -> tuple[int, int]:
        """The model's part of taking back all stale jobs of a queue, but for some."""
        rows = self.model.jobs.items()
        stale = [job for job, row in rows if row.queue == queue and row.state() == "stale" and job not in spared]
        verdicts = [self.model.reclaim(job) for job in stale]
        return verdicts.count(Verdict.SETTLED), verdicts.count(Verdict.BURIED)

    def _settled(self, at: int, chosen: list[Held], ends: list[Settlement]) -> list[Verdict]:
        verdicts = [self.model.settle(end, patient=self.owners[at].patient) for end in ends]
        for held, verdict in zip(chosen, verdicts, strict=True):
            assert verdict is Verdict.LOST or not held.settled, "settled twice by one claim"
            held.settled |= verdict is not Verdict.LOST
        return verdicts
