"""Threads whose jobs are done and whose ends can't be written: they claim nothing, and that is told."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.acceptance.test_standstill import locked
from tests.support.daemon import Qd
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


@pytest.mark.parametrize("how", ["READ", "WRITE"])
def test_threads_that_can_not_write_their_jobs_ends_stand_still_too(qd: Qd, how: str) -> None:
    daemon = qd.start()
    jobs = qd.enqueue("nap", 2, seconds=3)
    wait_for(lambda: sorted(qd.ran("start")) == jobs, 20, "both threads to be at work")
    with locked(qd, how):
        wait_for(lambda: daemon.get("/readyz")[0] == 503, 40, "/readyz to know it")
        wait_for(lambda: daemon.lines("claims.stalled"), 20, "the log to say it")
    wait_for(lambda: not qd.jobs(), 30, "the ends, and the job behind them")
    wait_for(lambda: daemon.get("/readyz")[0] == 200, 30, "/readyz to be well")
    wait_for(lambda: daemon.lines("claims.resumed"), 20, "the log to say that it is over")
    assert sorted(qd.ran("end"))[:2] == jobs and len(qd.ran("end")) == 3
    assert len(daemon.lines("claims.stalled")) == len(daemon.lines("claims.resumed")) == 1


def test_one_end_that_a_stranger_holds_up_is_none_while_other_threads_work(qd: Qd) -> None:
    daemon = qd.start()
    held, _ = qd.enqueue("nap", seconds=2)[0], qd.enqueue("nap", seconds=25)
    wait_for(lambda: len(qd.ran("start")) == 2, 20, "both threads to be at work")
    with closing(qd.server.connect(qd.database)) as stranger, closing(stranger.cursor()) as cursor:
        cursor.execute("SELECT id FROM qd_jobs WHERE id = %s FOR UPDATE", (held,))
        cursor.fetchall()
        wait_for(lambda: len(qd.ran("end")) == 2 or daemon.get("/readyz")[0] == 503, 40, "the other's end")
        assert not daemon.lines("claims.stalled") and daemon.get("/readyz")[0] == 200
    wait_for(lambda: not qd.jobs(), 30, "its end to be written")
