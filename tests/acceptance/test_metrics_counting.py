"""What the page costs the database: the server's own log of statements tells how often the rows are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from qd.stretch import SHARE
from tests.acceptance.scrapes import Scrapers
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB
from tests.support.waiting import wait_for

LOGGING = ("--slow-query-log=1", "--long-query-time=0", "--log-output=TABLE")
"""Each statement, with its time."""

STAMP = "qd_queue_stats_last_refresh_timestamp_seconds"
INTERVAL = "qd_queue_stats_refresh_interval_seconds"

COUNTS = "LIKE 'SELECT CASE WHEN queue IN (%FROM qd_failed_jobs%'"
"""The one statement that reads the dead letters by queue, and the rows, and the pauses."""


@dataclass(frozen=True)
class Count:
    """A count of the rows, as the server saw it.

    Attributes:
        thread: of its connection.
        began: Unix time.
        took: seconds.
    """

    thread: int
    began: float
    took: float
    sql: str


@pytest.fixture
def logged(folder: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[Qd]:
    """A configuration for a server that logs each statement."""
    server = own_mariadb(*LOGGING)
    qd = Qd(folder, server, server.new_database())
    yield qd
    qd.end()


def counts(qd: Qd) -> list[Count]:
    """All so far, in order."""
    rows = qd.sql(
        "SELECT thread_id, UNIX_TIMESTAMP(start_time), query_time, sql_text FROM mysql.slow_log "
        f"WHERE sql_text {COUNTS} ORDER BY start_time"
    )
    return [Count(int(thread), float(began), took.total_seconds(), _text(sql)) for thread, began, took, sql in rows]


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes | bytearray) else str(value)


def stamps(daemon: Daemon, many: int) -> list[float]:
    """The moments of so many counts, as the page tells them one after the other."""
    seen: list[float] = []

    def next_one() -> bool:
        stamp = daemon.metric(STAMP)
        if stamp and stamp not in seen:
            seen.append(stamp)
        return len(seen) >= many

    wait_for(next_one, 60, f"{many} counts")
    return seen


def test_ten_scrapers_have_the_rows_counted_once_a_refresh_by_one_statement(logged: Qd) -> None:
    daemon = logged.start()
    with Scrapers(logged.port, every=0.02) as scrapers:
        seen = stamps(daemon, 6)
    assert len(scrapers.seconds) > 50 and not scrapers.failures
    made = counts(logged)
    during = [count for count in made if seen[0] - 0.5 < count.began < seen[-1]]
    assert len(seen) - 1 <= len(during) <= len(seen) + 1
    assert len({count.thread for count in during}) == 1, "by one connection"
    others = logged.one(
        f"SELECT COUNT(*) FROM mysql.slow_log WHERE thread_id = %s AND sql_text NOT {COUNTS} "
        "AND start_time > FROM_UNIXTIME(%s)",
        (during[0].thread, during[0].began),
    )  # fmt: skip
    assert others == 0, "and that connection sends nothing else"


def test_a_count_walks_indexes_only(logged: Qd) -> None:
    logged.sql(
        "INSERT INTO qd_failed_jobs (job_id, queue, type, payload, priority, attempts, reason) "
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
        "SELECT i, CONCAT('q', i % 3), 'nap', REPEAT('1', 200), 2, 1, 'error' FROM n"
    )
    logged.start()
    wait_for(lambda: counts(logged), 20, "a count")
    plan = logged.sql("EXPLAIN FORMAT=TRADITIONAL " + counts(logged)[-1].sql)
    used = {
        str(line[2]): [_text(column) for column in line] for line in plan if line[2] in ("qd_jobs", "qd_failed_jobs")
    }
    for table, index in (("qd_jobs", "qd_jobs_claim"), ("qd_failed_jobs", "qd_failed_jobs_queue")):
        assert index in used[table]
        assert "Using index" in used[table][-1] and "filesort" not in used[table][-1]


def test_a_large_table_is_counted_so_rarely_that_it_takes_2_percent_and_the_page_tells_how_rarely(logged: Qd) -> None:
    daemon = logged.start()
    wait_for(lambda: daemon.metric(INTERVAL) == 1.0, 60, "the configured interval, where counting is cheap")
    later = "SELECT 'default', 'nap', NOW(6) + INTERVAL 1 DAY FROM qd_jobs"
    logged.sql(f"INSERT INTO qd_jobs (queue, type, available_at) {later} LIMIT 1")
    while logged.jobs() < 150_000:
        logged.sql(f"INSERT INTO qd_jobs (queue, type, available_at) {later}")
    wait_for(lambda: (daemon.metric(INTERVAL) or 0) > 1.2, 60, "the interval to be stretched")
    since = stamps(daemon, 3)[0]
    dear = [count for count in counts(logged) if count.began > since - 1]
    assert len(dear) >= 3
    for first, second, third in zip(dear, dear[1:], dear[2:], strict=False):
        assert third.began - second.began >= SHARE * min(first.took, second.took)
    assert (daemon.metric(INTERVAL) or 0) >= SHARE * min(count.took for count in dear[-2:])
