"""Whoever can enqueue, or ask for pages, can't make the daemon's series, its page or its memory grow."""

from __future__ import annotations

import random
import secrets
from contextlib import closing

from tests.acceptance.scrapes import page, scrape
from tests.support.daemon import Qd
from tests.support.waiting import wait_for
from tests.unit.metrics.pages import Page

FLOOD = 20_000
"""Jobs of as many types; every other one in a queue of its own."""

GROWTH = 10_000_000
"""Bytes that the daemon may grow by: what is in flight, not what passed."""

PASSED = 'qd_job_attempts_total{job_type="_other",outcome="released",queue="default"}'
WAITING = 'qd_queue_jobs{queue="_other",state="ready"}'


def flood(qd: Qd, count: int) -> None:
    """Half of them in the queue that is served."""
    rows = [
        ("default" if number % 2 else f"queue-{secrets.token_hex(8)}", f"type-{secrets.token_hex(8)}")
        for number in range(count)
    ]
    with closing(qd.server.connect(qd.database)) as connection, closing(connection.cursor()) as cursor:
        for first in range(0, count, 1000):
            cursor.executemany("INSERT INTO qd_jobs (queue, type) VALUES (%s, %s)", rows[first : first + 1000])
        connection.commit()


def settle(qd: Qd, enqueued: int) -> Page:
    """Waits until all of them were seen: half handed back by a thread, half counted as waiting."""
    daemon = qd.started[0]
    half = enqueued / 2
    wait_for(lambda: (daemon.metric(PASSED) or 0) >= half, 90, "jobs of unknown types to be handed back")
    wait_for(lambda: daemon.metric(WAITING) == half, 90, "jobs of unknown queues to be counted")
    for _ in range(300):
        junk = secrets.token_hex(random.randint(1, 40))
        assert scrape(qd.port, path=f"/{junk}?{junk}").status == 404
    return page(qd.port)


def test_random_types_queues_and_addresses_add_no_series_and_no_memory(qd: Qd) -> None:
    qd.start()
    flood(qd, 1000)
    before = settle(qd, 1000)
    flood(qd, FLOOD)
    after = settle(qd, 1000 + FLOOD)
    assert set(after.series) == set(before.series)
    assert "type-" not in after.text and "queue-" not in after.text
    assert len(after.text) < 1.05 * len(before.text), "values have more digits, no more"
    grown = (after.value("process_resident_memory_bytes") or 0) - (before.value("process_resident_memory_bytes") or 0)
    assert grown < GROWTH
    assert qd.started[0].alive()
