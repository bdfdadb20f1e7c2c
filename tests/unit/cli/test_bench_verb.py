"""`qd bench` before it begins: what it refuses, what it asks, what it says of earlier ones."""

from __future__ import annotations

import os
import subprocess

import pytest

from qd.identity import Identity
from tests.unit.cli.shop import NOW, Shop


def seen(shop: Shop, queue: str, host: str, pid: int) -> None:
    """A sign of life of a moment ago."""
    shop.sql(
        "INSERT INTO qd_daemons (id, host, pid, version, queues, types, started_at, seen_at) "
        f"VALUES (?, ?, ?, '1', ?, '[]', {NOW.format(-20)}, {NOW.format(-20)})",
        f"{host}:{pid}", host, pid, f'["{queue}"]',
    )  # fmt: skip


def dead_pid() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    "wrong", ["--batch 0", "--batch 1001", "--batch some", "--jobs 9", "--daemons 17", "--threads 0", "--rounds 0"]
)
def test_options_that_cannot_be_right_are_usage(shop: Shop, wrong: str) -> None:
    result = shop.qd("bench", "--yes", *wrong.split())
    assert result.exit_code == 2
    assert wrong.split()[0] in result.stderr


def test_without_a_terminal_and_without_yes_it_says_how_many_rows_it_would_write_and_writes_none(shop: Shop) -> None:
    result = shop.qd("bench", "--jobs", "100", "--pickups", "0", "--rounds", "2")
    assert result.exit_code == 2
    assert "this would write 1,240 rows at most into queue qd.bench." in result.stderr
    assert str(shop.database) in result.stderr and "--yes" in result.stderr
    assert shop.ids() == [] and shop.sql("SELECT * FROM qd_daemons") == []


def test_what_an_earlier_one_left_is_said_and_removed_only_where_it_is_asked_for(shop: Shop) -> None:
    shop.job(queue="qd.bench.a")
    shop.job("reserved", queue="qd.bench.a")
    shop.dead(queue="qd.bench.b")
    shop.job(queue="mails")
    assert "have left 2 queues: qd.bench.a, qd.bench.b behind; `qd bench --clean`" in shop.qd("bench").stderr
    refused = shop.qd("bench", "--clean")
    assert refused.exit_code == 2 and "in 2 queues: qd.bench.a, qd.bench.b" in refused.stderr
    assert len(shop.ids()) == 3
    assert shop.ok("bench", "--clean", "--yes") == "3 rows removed from 2 queues: qd.bench.a, qd.bench.b\n"
    assert [row[0] for row in shop.sql("SELECT queue FROM qd_jobs")] == ["mails"]
    again = shop.qd("bench", "--clean", "--yes")
    assert again.exit_code == 0 and "nothing to do" in again.stderr
    assert "earlier benches" not in shop.qd("bench").stderr


def test_one_that_is_at_work_is_left_alone_and_one_whose_process_has_ended_is_not(shop: Shop) -> None:
    here = Identity().host
    for queue, host, pid in (("a", here, os.getpid()), ("b", here, dead_pid()), ("c", "elsewhere", dead_pid())):
        shop.job(queue=f"qd.bench.{queue}")
        seen(shop, f"qd.bench.{queue}", host, pid)
    assert "have left 1 queue: qd.bench.b behind" in shop.qd("bench").stderr
    result = shop.qd("bench", "--clean", "--yes")
    assert result.exit_code == 0
    assert result.stdout == "1 row removed from 1 queue: qd.bench.b\n"
    assert "left alone" in result.stderr and "2 queues: qd.bench.a, qd.bench.c" in result.stderr
    assert [row[0] for row in shop.sql("SELECT queue FROM qd_jobs ORDER BY queue")] == ["qd.bench.a", "qd.bench.c"]
    assert [row[0] for row in shop.sql("SELECT host FROM qd_daemons ORDER BY id")] == ["elsewhere", here]
