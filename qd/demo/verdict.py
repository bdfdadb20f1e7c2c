"""The demo's judgement of itself: ledger and dead letters against a plain walk of the tree.

Pure but for reading the tree. May import: the store's row, the demo's tree, ledger and plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from qd.demo import plan, tree
from qd.demo.ledger import Line
from qd.demo.tree import Stamp
from qd.store.protocol import FailedRow

HASHERS = ("hash_file", "hash_file_by_program")
SHOWN = 5
"""Faults of one kind that are named; the rest is counted."""


@dataclass
class Verdict:
    """What was found.

    Attributes:
        faults: what must not be, for people; empty: all is as it should be.
        hashed: files with exactly one right line.
        touched: files that changed, came or went while the demo ran: their hash says nothing.
        rejected: files that could not be read, each in the dead letter.
        urgent_rank: the place of the urgent job among all completions, from 1; 0: it never ran.
        late: seconds between the delayed job's due time and its run.
    """

    faults: list[str] = field(default_factory=list)
    hashed: int = 0
    touched: int = 0
    rejected: int = 0
    urgent_rank: int = 0
    late: float = 0.0


def judge(before: dict[bytes, Stamp], lines: Sequence[Line], dead: Sequence[FailedRow], asked_at: float) -> Verdict:
    """Judges a run in which all is settled.

    Args:
        before: the files as they were enqueued.
        asked_at: monotonic seconds before the first job was enqueued.
    """
    verdict = Verdict()
    _files(verdict, before, lines, dead)
    _retried(verdict, lines)
    _dead(verdict, dead)
    _order(verdict, lines, asked_at, len(before))
    return verdict


def expected_counts(lines: Sequence[Line], dead: Sequence[FailedRow]) -> dict[str, int]:
    """What /metrics should have counted: attempts by outcome, and dead letters."""
    return {
        "succeeded": len(lines),
        "failed": sum(plan.FAILURES) + plan.ATTEMPTS,
        "rejected": sum(row.reason == "rejected" for row in dead),
        "dead_lettered": len(dead),
    }


def _files(verdict: Verdict, before: dict[bytes, Stamp], lines: Sequence[Line], dead: Sequence[FailedRow]) -> None:
    done: dict[bytes, list[Line]] = {}
    for line in lines:
        if line.type in HASHERS:
            done.setdefault(tree.from_text(line.file or ""), []).append(line)
    refused = Counter(_path(row) for row in dead if row.type in HASHERS and row.reason == "rejected")
    faults: dict[str, list[bytes]] = {}
    for path, stamp in before.items():
        kind = _file(verdict, path, stamp, done.pop(path, []), refused.pop(path, 0))
        if kind:
            faults.setdefault(kind, []).append(path)
    for path in [*done, *refused]:
        faults.setdefault("nobody asked for", []).append(path)
    for kind, paths in faults.items():
        names = ", ".join(tree.readable(path) for path in paths[:SHOWN])
        verdict.faults.append(f"{len(paths)} files {kind}: {names}{' ...' if len(paths) > SHOWN else ''}")


def _file(verdict: Verdict, path: bytes, stamp: Stamp, lines: list[Line], refused: int) -> str | None:
    """What is wrong with this file's work, or None."""
    if len(lines) + refused != 1:
        return "counted more than once" if lines or refused else "missing"
    truth = _truth(path)
    if tree.stamp_of(path) != stamp:
        verdict.touched += 1
        return None
    if refused:
        verdict.rejected += 1
        return "refused though they can be read" if truth else None
    if truth != (lines[0].sha256, lines[0].size):
        return "with a wrong hash or size"
    verdict.hashed += 1
    return None


def _truth(path: bytes) -> tuple[str, int] | None:
    try:
        found = tree.digest(path)
    except OSError:
        return None
    return found.sha256, found.size


def _path(row: FailedRow) -> bytes:
    import json

    return tree.from_text(json.loads(row.payload)["file"])


def _retried(verdict: Verdict, lines: Sequence[Line]) -> None:
    attempts = sorted(line.attempt for line in lines if line.type == "fails_first")
    wanted = sorted(failures + 1 for failures in plan.FAILURES)
    if attempts != wanted:
        verdict.faults.append(f"jobs that fail first succeeded at attempts {attempts}, not {wanted}")


def _dead(verdict: Verdict, dead: Sequence[FailedRow]) -> None:
    ours = [row for row in dead if row.type == "always_fails"]
    if [(row.reason, row.attempts) for row in ours] != [("error", plan.ATTEMPTS)]:
        found = [(row.reason, row.attempts) for row in ours]
        verdict.faults.append(f"the job that always fails should be one dead letter after 3 attempts, found {found}")
    for row in dead:
        if row.type != "always_fails" and not (row.type in HASHERS and row.reason == "rejected"):
            verdict.faults.append(f"job {row.job_id} ({row.type}) is a dead letter: {row.reason}: {row.error}")


def _order(verdict: Verdict, lines: Sequence[Line], asked_at: float, files: int) -> None:
    for kind in ("urgent", "delayed"):
        count = sum(line.type == kind for line in lines)
        if count != 1:
            verdict.faults.append(f"the {kind} job ran to its end {count} times")
    verdict.urgent_rank = next((rank for rank, line in enumerate(lines, 1) if line.type == "urgent"), 0)
    if verdict.urgent_rank > max(2 * plan.THREADS, files // 20):
        verdict.faults.append(f"the urgent job was only the {verdict.urgent_rank}th to be done")
    ran_at = next((line.at for line in lines if line.type == "delayed" and line.at is not None), None)
    if ran_at is not None:
        verdict.late = ran_at - asked_at - plan.DELAY
        if verdict.late < -0.01:
            verdict.faults.append(f"the delayed job ran {-verdict.late:.3f} s early")
