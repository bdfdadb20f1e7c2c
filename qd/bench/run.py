"""The stages of a bench, in order, and the clearing up after it, whatever happened.

Each round: daemons are started and held, jobs are enqueued one by one and in bulk, then the daemons are
released and drain them; so neither their start nor the enqueuing is in the drain. Then single jobs are put
into an idle daemon, and claims are looked at closely. Nothing of it wakes or serves anybody else: the
daemons' sockets are in a folder of their own, and so are the jobs in a queue of their own.
May import: the other modules of this package, client, store, waking. Owns: all that a bench leaves behind.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import repeat

from qd.bench.conditions import observe, refuse_without_rights
from qd.bench.daemon import BenchDaemon, BenchFailed, await_finished, await_held, hear_all, stop_all
from qd.bench.examined import Examiner
from qd.bench.inside import RUNTIME, order
from qd.bench.interrupt import signals_as_exceptions
from qd.bench.plan import TYPE, Plan, daemon_config
from qd.bench.presence import Presence
from qd.bench.result import Latency, Looked, Result, Round
from qd.client import Client
from qd.clock import monotonic
from qd.config.model import Config, PollConfig
from qd.config.password import read_password
from qd.errors import StoreError
from qd.executors.environment import for_child, hide
from qd.store import open_session
from qd.store.callers.enqueue import enqueue
from qd.store.protocol import Database, FullStore
from qd.waking import wake

IDLE = 1.2
"""Seconds without work after which a daemon's polls are as slow as they get, with the polls as shipped."""

PICKED_UP_WITHIN = 60.0
"""Seconds after which a job that wasn't started counts as never to be."""

NOT_TOLD = "SQLite doesn't count the rows that it reads"

COUNTED = ("qd_claim_duration_seconds_count", "qd_database_statements_total", "qd_database_commits_total")
"""Counters of a daemon's metrics page: claims, statements, commits."""

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Shows how far a stage is: told its name and how many jobs it has, then each time how many more are done."""

Tell = Callable[[str], None]
"""Told, in one line, what could not be removed."""


class Bench:
    """One bench on one database.

    Args:
        config: the user's; only its database counts.
        database: the same, to be opened by us.
    """

    def __init__(self, config: Config, database: Database, plan: Plan, progress: Progress, tell: Tell) -> None:
        self._where, self._database, self._plan = config.database, database, plan
        self._progress, self._tell = progress, tell
        self._password = read_password(config.database)
        self._store: FullStore = database.store("bench")
        self._client = Client(config)
        self._producer = open_session(config.database, "bench producer")
        self._presence = Presence(self._store, plan.queue)
        self._daemons: list[BenchDaemon] = []
        self._environ: Mapping[str, str] = {}
        self._wrote = False

    def run(self) -> Result:
        """Measures, and removes what it wrote.

        Raises:
            StoreError: the database can't be used, for want of rights too, or was lost.
            BenchFailed: a daemon died, or nothing moves.
            Interrupted: by a signal.
        """
        with signals_as_exceptions(), _own_runtime():
            hide([self._password])
            self._environ = for_child()
            try:
                result = self._measure()
                self._clear()
            except BaseException:  # whatever it was: it is raised again
                self._clear_after_failure()
                raise
            return result

    # ------------------------------------------------------------------ stages

    def _measure(self) -> Result:
        plan = self._plan
        conditions = observe(self._where, self._database.check(), self._store)
        refuse_without_rights(self._store)
        self._wrote = True
        rounds = [self._round(f"round {number + 1} of {plan.rounds}") for number in range(plan.rounds)]
        pickup = self._pickups() if plan.pickups else {}
        looked = self._looked()
        return Result(plan, conditions, rounds, pickup, looked, None if looked else NOT_TOLD)

    def _round(self, name: str) -> Round:
        plan = self._plan
        daemons = self._started(plan.daemons, starts=False)
        singly = _rate(plan.singly, self._enqueue_singly)
        bulk = _rate(plan.jobs - plan.singly, self._enqueue_in_bulk)
        before = _counters(daemons)
        for daemon in daemons:
            daemon.release()
        with self._progress(name, plan.jobs) as done:
            await_finished(daemons, plan.jobs, done)
        after = _counters(daemons)
        claims, statements, commits = ((after[name] - before[name]) / plan.jobs for name in COUNTED)
        peaks = [peak for daemon in daemons if (peak := daemon.peak()) is not None]
        drain = plan.jobs / _span(daemons)
        self._stop()
        return Round(singly, bulk, drain, claims, statements, commits, max(peaks, default=None))

    def _pickups(self) -> dict[str, Latency]:
        """Jobs put one at a time into an idle daemon: with a wake, and found by its polls."""
        (daemon,) = self._started(1, starts=True)
        daemon.release()
        for _ in range(self._plan.warming):
            self._picked_up(daemon, woken=True)
        seconds: dict[str, list[float]] = {"client": [], "insert": []}
        with self._progress("single jobs into an idle daemon", 2 * self._plan.pickups) as done:
            for way in ("client", "insert") * self._plan.pickups:
                _listen(daemon, IDLE + random.uniform(0, PollConfig().max))
                seconds[way].append(self._picked_up(daemon, woken=way == "client"))
                done(1)
        self._stop()
        return {way: Latency(tuple(taken)) for way, taken in seconds.items()}

    def _picked_up(self, daemon: BenchDaemon, *, woken: bool) -> float:
        """Seconds from the COMMIT of one job to its start."""
        queue = self._plan.queue
        job = self._producer.transaction(lambda cursor: enqueue(cursor, TYPE, queue=queue))
        committed_at = monotonic()
        if woken:  # what `Client` does after its commit
            wake(queue)
        deadline = committed_at + PICKED_UP_WITHIN
        while job not in daemon.starts:
            if monotonic() > deadline:
                raise BenchFailed(f"a job wasn't started within {PICKED_UP_WITHIN:g} s")
            hear_all([daemon])
        return max(0.0, daemon.starts.pop(job) - committed_at)

    def _looked(self) -> Mapping[str, Looked] | None:
        lease = daemon_config(self._where, self._plan).queues[self._plan.queue].lease
        return Examiner(self._store, self._plan, self._enqueue_in_bulk, lease).examine()

    # ------------------------------------------------------------------ jobs and daemons

    def _enqueue_singly(self, jobs: int) -> None:
        for _ in range(jobs):
            self._client.enqueue(TYPE, queue=self._plan.queue)
            self._presence.show()

    def _enqueue_in_bulk(self, jobs: int) -> None:
        self._client.enqueue_many(repeat(self._plan.job(), jobs), each=lambda ids: self._presence.show())

    def _started(self, number: int, *, starts: bool) -> list[BenchDaemon]:
        """Daemons that are ready to be released."""
        self._presence.show()
        line = order(self._where, self._password, self._plan, starts=starts)
        for _ in range(number):
            self._daemons.append(BenchDaemon(line, self._plan.queue, self._environ))
        await_held(self._daemons)
        return list(self._daemons)

    def _stop(self) -> None:
        stop_all(self._daemons)
        self._daemons = []

    # ------------------------------------------------------------------ the end

    def _clear(self) -> None:
        """Ends the daemons, removes all that the queue has and their rows; may be repeated."""
        try:
            self._stop()
            if self._wrote:
                self._store.clear_own(self._plan.queue)
        finally:
            for opened in (self._client, self._producer, self._store):
                opened.close()

    def _clear_after_failure(self) -> None:
        """The same; what can't be done is told, and only a signal raised: why it ends is known already."""
        try:
            self._clear()
        except StoreError:
            self._tell_left()
        except BaseException:
            self._tell_left()
            raise

    def _tell_left(self) -> None:
        if self._wrote:
            self._tell(
                f"left behind in the database: what is in queue {self._plan.queue}, at most {self._plan.rows:,} rows; "
                "`qd bench --clean` removes it"
            )


@contextmanager
def _own_runtime() -> Iterator[None]:
    """A folder for our daemons' sockets alone, so that a thousand wakes wake nobody else's."""
    before = os.environ.get(RUNTIME)
    with tempfile.TemporaryDirectory(prefix="qd-bench-", ignore_cleanup_errors=True) as folder:
        os.environ[RUNTIME] = folder
        try:
            yield
        finally:
            del os.environ[RUNTIME]
            if before is not None:
                os.environ[RUNTIME] = before


def _rate(jobs: int, act: Callable[[int], None]) -> float:
    began = monotonic()
    act(jobs)
    return jobs / (monotonic() - began)


def _counters(daemons: Sequence[BenchDaemon]) -> dict[str, float]:
    """What all of them have counted together."""
    pages = [daemon.counters() for daemon in daemons]
    return {name: sum(page[name] for page in pages) for name in COUNTED}


def _span(daemons: Sequence[BenchDaemon]) -> float:
    """Seconds from the first claim of any to the last end of any; one that came too late for any has neither."""
    firsts = [daemon.seen.first for daemon in daemons if daemon.seen.first is not None]
    lasts = [daemon.seen.last for daemon in daemons if daemon.seen.last is not None]
    return max(lasts) - min(firsts)


def _listen(daemon: BenchDaemon, seconds: float) -> None:
    """Waits, but hears when the daemon ends meanwhile."""
    until = monotonic() + seconds
    while (left := until - monotonic()) > 0:
        hear_all([daemon], left)
