"""How soon an idle daemon with the polls that it ships with begins a job, by the way in which the job came.

A pickup is the time from the moment when the producer knew that its job was committed to the handler's first line,
both by CLOCK_MONOTONIC, which all processes of a machine share; a job that began sooner than that has a negative one.

insert   a stranger's INSERT and COMMIT, the daemon idle for over two seconds; from the COMMIT's return
warm     the same within 0.05 to 0.9 s of the end of the job before
client   `Client.enqueue`, from its return; the daemon idle for a second, so that its polls are at their longest
cli      `qd enqueue`, from the return of its COMMIT; likewise
wake     a stranger's INSERT and COMMIT followed by `qd.wake()`, from the COMMIT's return; likewise

`call` is the whole of it: from the moment when the producer began its call, or the shell its command.
`python -m benchmarks.pickup --scale 0.1` runs it alone.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import qd
from benchmarks.alone import alone
from benchmarks.measured import Measured, Plan
from benchmarks.members import OWN, running, title
from benchmarks.seen import percentile
from benchmarks.shipped import daemon
from qd.config import load_config
from tests.support.daemon import Daemon
from tests.support.private import PrivateServer
from tests.support.server import ROOT

QUEUE = "default"

SAMPLES = 200
"""Of each way, over all rounds."""

IDLE = (2.0, 3.0)
"""Seconds without work before an INSERT that is to find the daemon idle. Their spread is many polls, since within one
or two of them the moments would not be as likely early in a pause as late."""

RESTED = (1.0, 1.3)
"""The same where the daemon is woken: its polls have long reached their longest pause."""

WARM = (0.05, 0.9)
"""Seconds since the end of the job before."""

LOST = 60.0
"""Seconds after which a job that didn't begin ends the section."""

Committed = tuple[int, int, int]
"""A job's id; when its producer began, and when it knew that the job was committed, in nanoseconds."""


@dataclass
class Shop:
    """An application on the daemon's database: a connection of its own, a client, and the daemon's configuration."""

    cursor: Any
    connection: Any
    client: qd.Client
    daemon: Daemon
    noted: Path

    def insert(self) -> Committed:
        """A stranger's job."""
        began = time.monotonic_ns()
        self.cursor.execute("INSERT INTO qd_jobs (queue, type) VALUES ('default', 'stamp')")
        self.connection.commit()
        return int(self.cursor.lastrowid), began, time.monotonic_ns()

    def insert_and_wake(self) -> Committed:
        """A stranger's job, and a word to the daemons of this host."""
        job = self.insert()
        qd.wake(QUEUE)
        return job

    def by_client(self) -> Committed:
        """A client's job."""
        began = time.monotonic_ns()
        job = self.client.enqueue("stamp", queue=QUEUE)
        return job, began, time.monotonic_ns()

    def by_command(self) -> Committed:
        """A shell's job."""
        own = {"QD_CONFIG": str(self.daemon.qd.file), "COMMITTED": str(self.noted), "PYTHONPATH": str(ROOT)}
        argv = [sys.executable, "-m", "benchmarks.cli_side", "enqueue", "stamp", "--queue", QUEUE]
        began = time.monotonic_ns()
        done = subprocess.run(argv, env=os.environ | own, cwd=self.noted.parent, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"qd enqueue: {done.stderr}")
        return int(done.stdout), began, int(self.noted.read_text())


WAYS: dict[str, tuple[Callable[[Shop], Committed], tuple[float, float], str]] = {
    "insert": (Shop.insert, IDLE, "INSERT and COMMIT; the daemon idle for 2 s"),
    "warm": (Shop.insert, WARM, "INSERT and COMMIT, 0.05 to 0.9 s after the job before"),
    "client": (Shop.by_client, RESTED, "Client.enqueue, from its return"),
    "cli": (Shop.by_command, RESTED, "qd enqueue, from its COMMIT's return"),
    "wake": (Shop.insert_and_wake, RESTED, "INSERT, COMMIT and qd.wake(), from the COMMIT's return"),
}
"""By the name in the keys: what is done, after which rest, and in words."""


class Stamps:
    """The handlers' moments, read as they are written."""

    def __init__(self, file: Path) -> None:
        file.touch()
        self._file = file.open()
        self._began: dict[int, int] = {}
        self._rest = ""

    def of(self, job: int) -> int:
        """When a job's handler began, in nanoseconds; waits for it.

        Raises:
            RuntimeError: it didn't begin in time.
        """
        end = time.monotonic() + LOST
        while job not in self._began:
            if time.monotonic() > end:
                raise RuntimeError(f"job {job} has not begun within {LOST:g} s")
            time.sleep(0.005)  # what looks more often takes the processor from what is measured
            *whole, self._rest = (self._rest + self._file.read()).split("\n")
            self._began |= {int(id): int(at) for id, at in map(str.split, whole)}
        return self._began.pop(job)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def measure(plan: Plan) -> list[Measured]:
    """Pickup by every way: p50, p99 and maximum over all rounds, in ms."""
    count = max(5, round(SAMPLES * plan.scale))
    share = -(-count // plan.rounds)
    taken: dict[str, list[list[float]]] = defaultdict(list)
    with running(OWN) as server:
        for number in range(plan.rounds):
            plan.say(f"pickup on {title(server)}: round {number + 1} of {plan.rounds}")
            _round(plan, server, share, taken)
    return [one for key, rounds in taken.items() for one in _rows(key, rounds)]


def _round(plan: Plan, server: PrivateServer, count: int, taken: dict[str, list[list[float]]]) -> None:
    with ExitStack() as stack:
        shop, stamps = _opened(plan, server, stack)
        for way, (enqueue, rest, _) in WAYS.items():
            plan.say(f"  {way}, {count} jobs")
            stamps.of(shop.insert()[0])  # the one that the first of them comes after
            since_commit, since_call = [], []
            for _ in range(count):
                time.sleep(random.uniform(*rest))
                job, began, committed = enqueue(shop)
                stamp = stamps.of(job)
                since_commit.append((stamp - committed) / 1e6)
                since_call.append((stamp - began) / 1e6)
            taken[way].append(since_commit)
            taken[f"{way}.call"].append(since_call)


def _opened(plan: Plan, server: PrivateServer, stack: ExitStack) -> tuple[Shop, Stamps]:
    database, at = server.new_database(), time.monotonic_ns()
    folder = plan.folder / "pickup"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"stamps-{at}"
    stack.callback(lambda: file.unlink(missing_ok=True))
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    started = stack.enter_context(
        daemon(server, database, queues=(QUEUE,), STAMPS=str(file), QD_RUNTIME_DIR=str(runtime))
    )
    stamps = Stamps(file)
    stack.callback(stamps.close)
    before = os.environ.get("QD_RUNTIME_DIR")
    os.environ["QD_RUNTIME_DIR"] = str(runtime)  # for `qd.wake` here, and for the commands
    stack.callback(
        lambda: os.environ.pop("QD_RUNTIME_DIR") if before is None else os.environ.update(QD_RUNTIME_DIR=before)
    )
    client = stack.enter_context(qd.Client(load_config(str(started.qd.file))))
    connection = server.connect(database, user="shop")
    stack.callback(connection.close)
    return Shop(connection.cursor(), connection, client, started, folder / "committed"), stamps


def _rows(key: str, rounds: list[list[float]]) -> Iterator[Measured]:
    """Percentiles of all samples together; each round's own beside them."""
    together = [value for samples in rounds for value in samples]
    way, _, call = key.partition(".")
    note = f"{WAYS[way][2]}; {len(together)} jobs" if not call else "from the beginning of the call or command"
    for part, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        note = note if part == "p50" else ""
        each = tuple(percentile(samples, share) for samples in rounds)
        yield Measured(f"pickup.{key}.{part}", percentile(together, share), "ms", each, note)


if __name__ == "__main__":
    alone(measure)
