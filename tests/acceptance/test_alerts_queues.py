"""What goes wrong in queues is told, each by its own alert, also where one daemon of several is cut off from the rows.

A queue that is paused or served by others is left alone.

Real daemons, a real Prometheus with the shipped rules and a real Alertmanager with the shipped example, both thirty
times as fast (tests/support/pace.py).
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.support.daemon import Qd
from tests.support.pace import Watch
from tests.support.prometheus import Targets
from tests.support.proxy import FaultProxy
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

STARTS = 3


@pytest.fixture
def way(qd: Qd) -> Iterator[FaultProxy]:
    """Leads to the server, for as long as it isn't cut."""
    way = FaultProxy(qd.server.port)
    yield way
    way.close()


def test_what_is_wrong_in_queues_is_told_by_its_own_alert(
    qd: Qd, way: FaultProxy, watching: Callable[[Targets], Watch]
) -> None:
    """`default` is held up by one job, `mails` fails, nobody serves `reports`, nor knows `mial`; `later` is paused.

    So is `old`, which nobody knows any more: it hides nothing of `mial`.

    Of three daemons one is cut off from the database, and one crashes.
    """
    names = ("default", "mails", "reports", "later")
    qd.write(
        queues={name: {"timeout": "120s", "max_attempts": 1} for name in names},
        workers=[{"queues": [name], "threads": 1} for name in ("default", "mails", "later")],
    )
    crashing, cut = qd.twin(), qd.twin()
    for other in (crashing, cut):
        other.write(workers=[{"queues": ["later"], "threads": 1}])
    cut.write(database={"port": way.port})
    daemon = qd.start()
    cut.start()
    qd.sql("INSERT INTO qd_queues (name, paused_at) VALUES ('later', NOW(6)), ('old', NOW(6))")
    targets = [f"127.0.0.1:{one.port}" for one in (qd, crashing, cut)]
    again = crashing.start()
    watch = watching(targets)
    way.refusing = True
    way.cut_all()
    wait_for(lambda: watch.told("pager", "QdDatabaseDown", instance=targets[2]), 40, "the daemon that is cut off")
    qd.enqueue("nap", seconds=100)
    wait_for(lambda: qd.ran("start"), 20, "it to hold the queue's one thread")
    qd.enqueue("nap", 2, seconds=100)
    qd.enqueue("nap", queue="mails")  # without what its handler needs
    for queue in ("reports", "mial", "later", "old"):
        qd.enqueue("nap", queue=queue, seconds=0)
    for number in range(STARTS):
        again.send(signal.SIGKILL)
        again.wait_exit(10)
        again = crashing.start()
        wait_for(partial(seen, watch, targets[1], number + 1), 20, "its start to be seen")

    wait_for(lambda: watch.told("chat", "QdDeadLetters", queue="mails", reason="error"), 40, "the dead letter")
    wait_for(lambda: watch.told("pager", "QdCrashLoop", instance=targets[1]), 40, "the starts")
    for queue in ("reports", "_other"):
        unserved = partial(watch.told, "chat", "QdQueueWithoutWorkers", queue=queue)
        wait_for(unserved, 40, f"nobody to serve {queue}")
    wait_for(lambda: watch.told("chat", "QdOldestReadyJobTooOld", queue="default"), 40, "the job that waits")
    wait_for(lambda: watch.told("chat", "QdJobStuck", queue="default", instance=targets[0]), 60, "the job that runs on")
    wait_for(lambda: not watch.fires("QdDeadLetters"), 60, "the dead letter to be some time ago")
    assert watch.fires("QdDatabaseDown", instance=targets[2])
    told = {note.labels["queue"] for note in watch.webhook.told("QdOldestReadyJobTooOld")}
    assert told == {"default"}, "paused isn't late, and who isn't served is told of once"
    assert watch.keeps_back("QdOldestReadyJobTooOld", queue="reports")
    assert not any("later" in str(note.labels) for note in watch.webhook.notes)
    assert not any("<no value>" in text for note in watch.webhook.notes for text in note.annotations.values())
    assert watch.prometheus.faults() == [] and daemon.alive()


def seen(watch: Watch, target: str, starts: int) -> bool:
    """Whether Prometheus has seen a daemon start so often, lately."""
    return watch.prometheus.value(f'changes(process_start_time_seconds{{instance="{target}"}}[30s])') == starts
