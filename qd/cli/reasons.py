"""Why a job isn't running, in words: all reasons at once, the one that holds it up first. Pure.

May import: shape, terminal, the pure modules, the protocol's values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches

from qd.cli.shape import NONE_SEEN, away, seen, stamp
from qd.cli.terminal import plural
from qd.duration import spell
from qd.store.protocol import POSITION_COUNTED, DaemonRow, FailedRow, Holder, JobRow

SOON = 10.0
"""Seconds after which a ready job should have been taken where nothing stands in its way."""


@dataclass(frozen=True)
class Reason:
    """One reason why a job isn't running.

    Attributes:
        code: for programs.
        text: for people: what is so, and what to do about it.
    """

    code: str
    text: str


@dataclass(frozen=True)
class Policy:
    """What this configuration says of the job's queue.

    Attributes:
        known: it is one of this configuration's.
        names: of all queues of this configuration.
        first: per worker that serves it, which queues that worker serves first.
        workers: of this configuration, by their labels.
    """

    max_attempts: int
    timeout: float
    known: bool = True
    names: tuple[str, ...] = ()
    first: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    workers: frozenset[str] = frozenset()

    def may_serve(self, queue: str, holder: Holder) -> bool:
        """Whether a thread that holds jobs serves the queue too, as far as its name tells; who can't be told may."""
        label = re.sub(r"-\d+$", "", holder.thread)
        if queue in holder.queues or label in self.first:
            return True
        if label in self.workers:
            return False
        named = set(label.split("+"))  # without a name of its own a worker is called by its queues
        return queue in named or not holder.queues <= named


@dataclass(frozen=True)
class Circumstances:
    """What stands around a job in qd_jobs.

    Attributes:
        daemons: those that live; None: not known.
        now: the database's.
        position: ready jobs before it in its queue; None: not known.
        holders: who holds jobs of the queues that the daemons of its queue serve; None: not known.
        with_ready: of the queues that workers serve before its own, those that have ready jobs and aren't paused.
        untold: what couldn't be asked, and why.
    """

    now: datetime
    policy: Policy
    paused: bool = False
    daemons: tuple[DaemonRow, ...] | None = ()
    position: int | None = 0
    holders: tuple[Holder, ...] | None = ()
    with_ready: frozenset[str] = frozenset()
    untold: tuple[str, ...] = ()

    def serving(self, queue: str) -> list[DaemonRow]:
        """The daemons that serve a queue."""
        return [daemon for daemon in self.daemons or () if queue in daemon.queues]


def why(job: JobRow, around: Circumstances) -> Iterator[Reason]:
    """All reasons of a job in qd_jobs."""
    if job.state == "reserved":
        yield from _of_reserved(job, around)
    else:
        yield from _of_waiting(job, around)
    if around.untold:
        yield Reason("untold", f"it couldn't be asked: {'; '.join(around.untold)}")


def _of_waiting(job: JobRow, around: Circumstances) -> Iterator[Reason]:
    """Those of a job that nobody holds, or that was left behind."""
    if job.state == "blocked":
        yield Reason("blocked", "it waits for a limit or for another job")
    if job.state == "stale":
        yield _of_stale(job, around)
    if job.state == "delayed":
        yield _of_delayed(job, around.now)
    if around.paused:
        yield Reason("paused", f"queue {job.queue} is paused; `qd queues resume {job.queue}` lets it go on")
    unserved = list(_of_daemons(job, around))
    yield from unserved
    if job.state == "ready":
        yield from _of_itself(job, around)
        yield from _of_order(job, around)
        if around.daemons is not None and not around.paused and not unserved:
            yield from _of_threads(job, around)


def why_dead(row: FailedRow, key_holder: int | None) -> Iterator[Reason]:
    """All reasons of a dead letter.

    Args:
        key_holder: the job that has its unique key now.
    """
    cure = f"`qd failed retry {row.job_id}` brings it back" if key_holder is None else "it can't be retried now"
    yield Reason(
        "failed",
        f"it is a dead letter since {stamp(row.failed_at)}, after {plural(row.attempts, 'attempt')}, "
        f"with reason {row.reason}{_error(row.error)}; {cure}",
    )
    if key_holder is not None:
        yield Reason(
            "key_taken",
            f"its unique key {row.unique_key!r} is held by job {key_holder}: a retry is refused until that one has "
            f"ended (`qd explain {key_holder}`)",
        )
    if row.others:
        older = f"{plural(row.others, 'older dead letter')} {'has' if row.others == 1 else 'have'} its id too"
        yield Reason("older", f"{older} (ids repeat after a restore); verbs act on the newest")


def _of_reserved(job: JobRow, around: Circumstances) -> Iterator[Reason]:
    now, timeout = around.now, around.policy.timeout
    then = "becomes a dead letter (`lost`), for this is its last attempt" if _last(job, around) else "is taken back"
    left = spell(max(0.0, (job.available_at - now).total_seconds()))
    yield Reason(
        "reserved",
        f"it is held: {job.reserved_by} took it {_ago(job.reserved_at, now)}, runs it or soon will, "
        f"and holds its lease for another {left} (until {stamp(job.available_at)}), or renews it; "
        f"{_of_owner(job, around)}. Should that process be gone, the job {then} after that",
    )
    if job.reserved_at is not None and (now - job.reserved_at).total_seconds() > timeout + SOON:
        yield Reason(
            "overdue",
            f"it has been held for longer than the {spell(timeout)} that a job of its queue may run: it couldn't be "
            "interrupted, or its end can't be written; the owner's log says which",
        )


GONE = "is listed no more: it stops, and ends what it runs, or is gone"
"""Of one that has taken its entry back, or hasn't renewed it for long."""


def _of_owner(job: JobRow, around: Circumstances) -> str:
    """What is known of the process that holds it."""
    if around.daemons is None:
        return "whether that process lives isn't known"
    owner = next((daemon for daemon in around.daemons if owner_of(daemon.id) == owner_of(job.reserved_by)), None)
    if owner is None:
        return f"that process {GONE}"
    if owner.silent:
        return f"that process is {seen(owner)}: it hangs, is gone or can't reach the database"
    return f"that process was seen {_ago(owner.seen_at, around.now)}"


def _last(job: JobRow, around: Circumstances) -> bool:
    """Whether it may not be started again."""
    return job.attempts >= (job.max_attempts or around.policy.max_attempts)


def owner_of(token: str | None) -> str:
    """`host:pid:nonce` of a claim's token, or of a daemon's id."""
    return ":".join((token or "").split(":")[:3])


def _of_stale(job: JobRow, around: Circumstances) -> Reason:
    lost = "makes it a dead letter (`lost`), for that was its last attempt, after two looks"
    then = lost if _last(job, around) else "takes it back after two looks"
    return Reason(
        "stale",
        f"it was taken by {job.reserved_by} {_ago(job.reserved_at, around.now)}, whose lease ran out "
        f"{_ago(job.available_at, around.now)}: its owner died or stalls ({_of_owner(job, around)}). A daemon that "
        f"serves the queue {then}; `qd recover` does it now",
    )


def _of_delayed(job: JobRow, now: datetime) -> Reason:
    due = f"it is due {away((job.available_at - now).total_seconds())} ({stamp(job.available_at)})"
    if job.attempts:
        due += f", waiting after attempt {job.attempts}{_error(job.last_error)}"
    return Reason("delayed", f"{due}; `qd jobs release {job.id}` makes it due now")


def _of_daemons(job: JobRow, around: Circumstances) -> Iterator[Reason]:
    """What the live daemons lack for this job."""
    serving, daemons = around.serving(job.queue), around.daemons
    if daemons is None:
        return
    if not serving:
        some = "none of the live daemons does" if len(daemons) > 1 else "the only live daemon doesn't"
        there = some if daemons else NONE_SEEN
        yield Reason("not_served", f"no daemon serves queue {job.queue}: {there}{_unknown(job.queue, around.policy)}")
        return
    if all(daemon.silent for daemon in serving):
        who = ", ".join(f"{daemon.host}:{daemon.pid} {seen(daemon)}" for daemon in serving)
        yield Reason(
            "silent",
            f"who serves queue {job.queue} is silent ({who}): it hangs, is gone or can't reach the database. Its log "
            "says which; where it is gone, start it again",
        )
    if not any(job.type in daemon.types for daemon in serving):
        yield _of_type(job, daemons)


def _of_type(job: JobRow, daemons: tuple[DaemonRow, ...]) -> Reason:
    """A type that nobody has a handler for who would take the job. As long as anybody has one it isn't buried."""
    elsewhere = sorted({name for daemon in daemons if job.type in daemon.types for name in daemon.queues})
    if elsewhere:
        then = (
            f"Daemons of other queues have one ({', '.join(elsewhere)}): as long as they do it waits here. Enqueue it "
            f"there and `qd jobs delete {job.id}`, or give a daemon of this queue the handler"
        )
    else:
        then = (
            "See `handlers:` in the configuration. Once it is due it becomes a dead letter, 15 minutes after a daemon "
            "first looked at it, unless any daemon has a handler by then; in a paused queue none looks"
        )
    return Reason("unknown_type", f"no daemon that serves queue {job.queue} has a handler for type {job.type}. {then}")


def _unknown(queue: str, policy: Policy) -> str:
    """What this configuration has to do with a queue that nobody serves."""
    if policy.known:
        return "; see `workers:` in the configuration"
    near = get_close_matches(queue, policy.names, n=1)
    return "; this configuration doesn't know it either" + (f": was {near[0]} meant?" if near else "")


def _of_itself(job: JobRow, around: Circumstances) -> Iterator[Reason]:
    """What is special about this one."""
    most = job.max_attempts or around.policy.max_attempts
    if _last(job, around):
        spent = (
            f"it has had {plural(job.attempts, 'attempt')} and may have {most}: the next claim makes it a dead letter"
        )
        yield Reason("spent", spent)
    elif job.crashes:
        yield Reason(
            "quarantine",
            f"its process went down with it {plural(job.crashes, 'time')}: only a thread that is free takes it, alone"
        )  # fmt: skip


def _of_order(job: JobRow, around: Circumstances) -> Iterator[Reason]:
    """What is taken before it: jobs of other queues, and of its own."""
    first = {
        worker: [queue for queue in queues if queue in around.with_ready]
        for worker, queues in around.policy.first.items()
    }
    if first and all(first.values()):
        named = "; ".join(f"worker {worker} takes {', '.join(queues)} first" for worker, queues in first.items())
        yield Reason("other_queues", f"by this configuration, {named}, and there are ready jobs")
    if around.position is None:
        return
    if around.position == 0:
        yield Reason("next", "it is ready and the next of its queue")
        return
    many = around.position >= POSITION_COUNTED
    before = f"{POSITION_COUNTED:,} or more ready jobs" if many else plural(around.position, "ready job")
    yield Reason("queued", f"it is ready, behind {before} of its queue")


def _of_threads(job: JobRow, around: Circumstances) -> Iterator[Reason]:
    """What those do that could run it, as far as rows tell.

    Whether a transaction has its row locked is not among it: who asks that locks the row himself for a
    moment, and a claim of that moment passes it over.
    """
    if around.holders is None:
        return
    names = {owner_of(daemon.id) for daemon in around.serving(job.queue) if not daemon.silent}
    busy = [holder for holder in around.holders if holder.name in names and around.policy.may_serve(job.queue, holder)]
    waited = (around.now - job.available_at).total_seconds()
    if busy:
        held: Counter[str] = Counter()
        for holder in busy:
            held[":".join(holder.name.split(":")[:2])] += holder.jobs
        who = ", ".join(f"{name} {jobs}" for name, jobs in held.items())
        yield Reason(
            "busy",
            f"the threads of its queue hold {plural(held.total(), 'job')} now ({who}), the longest for "
            f"{spell(max(holder.longest for holder in busy))}: it is taken when one is free",
        )
    elif waited > SOON and not around.untold:
        yield Reason(
            "not_taken",
            f"it has been due for {spell(waited)}, and the threads of its queue hold no job: something keeps them "
            "from claiming. Their daemon's log, `qd check`, /readyz and qd_workers{state=\"backoff\"} say what; where "
            "nothing keeps them, another transaction has its row locked (SHOW PROCESSLIST, "
            "information_schema.innodb_trx)",
        )  # fmt: skip


def _error(text: str | None) -> str:
    """The first line of an error, to stand behind what it belongs to."""
    first = (text or "").strip().split("\n")[0]
    return f": {first}" if first else ""


def _ago(moment: datetime | None, now: datetime) -> str:
    return "at an unknown time" if moment is None else away((moment - now).total_seconds())
