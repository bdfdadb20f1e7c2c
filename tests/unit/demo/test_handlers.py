"""The demo's handlers, called as the daemon calls them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import pytest

import qd
from qd.clock import monotonic
from qd.demo import handlers, ledger, tree

NOBODY = 65534


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "ledger.jsonl"
    monkeypatch.setenv(ledger.VARIABLE, str(path))
    return path


def job(type: str, payload: object, attempt: int = 1) -> qd.Job:
    return qd.Job(
        id=5, queue="demo", type=type, payload=payload, attempt=attempt, max_attempts=3, priority=2,
        enqueued_at=datetime.now(timezone.utc), token="t", deadline=monotonic() + 60, finish=lambda cursor, job: True,
    )  # fmt: skip


def file_job(path: Path) -> qd.Job:
    return job("hash_file", {"file": tree.to_text(os.fsencode(path)), "name": path.name})


def test_a_file_is_hashed_measured_and_recorded_once(lines: Path) -> None:
    path = lines.with_name("file")
    path.write_bytes(b"abc")
    assert handlers.hash_file(file_job(path)) == "3 bytes"
    (line,) = ledger.read(lines)
    assert (line.type, line.job, line.size) == ("hash_file", 5, 3)
    assert line.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_vanished_file_is_rejected_by_its_name(lines: Path) -> None:
    with pytest.raises(qd.Reject, match="gone: No such file"):
        handlers.hash_file(file_job(lines.with_name("gone")))
    assert ledger.read(lines) == []


def test_an_unreadable_file_is_rejected(lines: Path) -> None:
    path = lines.with_name("closed")
    path.write_text("secret")
    path.chmod(0)
    with without_root(), pytest.raises(qd.Reject, match="closed: Permission denied"):
        handlers.hash_file(file_job(path))


def test_a_job_that_is_lost_while_it_reads_records_nothing(lines: Path) -> None:
    path = lines.with_name("file")
    path.write_bytes(b"abc")
    ours = file_job(path)
    ours.lost.set()
    with pytest.raises(qd.LeaseLost):
        handlers.hash_file(ours)
    assert ledger.read(lines) == []


def test_fails_first_fails_as_often_as_it_is_told(lines: Path) -> None:
    for attempt in (1, 2):
        with pytest.raises(ConnectionError):
            handlers.fails_first(job("fails_first", {"failures": 2}, attempt))
    handlers.fails_first(job("fails_first", {"failures": 2}, 3))
    assert [line.attempt for line in ledger.read(lines)] == [3]


@contextmanager
def without_root() -> Iterator[None]:
    """Root reads everything; a moment as nobody doesn't."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
