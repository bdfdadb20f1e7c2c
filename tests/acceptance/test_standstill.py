"""The database answers and yet nothing can be claimed: said once, and /readyz knows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.support.daemon import Qd
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


@contextmanager
def locked(qd: Qd, how: str) -> Iterator[None]:
    """A stranger holds the table, as a dump does, and then a job is due."""
    values = "('nap', '{\"seconds\": 0}', NOW(6) + INTERVAL 2 SECOND)"
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
