"""The drain's rows: a contestant is never left out, whatever becomes of it."""

from __future__ import annotations

from pathlib import Path

from benchmarks import drain
from benchmarks.backends.backend import Backend
from benchmarks.drain import Results
from benchmarks.measured import Plan
from benchmarks.peers.contestant import Command, Contestant, Turn
from benchmarks.processes import NotRun
from benchmarks.targets import NOT_RUN
from benchmarks.watched import Drained

WORK = 'import os; file = open(os.environ["BENCH_RAN"], "r+b"); file.write(bytes([1]) * int(os.environ["BENCH_JOBS"]))'


class NoBackend(Backend):
    """Nothing to start."""

    name, durability = "Nothing", "nothing survives"

    def start(self) -> None:
        """See Backend."""
        self.running = True

    def stop(self) -> None:
        """See Backend."""
        self.running = False

    def discard(self) -> None:
        """See Backend."""

    def version(self) -> str:
        """See Backend."""
        return "0"


class Fake(Contestant):
    """Drains at once, or fails as it is told.

    Args:
        fails: raised before it begins, one a round; None: it works.
    """

    name = adds_as = "fake"
    setting = "no setting"
    promise = "nothing is kept"

    def __init__(self, *fails: Exception | None) -> None:
        self.backend = NoBackend()
        self._fails = list(fails)

    def prepare(self) -> None:
        """See Contestant."""
        error = self._fails.pop(0) if self._fails else None
        if error is not None:
            raise error

    def fill(self, turn: Turn) -> dict[str, float]:
        """See Contestant."""
        return {"single": float(turn.jobs)}

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        return [Command(["python3", "-c", WORK], turn.env())]

    def left(self) -> int:
        """See Contestant."""
        return 0

    def who(self) -> str:
        """See Contestant."""
        return "fake 1.0"


def rows_of(contestant: Contestant, folder: Path, rounds: int) -> tuple[dict[str, drain.Measured], list[str]]:
    """The contestant's rows after so many rounds, by key, and what was said meanwhile."""
    said: list[str] = []
    plan = Plan(rounds, folder, said.append, 0.001)
    result, running = Results(contestant), drain.Running(plan)
    for number in range(1, rounds + 1):
        drain.turn(plan, number, result, running)
    return {row.key: row for row in result.rows(100)}, said


def test_a_contestant_that_drains_has_its_rates_and_its_conditions(tmp_path: Path) -> None:
    rows, said = rows_of(Fake(), tmp_path, rounds=2)
    assert len(rows["drain.fake"].rounds) == 2
    assert rows["drain.fake"].note == "fake 1.0 on Nothing 0; no setting; 100 jobs; nothing is kept"
    assert rows["enqueue.fake.single"].rounds == (100.0, 100.0)
    assert said[0] == "Nothing 0: nothing survives", "how durable the backend is, is said"


def test_a_contestant_that_cannot_be_run_is_a_row_that_says_why(tmp_path: Path) -> None:
    rows, said = rows_of(Fake(NotRun("no such package"), NotRun("no such package")), tmp_path, rounds=2)
    row = rows["drain.fake"]
    assert (row.value, row.rounds, row.note) == (0.0, (), f"{NOT_RUN}: no such package")
    assert any("NOT RUN: no such package" in line for line in said)


def test_a_contestant_that_fails_in_a_way_nobody_foresaw_ends_no_other(tmp_path: Path) -> None:
    rows, _ = rows_of(Fake(ZeroDivisionError("oops")), tmp_path, rounds=1)
    assert rows["drain.fake"].note == f"{NOT_RUN}: ZeroDivisionError: oops"


def test_a_round_that_failed_is_said_beside_those_that_did_not(tmp_path: Path) -> None:
    rows, _ = rows_of(Fake(NotRun("out of luck")), tmp_path, rounds=3)
    assert len(rows["drain.fake"].rounds) == 2
    assert rows["drain.fake"].note.endswith("; 1 of 3 rounds NOT RUN: out of luck")


def test_a_drain_that_was_cut_off_counts_only_the_jobs_that_ran() -> None:
    result = Results(Fake())
    result.take(Drained(jobs=100, done=40, again=0, seconds=10.0))
    (row,) = result.rows(100)
    assert row.value == 4.0
    assert "only 40 of 100 jobs" in row.note
