"""What failed together doesn't come back together: retries and reconnects are spread, and grow rarer."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from contextlib import closing
from datetime import datetime, timezone

from qd.clock import monotonic
from tests.support.answering import AnsweringProxy
from tests.support.daemon import Qd
from tests.support.mariadb import free_port
from tests.support.waiting import wait_for

HANDLERS = """
import qd

@qd.handler("boom")
def boom(job):
    raise RuntimeError("boom")
"""

TOGETHER = """
import os, pathlib, time
import qd
from tests.acceptance.daemon_handlers import note

@qd.handler("together")
def together(job):
    note(job, "start")
    while not pathlib.Path("go").exists():
        time.sleep(0.005)
    note(job, "end")
"""

OUTAGE = 8.0
"""Seconds."""

THREADS = 20


def test_five_hundred_jobs_that_fail_together_are_due_again_over_a_fifth_of_the_delay(qd: Qd) -> None:
    (qd.folder / "failing.py").write_text(HANDLERS)
    lasting = {"lease": "6s", "backoff": {"base": "1h", "cap": "2h"}}
    qd.write(handlers={"modules": ["failing"]}, queues={"default": lasting})
    daemon = qd.start()
    qd.enqueue("boom", 500)
    wait_for(lambda: qd.jobs("attempts = 1 AND lane = 0") == 500, 60, "all to have failed once")
    assert daemon.stop() == 0
    delays = sorted(_delay(history, due) for history, due in qd.sql(
        "SELECT history, UNIX_TIMESTAMP(available_at) FROM qd_jobs WHERE type = 'boom'"
    ))  # fmt: skip
    assert delays[0] >= 3600 * 0.8 - 5 and delays[-1] <= 3600 * 1.2 + 60
    assert delays[-1] - delays[0] >= 0.2 * 3600
    fifths = Counter(int((delay - delays[0]) / (delays[-1] - delays[0]) * 4.999) for delay in delays)
    assert min(fifths[number] for number in range(5)) >= 50, fifths


def _delay(history: str, due: float) -> float:
    """Seconds from the end of the last attempt to the next."""
    end = json.loads(history)[-1]["end"]
    return float(due) - datetime.fromisoformat(end.replace("Z", "+00:00")).astimezone(timezone.utc).timestamp()


class Nobody:
    """Listens where a server was, hangs up at once, and writes down when it was called."""

    def __init__(self, port: int) -> None:
        self.calls: list[float] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._hang_up)
        self._thread.start()

    def _hang_up(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            self.calls.append(monotonic())
            caller.close()

    def close(self) -> None:
        """Nobody listens any more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


def test_twenty_threads_that_lose_their_server_call_for_it_seldom_and_not_in_step(qd: Qd) -> None:
    port = free_port()
    (qd.folder / "ending_together.py").write_text(TOGETHER)
    qd.write(
        handlers={"modules": ["ending_together"]},
        database={"port": port, "tls": {"mode": "disabled"}},
        workers=[{"queues": ["default"], "threads": THREADS}],
        queues={"default": {"lease": "60s", "timeout": "60s"}},
        batch=1,
    )
    with closing(AnsweringProxy(int(qd.server.port), port=port)):
        daemon = qd.start()
        ids = qd.enqueue("together", THREADS)
        wait_for(lambda: len(qd.ran("start")) == THREADS, 30, "every thread to have a job")
    with closing(Nobody(port)) as nobody:
        (qd.folder / "go").touch()
        wait_for(lambda: len(qd.ran("end")) == THREADS, 30, "ends that can't be written")
        began = monotonic()
        wait_for(lambda: monotonic() >= began + OUTAGE, OUTAGE + 20, "the outage to last")
        ended = monotonic()
    calls = [at - began for at in nobody.calls if at >= began]
    connections = THREADS + 8  # poller, lease keeper, sampler, maintenance, returner, opener, probes
    steady = [at for at in calls if at >= 3.0]
    assert len(steady) <= connections * (ended - began - 3.0), "more than one call a second for each connection"
    assert len(calls) <= connections * 10, "more than the growing pauses leave room for"
    for second in range(3, int(OUTAGE)):
        within = [at for at in steady if second <= at < second + 1]
        fullest = Counter(int(at * 10) for at in within).most_common(1)
        assert len(within) < 8 or fullest[0][1] <= len(within) / 2, f"in step: {sorted(within)}"
    with closing(AnsweringProxy(int(qd.server.port), port=port)):
        wait_for(lambda: qd.jobs() == 0, 20, "the ends to be written")
        assert sorted(qd.ran("start")) == ids
        assert len(daemon.lines("database.lost")) == len(daemon.lines("database.restored")) == 1
        assert daemon.stop() == 0
