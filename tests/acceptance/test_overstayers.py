"""Handlers that never return."""

from __future__ import annotations

import signal

from qd.clock import monotonic
from tests.support.daemon import Daemon, Qd
from tests.support.waiting import wait_for

HANDLERS = {"modules": ["tests.acceptance.hard_handlers"]}
OLDEST = 'qd_oldest_running_job_seconds{queue="default"}'
SERVING = 'qd_queue_workers{queue="default"}'


def threads(daemon: Daemon) -> float:
    """All threads of the worker, whatever they are at."""
    series = [f'qd_workers{{state="{state}",worker="default"}}' for state in ("idle", "busy", "backoff")]
    return sum(daemon.metric(one) or 0.0 for one in series)


def test_handlers_that_never_return_are_replaced_told_of_and_ended_with_the_process_at_last(qd: Qd) -> None:
    qd.write(
        handlers=HANDLERS,
        queues={"default": {"lease": "3s", "timeout": "2s", "max_attempts": 1}},
        workers=[{"queues": ["default"], "threads": 2}],
    )
    daemon = qd.start(watchdog_usec=4_000_000)
    stuck, sleeping = qd.enqueue("receive_for_ever", 2), qd.enqueue("sleep_for_ever", 2)
    good = qd.enqueue("nap", 10, seconds=0)
    wait_for(lambda: set(qd.ran("end")) == set(good), 30, "the jobs behind them")
    assert len(daemon.lines("worker.replaced")) == 2
    assert all("level=warning" in line for line in daemon.lines("worker.replaced"))
    assert (daemon.metric(OLDEST) or 0) > 5
    assert daemon.metric(SERVING) == 2 and threads(daemon) - 2 == 2, "threads that serve nothing are those stuck"
    dead = dict.fromkeys(sleeping, "timeout")
    wait_for(lambda: dict(qd.sql("SELECT job_id, reason FROM qd_failed_jobs")) == dead, 15, "the others' time-outs")
    assert {row[0] for row in qd.sql("SELECT id FROM qd_jobs WHERE lane = 1 AND available_at > NOW(6)")} == set(stuck)
    more = qd.enqueue("receive_for_ever", 2)  # with them there are as many stuck threads as may be, and no other
    late = qd.enqueue("nap", seconds=0)
    wait_for(lambda: daemon.lines("watchdog.withheld"), 45, "the daemon to give itself up")
    assert daemon.get("/livez")[0] == 503
    last = daemon.notify.times("WATCHDOG=1")[-1]
    wait_for(lambda: monotonic() > last + 4, 10, "systemd's patience to end")
    assert daemon.notify.times("WATCHDOG=1")[-1] == last
    daemon.send(signal.SIGABRT)  # what systemd then does, and it starts another
    assert daemon.wait_exit(10) == -signal.SIGABRT
    qd.start()
    wait_for(lambda: qd.jobs() == 0, 30, "the leases to run out, and the job behind them to run")
    assert late[0] in qd.ran("end")
    lost = dict(qd.sql("SELECT job_id, reason FROM qd_failed_jobs WHERE reason <> 'timeout'"))
    assert lost == dict.fromkeys([*stuck, *more], "lost")
    assert all(len(qd.ran("start", job)) == 1 for job in [*stuck, *more, *sleeping])
