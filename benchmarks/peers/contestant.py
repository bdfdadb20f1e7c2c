"""What every contestant of the drain is: jobs can be put into its queue, and its workers take them out.

May import: backends, environments, processes.
"""

from __future__ import annotations

import json
import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.backends.backend import Backend
from benchmarks.environments import Environments
from benchmarks.processes import NotRun

INSIDE = Path(__file__).parent / "inside"

FILLING = 600.0
"""Seconds that adding the jobs may take."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One contestant's turn in one round.

    Attributes:
        jobs: how many are added and drained.
        ran: the file in which each job leaves its mark.
        folder: of this turn alone, for logs and configuration.
    """

    jobs: int
    ran: Path
    folder: Path

    def env(self, **more: str) -> dict[str, str]:
        """What workers and producers find in their environment, on top of ours."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("QD_", "PYTHON", "BENCH_"))}
        singly = str(max(1, self.jobs // 10))
        own = {"PYTHONPATH": str(INSIDE), "BENCH_RAN": str(self.ran), "BENCH_JOBS": str(self.jobs)}
        return kept | own | {"BENCH_SINGLY": singly} | more


@dataclass(frozen=True, slots=True)
class Command:
    """A worker process."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


class Contestant(ABC):
    """One row of the table.

    Attributes:
        name: its figure's key is `drain.NAME`.
        jobs: how many at full scale.
        backend: where its jobs are kept.
        setting: how its workers are run, in a few words.
        promise: what becomes of a running job whose worker is killed, where it doesn't run again, as qd's does.
        adds_as: its enqueue rates' keys are `enqueue.ADDS_AS.*`; None: a variant of the same peer has them.
    """

    name: str
    jobs: int = 50_000
    backend: Backend
    setting: str
    promise: str = ""
    adds_as: str | None

    @abstractmethod
    def prepare(self) -> None:
        """Makes what it needs, and its place in the running backend empty.

        Raises:
            NotRun: it can't be run here.
        """

    @abstractmethod
    def fill(self, turn: Turn) -> dict[str, float]:
        """Adds `turn.jobs` jobs; jobs/s by `single` and `bulk`."""

    @abstractmethod
    def workers(self, turn: Turn) -> list[Command]:
        """The processes that drain; they begin when they are started."""

    @abstractmethod
    def left(self) -> int:
        """Jobs that the backend doesn't hold for finished."""

    @abstractmethod
    def who(self) -> str:
        """Its name and version, for people."""


class Peer(Contestant):
    """Another queue, in an environment of its own.

    Attributes:
        environment: the name of its pins and environment.
        package: which of the packages is the queue.
        build: see Environments.bin.
        producer: `module:function` in `inside/` that adds the jobs.
    """

    environment: str
    package: str
    build: tuple[str, ...] = ()
    producer: str

    def __init__(self, environments: Environments) -> None:
        self._environments = environments

    @property
    @abstractmethod
    def url(self) -> str:
        """Where its backend is."""

    def prepare(self) -> None:
        """See Contestant."""
        self.program("python")

    def program(self, name: str) -> str:
        """A program of its environment."""
        return str(self._environments.bin(self.environment, self.build) / name)

    def env(self, turn: Turn) -> dict[str, str]:
        """Of its workers and its producer."""
        return turn.env(BENCH_URL=self.url)

    def fill(self, turn: Turn) -> dict[str, float]:
        """See Contestant."""
        return filled([self.program("python")], self.producer, self.env(turn), turn)

    def who(self) -> str:
        """See Contestant."""
        return f"{self.package} {self._environments.versions(self.environment)[self.package]}"


def filled(python: Sequence[str], producer: str, env: Mapping[str, str], turn: Turn) -> dict[str, float]:
    """Runs a producer of `inside/`, and reads the rates that it prints."""
    module, _, function = producer.partition(":")
    argv = [*python, "-c", f"import {module}; {module}.{function}()"]
    try:
        done = subprocess.run(
            argv, cwd=turn.folder, env=env, capture_output=True, text=True, timeout=FILLING, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise NotRun(f"adding {turn.jobs} jobs took longer than {FILLING:.0f} s") from error
    if done.returncode:
        raise NotRun(f"adding jobs: {' '.join(done.stderr.split())[-300:]}")
    rates: dict[str, float] = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            rates.update(json.loads(line))
    return rates
