"""What a server's own defaults could do to qd's sessions: nothing. Its operators set them for other programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from qd.outcome import Verdict
from tests.contract.bench import Bench, finished

HOSTILE = {
    "sql_select_limit": "1",
    "sql_safe_updates": "1",
    "max_join_size": "1",
    "completion_type": "'RELEASE'",
    "sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'",
    "isolation": "'SERIALIZABLE'",
    "autocommit": "0",
    "time_zone": "'+05:00'",
}


@contextmanager
def default_of(bench: Bench, name: str, value: str) -> Iterator[None]:
    """The server gives new sessions this value."""
    if name == "isolation":
        name = "tx_isolation" if bench.is_mariadb() else "transaction_isolation"
    before = bench.one(f"SELECT @@global.{name}")
    bench.sql(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        bench.sql(f"SET GLOBAL {name} = %s", before)


@pytest.mark.parametrize("name", HOSTILE)
def test_jobs_are_checked_claimed_and_settled_under_any_default(server_bench: Bench, name: str) -> None:
    server_bench.add(6)
    with default_of(server_bench, name, HOSTILE[name]):
        server_bench.database.check()
        assert not [finding for finding in server_bench.store.inspect() if finding.level == "FAIL"]
        jobs = server_bench.claim(6)
        assert len(jobs) == 6
        assert server_bench.store.settle([finished(job) for job in jobs]) == [Verdict.SETTLED] * 6
    assert server_bench.jobs() == 0
