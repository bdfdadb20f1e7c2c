"""The drain: the same no-op jobs, added first and then taken by one worker process, in qd, its peers and a raw loop.

usage: python -m benchmarks.drain [--rounds 3] [--scale 1.0] [NAME...]     names as in `drain.NAME`; all without any

Round for round each contestant has its turn: a fresh place in its backend, the jobs added (and their rates noted),
its workers started, the time taken from the first job's run to the last one's end in the backend, and counted in a
file which jobs ran. Only the backend whose turn it is runs. A contestant that can't be run is a row that says why.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.backends.backend import ROOT, Backend
from benchmarks.backends.mariadb import MariaDB
from benchmarks.backends.postgres import Postgres
from benchmarks.backends.redis import Redis
from benchmarks.environments import Environments
from benchmarks.measured import Measured, Plan, of_rounds
from benchmarks.peers.celery import Celery
from benchmarks.peers.contestant import Contestant, Turn
from benchmarks.peers.django_tasks import DjangoTasks
from benchmarks.peers.dramatiq import Dramatiq
from benchmarks.peers.huey import Huey
from benchmarks.peers.pgqueuer import PgQueuer
from benchmarks.peers.procrastinate import Procrastinate
from benchmarks.peers.qd import Qd
from benchmarks.peers.raw_loop import RawLoop
from benchmarks.peers.rq import RQ
from benchmarks.peers.taskiq import Taskiq
from benchmarks.processes import NotRun, Process
from benchmarks.targets import NOT_RUN
from benchmarks.watched import Drained, Ran, watched

PAIR = 100_000
"""Jobs for two processes side by side: the second starts a little later, which more jobs make small."""

SINGLY = 20_000
"""Jobs for those that take one at a time."""


@dataclass
class Results:
    """What the rounds gave for one contestant."""

    contestant: Contestant
    rates: list[float] = field(default_factory=list)
    added: dict[str, list[float]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    who: str = ""

    def take(self, drained: Drained) -> None:
        """Notes a round's drain."""
        self.rates.append(drained.rate)
        if drained.faults():
            self.faults.append(drained.faults())

    def add(self, rates: dict[str, float]) -> None:
        """Notes a round's enqueue rates."""
        for how, rate in rates.items():
            self.added.setdefault(how, []).append(rate)

    def rows(self, jobs: int) -> list[Measured]:
        """Its figures."""
        contestant, whys = self.contestant, "; ".join(dict.fromkeys(self.failed))
        if not self.rates:
            return [Measured(f"drain.{contestant.name}", 0.0, "jobs/s", (), f"{NOT_RUN}: {whys}")]
        said = [self.who, contestant.setting, f"{jobs:,} jobs", contestant.promise, *dict.fromkeys(self.faults)]
        if whys:
            said.append(f"{len(self.failed)} of {len(self.failed) + len(self.rates)} rounds {NOT_RUN}: {whys}")
        rows = [of_rounds(f"drain.{contestant.name}", self.rates, "jobs/s", "; ".join(word for word in said if word))]
        if contestant.adds_as:
            key = f"enqueue.{contestant.adds_as}"
            rows += [of_rounds(f"{key}.{how}", rates, "jobs/s", HOW[how]) for how, rates in self.added.items()]
        return rows


HOW = {"single": "one connection, one job a call", "bulk": "one connection, 1,000 jobs a call"}


def field_of(folder: Path, plan: Plan, stack: ExitStack) -> list[Contestant]:
    """All contestants, those of one backend together; the stack removes the backends."""
    environments = Environments(folder / "venvs", plan.say)
    mariadb, postgres, redis, synced = MariaDB(), Postgres(), Redis(), Redis(synced=True)
    for backend in (mariadb, postgres, redis, synced):
        stack.callback(backend.discard)
    return [
        RawLoop(mariadb, 100),
        Qd(mariadb, "auto"),
        Qd(mariadb, 100),
        Qd(mariadb, "auto", daemons=2, jobs=PAIR),
        RawLoop(mariadb, 10),
        RawLoop(mariadb, 1, jobs=SINGLY),
        Qd(mariadb, 1, jobs=SINGLY),
        DjangoTasks(environments, mariadb),
        PgQueuer(environments, postgres, 10),
        PgQueuer(environments, postgres, 250),
        PgQueuer(environments, postgres, 250, processes=2, jobs=PAIR),
        Procrastinate(environments, postgres),
        Celery(environments, redis),
        RQ(environments, redis),
        Dramatiq(environments, redis),
        Huey(environments, redis),
        Taskiq(environments, redis),
        Huey(environments, synced, ".synced", jobs=SINGLY),
        Taskiq(environments, synced, ".synced", jobs=SINGLY),
    ]


def measure(plan: Plan, names: Sequence[str] = ()) -> list[Measured]:
    """The section: every contestant in every round.

    Args:
        names: only these; none: all.
    """
    with ExitStack() as stack:
        contestants = [one for one in field_of(plan.folder, plan, stack) if not names or one.name in names]
        results = [Results(contestant) for contestant in contestants]
        running = Running(plan)
        for number in range(1, plan.rounds + 1):
            for result in results:
                turn(plan, number, result, running)
        return [row for result in results for row in result.rows(plan.jobs(result.contestant.jobs))]


class Running:
    """Sees to it that one backend runs at a time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._last: Backend | None = None
        self._told: set[Backend] = set()

    def only(self, backend: Backend) -> None:
        """Stops the one before, and starts this one unless it runs."""
        if self._last is not None and self._last is not backend:
            self._last.stop()
        self._last = backend
        if not backend.running:
            backend.start()
        if backend not in self._told:
            self._told.add(backend)
            self._plan.say(f"{backend.name} {backend.version()}: {backend.durability}")


def turn(plan: Plan, number: int, result: Results, running: Running) -> None:
    """One contestant's turn in one round; whatever becomes of it is in `result` afterwards."""
    contestant, jobs = result.contestant, plan.jobs(result.contestant.jobs)
    where = f"round {number} of {plan.rounds}, {contestant.name}"
    try:
        running.only(contestant.backend)
        drained = _drained(plan.folder / "drain" / contestant.name, jobs, result)
    except Exception as error:  # whatever is wrong with one contestant, the others have their turn; its row says it
        why = str(error) if isinstance(error, NotRun) else f"{type(error).__name__}: {error}"
        result.failed.append(why)
        plan.say(f"{where}: {NOT_RUN}: {why}")
        return
    result.take(drained)
    faults = f"; {drained.faults()}" if drained.faults() else ""
    plan.say(f"{where}: {jobs:,} jobs, {drained.rate:,.0f} jobs/s{faults}")


def _drained(folder: Path, jobs: int, result: Results) -> Drained:
    """Adds the jobs and has them drained; the workers are ended whatever happens."""
    contestant = result.contestant
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    given = Turn(jobs, folder / "ran", folder)
    contestant.prepare()
    backend = contestant.backend
    result.who = f"{contestant.who()} on {backend.name} {backend.version()}{backend.beside}"
    with ExitStack() as stack:
        ran = Ran(given.ran, jobs)
        stack.callback(ran.close)
        result.add(contestant.fill(given))
        workers: list[Process] = []
        for at, command in enumerate(contestant.workers(given)):
            worker = Process(command.argv, env=command.env, cwd=folder, log=folder / f"worker{at}.log")
            stack.callback(worker.end)
            workers.append(worker)
        return watched(ran, jobs, contestant.left, workers)


def main(arguments: Sequence[str]) -> int:
    """Runs the section alone and prints its rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drain")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args(arguments)
    plan = Plan(given.rounds, ROOT / "var" / "bench", lambda line: print(line, flush=True), given.scale)
    for row in measure(plan, given.names):
        rounds = " ".join(f"{rate:,.0f}" for rate in row.rounds)
        print(f"{row.key:32} {row.value:>10,.0f} {row.unit}  [{rounds}]  {row.note}")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # servers and workers end with it
    sys.exit(main(sys.argv[1:]))
