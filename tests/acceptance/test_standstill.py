"""The database answers and yet nothing can be claimed: said once, and /readyz knows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from qd.clock import monotonic
from qd.daemon.tender import TEND_EVERY
from qd.setback import LASTING
from tests.acceptance.test_daemon_reload import applied
from tests.support.daemon import Qd
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

REFUSED = 'qd_workers{state="backoff",worker="default"}'
"""Threads whose last claim was refused."""


@contextmanager
def locked(qd: Qd, how: str, seconds: int = 0) -> Iterator[None]:
    """A stranger holds the table, as a dump does, and then a job is due, which takes so many seconds."""
    values = f"('nap', '{{\"seconds\": {seconds}}}', NOW(6) + INTERVAL 2 SECOND)"
    qd.sql(f"INSERT INTO qd_jobs (type, payload, available_at) VALUES {values}")
    with closing(qd.server.connect(qd.database)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"LOCK TABLES qd_jobs {how}")
        yield
        cursor.execute("UNLOCK TABLES")


@contextmanager
def unchangeable(qd: Qd) -> Iterator[None]:
    """A row at the head of the queue that the server lets nobody change."""
    qd.sql(
        "CREATE TRIGGER held BEFORE UPDATE ON qd_jobs FOR EACH ROW "
        "BEGIN IF OLD.type = 'held' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'; END IF; END"
    )
    (held,) = qd.enqueue("held")
    yield
    qd.sql("DROP TRIGGER held")
    qd.sql("DELETE FROM qd_jobs WHERE id = %s", (held,))


@pytest.mark.parametrize("how", ["READ", "WRITE", "row"])
def test_a_standstill_is_said_once_and_is_over_when_its_cause_is(qd: Qd, how: str) -> None:
    daemon = qd.start()
    with unchangeable(qd) if how == "row" else locked(qd, how):
        wait_for(lambda: daemon.get("/readyz")[0] == 503, 40, "/readyz to know it")
        assert "nothing could be claimed for" in daemon.get("/readyz")[1]
        (said,) = wait_for(lambda: daemon.lines("claims.stalled"), 20, "the log to say it")
        assert "level=warning" in said
        assert daemon.get("/livez")[0] == 200
    (job,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.ran("end", job), 30, "the job behind it")
    wait_for(lambda: daemon.get("/readyz")[0] == 200, 30, "/readyz to be well")
    wait_for(lambda: daemon.lines("claims.resumed"), 20, "the log to say that it is over")
    assert len(daemon.lines("claims.stalled")) == len(daemon.lines("claims.resumed")) == 1
    assert daemon.stop() == 0


def test_a_lock_that_was_short_is_no_standstill_for_who_then_idles_or_works_long(qd: Qd) -> None:
    qd.write(workers=[{"queues": ["default"], "threads": 1}])
    daemons = [qd.start(), qd.twin().start()]
    with locked(qd, "READ", seconds=14):
        wait_for(lambda: all(daemon.metric(REFUSED) for daemon in daemons), 20, "both to have been refused")
    wait_for(lambda: qd.ran("start"), 20, "the job to begin")
    wait_for(lambda: qd.ran("end") or any(daemon.get("/readyz")[0] == 503 for daemon in daemons), 30, "its end")
    assert qd.ran("end") and not any(daemon.lines("claims.stalled") for daemon in daemons)


def test_a_reload_in_a_standstill_ends_none_and_it_is_told_once_with_its_whole_length(qd: Qd) -> None:
    qd.write(database={"statement_timeout": "3s"}, queues={"default": {"lease": "15s"}})  # a slow machine is no outage
    daemon = qd.start()
    with locked(qd, "READ"):
        wait_for(lambda: daemon.lines("claims.stalled"), 40, "the log to say it")
        told = monotonic()
        for threads in (3, 2):
            qd.write(workers=[{"queues": ["default"], "threads": threads}])
            applied(daemon)
            assert "nothing could be claimed for" in daemon.get("/readyz")[1], daemon.said()
        wait_for(lambda: monotonic() - told > 6 or daemon.get("/readyz")[0] == 200, 20, "the tender to look again")
        assert daemon.get("/readyz")[0] == 503
    lasted = monotonic() - told
    (resumed,) = wait_for(lambda: daemon.lines("claims.resumed"), 30, "the log to say that it is over")
    assert float(resumed.partition("seconds=")[2].split()[0]) > lasted - 1
    assert len(daemon.lines("claims.stalled")) == 1 and daemon.get("/readyz")[0] == 200


def test_an_outage_is_no_standstill_however_long_it_lasts(frail: Qd) -> None:
    daemon = frail.start()
    frail.server.kill()
    wait_for(lambda: daemon.lines("database.lost"), 20, "it to be noticed")
    began = monotonic()
    wait_for(lambda: monotonic() - began > LASTING + TEND_EVERY or daemon.lines("claims.stalled"), 30, "a long outage")
    frail.server.start()
    wait_for(lambda: daemon.lines("database.restored"), 20, "its end")
    (job,) = frail.enqueue("nap", seconds=0)
    wait_for(lambda: frail.ran("end", job), 20, "work to go on")
    wait_for(lambda: daemon.get("/readyz")[0] == 200, 10, "/readyz to be well")
    assert not daemon.lines("claims.stalled") and len(daemon.lines("database.lost")) == 1
