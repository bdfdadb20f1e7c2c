"""The demo's judgement of itself: it sees what is missing, double, wrong, early or late."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from qd.demo import plan, tree, verdict
from qd.demo.ledger import Line
from qd.store.protocol import FailedRow

ASKED_AT = 100.0
NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


class Run:
    """A run in which all went well; a test spoils one thing."""

    def __init__(self, folder: Path) -> None:
        for name in ("a", "b", "c"):
            (folder / name).write_text(name)
        self.files, _ = tree.walk(os.fsencode(folder))
        self.paths = list(self.files)
        self.lines = [Line("urgent", 1, 1, ASKED_AT)] + [self.hashed(path) for path in self.paths]
        self.lines += [Line("fails_first", 2, failures + 1, ASKED_AT) for failures in plan.FAILURES]
        self.lines += [Line("delayed", 3, 1, ASKED_AT + plan.DELAY + 0.2)]
        self.dead = [dead_letter("always_fails", "error", attempts=3)]

    def hashed(self, path: bytes) -> Line:
        found = tree.digest(path)
        return Line("hash_file", 9, 1, ASKED_AT, tree.to_text(path), found.sha256, found.size)

    def judge(self) -> verdict.Verdict:
        return verdict.judge(self.files, self.lines, self.dead, ASKED_AT)


def dead_letter(type: str, reason: str, attempts: int = 1, payload: str = "{}") -> FailedRow:
    return FailedRow(
        id=1, job_id=4, queue=plan.QUEUE, type=type, payload=payload, priority=2, attempts=attempts,
        max_attempts=None, unique_key=None, history=[], created_at=NOON, reason=reason, error="no",
        traceback=None, reserved_by=None, failed_at=NOON,
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_finds_nothing_wrong_with_a_run_that_went_well(run: Run) -> None:
    found = run.judge()
    assert found.faults == []
    assert (found.hashed, found.touched, found.rejected, found.urgent_rank) == (3, 0, 0, 1)
    assert found.late == pytest.approx(0.2)


def test_a_file_without_a_line_is_missing(run: Run) -> None:
    del run.lines[1]
    assert "1 files missing" in run.judge().faults[0]


def test_a_file_with_two_lines_is_counted_twice(run: Run) -> None:
    run.lines.append(run.lines[1])
    assert "counted more than once" in run.judge().faults[0]


def test_a_wrong_hash_and_a_wrong_size_are_seen(run: Run) -> None:
    run.lines[1] = replace(run.lines[1], sha256="0" * 64)
    run.lines[2] = replace(run.lines[2], size=7)
    assert "2 files with a wrong hash or size" in run.judge().faults[0]


def test_a_file_that_changed_meanwhile_is_counted_but_not_compared(run: Run) -> None:
    Path(os.fsdecode(run.paths[0])).write_text("something else")
    found = run.judge()
    assert (found.faults, found.hashed, found.touched) == ([], 2, 1)


def test_a_file_that_went_meanwhile_may_be_a_dead_letter(run: Run) -> None:
    os.remove(run.paths[0])
    del run.lines[1]
    run.dead.append(refused(run.paths[0]))
    assert run.judge().faults == []


def test_a_file_that_was_refused_though_it_can_be_read_is_a_fault(run: Run) -> None:
    del run.lines[1]
    run.dead.append(refused(run.paths[0]))
    assert "refused though they can be read" in run.judge().faults[0]


def test_a_file_that_nobody_asked_for_is_a_fault(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "later"
    other.write_text("x")
    run.lines.append(run.hashed(os.fsencode(other)))
    assert "nobody asked for" in run.judge().faults[0]


def test_a_retried_job_that_succeeded_too_early_or_never_is_a_fault(run: Run) -> None:
    run.lines = [line for line in run.lines if line.type != "fails_first"]
    assert "jobs that fail first" in run.judge().faults[0]


def test_the_job_that_always_fails_has_to_be_one_dead_letter(run: Run) -> None:
    run.dead = []
    assert "always fails" in run.judge().faults[0]


def test_any_other_dead_letter_is_a_fault(run: Run) -> None:
    run.dead.append(dead_letter("delayed", "lost"))
    assert "lost" in run.judge().faults[0]


def test_an_urgent_job_that_came_last_and_a_delayed_one_that_came_early_are_faults(run: Run) -> None:
    filler = [Line("hash_file", 9, 1, ASKED_AT, tree.to_text(path)) for path in run.paths] * 4
    run.lines = [*filler, Line("urgent", 1, 1), Line("delayed", 3, 1, ASKED_AT + 1)]
    faults = " ".join(run.judge().faults)
    assert "urgent job was only the 13th" in faults
    assert "2.000 s early" in faults


def refused(path: bytes) -> FailedRow:
    return dead_letter("hash_file", "rejected", payload=f'{{"file": "{tree.to_text(path)}", "name": "x"}}')
