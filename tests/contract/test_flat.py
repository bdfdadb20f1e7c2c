"""What a claim and a look cost doesn't grow with what lies in the table, counted in pages, not in time.

A foreign snapshot is held open throughout, so that the server can purge nothing: every entry that
was deleted or moved stays in the index, as under a long dump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from qd.store.mysql.database import MySqlDatabase
from tests.contract.bench import Bench, finished, sequence
from tests.support.private import PrivateServer
from tests.support.waiting import wait_for


class Scale:
    """A bench on a server of its own, where pages can be counted: nobody else reads any."""

    def __init__(self, server: PrivateServer) -> None:
        config = server.config(server.new_database())
        self.bench = Bench("mariadb", config, lambda events: MySqlDatabase(config, events), server)
        self.bench.store.ensure_posts(["default", "other"])
        self._counter = server.connect(config.name, autocommit=True)
        self._cursor = self._counter.cursor()
        self._snapshot = server.connect(config.name)

    def hold_snapshot(self) -> None:
        """From now on nothing is purged."""
        with closing(self._snapshot.cursor()) as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("SELECT id FROM qd_jobs LIMIT 1")
            cursor.fetchall()

    def pages(self, act: Callable[[], Any], times: int = 3) -> int:
        """Index pages that the server touches for an act, once it has nothing to do of its own.

        The least of some times: what the act leaves behind is purged when the server likes, which only
        ever adds to what is counted.
        """
        return min(self._pages_once(act) for _ in range(times))

    def _pages_once(self, act: Callable[[], Any]) -> int:
        self._until_quiet()
        before = self._read()
        act()
        return self._read() - before

    def _until_quiet(self) -> None:
        """Purge and merges in the background touch pages too, for seconds after a large INSERT on some servers."""
        seen = [-1]

        def quiet() -> bool:
            seen.append(self._read())
            return len(set(seen[-20:])) == 1

        wait_for(quiet, 60, "the server to touch no page by itself")

    def drain(self, count: int, batch: int = 100) -> None:
        """Claims and finishes."""
        done = 0
        self.bench.store.look(["default"], full=True)
        while done < count:
            jobs = self.bench.claim(batch)
            assert jobs, f"only {done} of {count} were claimed"
            self.bench.store.settle([finished(job) for job in jobs])
            done += len(jobs)

    def look(self) -> Any:
        """A quick look at one queue."""
        return self.bench.store.look(["default"], full=False)

    def close(self) -> None:
        self.bench.close()
        self._counter.close()
        self._snapshot.close()

    def _read(self) -> int:
        self._cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_read_requests'")
        return int(self._cursor.fetchall()[0][1])


@pytest.fixture
def scale(own_mariadb: Callable[..., PrivateServer]) -> Iterator[Scale]:
    made = Scale(own_mariadb("--innodb-buffer-pool-size=256M"))
    yield made
    made.close()


def test_claims_of_a_batch_cost_the_same_at_the_first_and_behind_ten_thousand_done(scale: Scale) -> None:
    scale.bench.add(10_800, due=-100)
    scale.hold_snapshot()
    scale.drain(100)
    first = scale.pages(lambda: scale.bench.claim(100))
    scale.drain(10_000)
    last = scale.pages(lambda: scale.bench.claim(100))
    assert last < first * 1.3, f"{first} pages at first, {last} behind 10,000 done"


def test_looks_and_claims_at_an_empty_queue_cost_the_same_behind_ten_thousand_done(scale: Scale) -> None:
    scale.hold_snapshot()
    scale.look()
    fresh = scale.pages(scale.look), scale.pages(lambda: scale.bench.claim(10))
    scale.bench.add(10_000, due=-100)
    scale.drain(10_000)
    scale.look()
    later = scale.pages(scale.look), scale.pages(lambda: scale.bench.claim(10))
    # the index is a level or two deeper by then, at each of four lanes; a walk over the dead is hundreds of pages
    assert later[0] <= fresh[0] * 2.5 + 30, f"look: {fresh[0]} pages fresh, {later[0]} later"
    assert later[1] <= fresh[1] * 2.5 + 30, f"claim: {fresh[1]} pages fresh, {later[1]} later"


def test_twenty_thousand_rows_of_one_moment_are_claimed_at_one_price(scale: Scale) -> None:
    scale.bench.sql(
        f"INSERT INTO qd_jobs (type, available_at) SELECT 'noop', NOW(6) - INTERVAL 1 MINUTE FROM {sequence(20_000)}"
    )
    assert scale.bench.one("SELECT COUNT(DISTINCT available_at) FROM qd_jobs WHERE type = 'noop'") == 1
    scale.hold_snapshot()
    scale.drain(100)
    first = scale.pages(lambda: scale.bench.claim(100))
    scale.drain(10_000)
    last = scale.pages(lambda: scale.bench.claim(100))
    assert last < first * 1.3, f"{first} pages at first, {last} in the middle"


@pytest.mark.parametrize("load", ["delayed", "reserved", "foreign"])
def test_a_look_and_a_claim_cost_the_same_beside_fifty_thousand_others(scale: Scale, load: str) -> None:
    scale.bench.add(70)
    scale.look()
    before = scale.pages(scale.look), scale.pages(lambda: scale.bench.claim(10))
    columns = {
        "delayed": "'default', 0, NULL, NOW(6) + INTERVAL 1 + seq SECOND",
        "reserved": "'default', 1, CONCAT('t', seq), NOW(6) + INTERVAL 1 + seq SECOND",
        "foreign": "'other', 0, NULL, NOW(6) - INTERVAL 1 + seq SECOND",
    }[load]
    scale.bench.sql(
        "INSERT INTO qd_jobs (type, queue, lane, reserved_by, available_at) "
        f"SELECT 'noop', {columns} FROM {sequence(50_000)}"
    )
    after = scale.pages(scale.look), scale.pages(lambda: scale.bench.claim(10))
    # a larger index is a level or two deeper; a walk over the others is thousands
    assert after[0] <= before[0] * 2.5 + 30, f"look: {before[0]} pages before, {after[0]} after"
    assert after[1] <= before[1] * 2.5 + 30, f"claim: {before[1]} pages before, {after[1]} after"


def test_the_urgent_lane_is_probed_at_one_price_behind_ten_thousand_done_in_the_next(scale: Scale) -> None:
    scale.bench.add(10_000, due=-100)
    scale.hold_snapshot()
    scale.drain(10_000)
    scale.look()
    (urgent,) = scale.bench.add(1, priority=0)
    taken: list[int] = []
    cost = scale.pages(lambda: taken.extend(job.id for job in scale.bench.claim(10)), times=1)
    assert taken == [urgent]
    assert cost < 150, f"{cost} pages for one urgent job"


def test_claims_walk_nothing_of_what_was_put_in_and_done_a_moment_ago(scale: Scale) -> None:
    scale.hold_snapshot()
    scale.bench.sql(f"INSERT INTO qd_jobs (type) SELECT 'noop' FROM {sequence(2000)}")
    scale.drain(2000, batch=500)
    (fresh,) = scale.bench.add(1, due=0)
    scale.look()
    taken: list[int] = []
    cost = scale.pages(lambda: taken.extend(job.id for job in scale.bench.claim(10)), times=1)
    assert taken == [fresh]
    assert cost < 300, f"{cost} pages for the one job that a look has found"
    cost = scale.pages(lambda: scale.bench.claim(10), times=1)
    assert cost < 300, f"{cost} pages for the claim behind it, which finds nothing"
