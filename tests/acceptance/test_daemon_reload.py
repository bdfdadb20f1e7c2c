"""SIGHUP on a running daemon: whole or not at all, nothing running is disturbed, systemd is always answered."""

from __future__ import annotations

import signal
import socket
from contextlib import closing

import pytest

from qd.clock import monotonic
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB, free_port
from tests.support.waiting import wait_for

ONE = {"lease": "6s", "timeout": "60s"}


def reload(daemon: Daemon) -> str:
    """SIGHUP; the datagram with READY=1 that answers it, which must come within 2 s."""
    before, began = len(daemon.notify.times("READY=1")), monotonic()
    daemon.send(signal.SIGHUP)
    wait_for(lambda: len(daemon.notify.times("READY=1")) > before, 4, "READY=1 after the reload")
    assert daemon.notify.times("READY=1")[-1] - began <= 2.0
    assert not daemon.notify.times("STOPPING=1") and daemon.alive()
    return daemon.notify.with_line("READY=1")[-1]


def applied(daemon: Daemon) -> None:
    """A reload that must be taken on."""
    assert "configuration reloaded" in reload(daemon)
    assert daemon.metric("qd_config_last_reload_successful") == 1.0


def refused(daemon: Daemon) -> str:
    """A reload that must be refused; the event's line."""
    answer = reload(daemon)
    assert "reload refused" in answer and answer.isascii()
    assert daemon.metric("qd_config_last_reload_successful") == 0.0
    line = daemon.lines("daemon.reload_refused")[-1]
    assert "ERROR" in line.upper()
    return line


def works(qd: Qd, queue: str = "default") -> None:
    """A job of this queue is run."""
    (job,) = qd.enqueue("nap", queue=queue, seconds=0)
    wait_for(lambda: qd.ran("end", job), 10, f"a job of {queue} to run")


def test_each_reload_is_told_with_its_moment_and_closed(qd: Qd) -> None:
    daemon = qd.start()
    began = monotonic()
    applied(daemon)
    (reloading,) = daemon.notify.with_line("RELOADING=1")
    moment = next(line for line in reloading.split("\n") if line.startswith("MONOTONIC_USEC="))
    assert began <= int(moment.partition("=")[2]) / 1e6 <= monotonic()
    assert "changed=nothing" in daemon.lines("daemon.reload_applied")[0]


def test_a_new_queue_is_served_and_counted_from_zero(qd: Qd) -> None:
    daemon = qd.start()
    qd.write(queues={"default": ONE, "new": ONE}, workers=[{"queues": ["default", "new"], "threads": 2}])
    applied(daemon)
    assert daemon.metric('qd_jobs_claimed_total{queue="new"}') == 0.0
    works(qd, "new")
    works(qd)
    assert daemon.stop() == 0


def test_a_daemon_is_no_younger_for_a_reload(qd: Qd) -> None:
    daemon = qd.start()
    look = (
        "SELECT id, UNIX_TIMESTAMP(started_at), UNIX_TIMESTAMP(seen_at) FROM qd_daemons ORDER BY seen_at DESC LIMIT 1"
    )
    ((first, since, _),) = wait_for(lambda: qd.sql(look), 10, "the daemon to be known")
    qd.write(queues={"default": {**ONE, "max_attempts": 7}})
    applied(daemon)
    ((_, again, now),) = wait_for(
        lambda: [row for row in qd.sql(look) if row[0] != first], 10, "what came after the reload"
    )
    assert abs(again - since) < (now - since) / 2, "it would be as old as its row"


@pytest.mark.parametrize(
    "broken", ["queues: [", "queues: {default: {lease: 1s}}\n", "", "queues: {x: {}}\nworkers: 7\n"]
)
def test_a_broken_file_changes_nothing(qd: Qd, broken: str) -> None:
    daemon = qd.start()
    qd.file.write_text(broken)
    assert "qd.yaml:" in refused(daemon)
    works(qd)
    qd.write()
    applied(daemon)


def test_a_file_that_can_not_be_read_changes_nothing(qd: Qd) -> None:
    daemon = qd.start()
    qd.file.rename(qd.folder / "elsewhere")
    assert "qd.yaml" in refused(daemon)
    works(qd)


def test_two_reloads_fifty_milliseconds_apart_are_both_closed(qd: Qd) -> None:
    daemon = qd.start()
    first = monotonic()
    daemon.send(signal.SIGHUP)
    wait_for(lambda: monotonic() >= first + 0.05, 1, "50 ms")
    daemon.send(signal.SIGHUP)
    wait_for(lambda: daemon.notify.times("READY=1")[-1] > first and closed(daemon), 4, "the last READY=1")


def closed(daemon: Daemon) -> bool:
    """Every RELOADING=1 has had its READY=1."""
    return len(daemon.notify.times("READY=1")) == len(daemon.notify.times("RELOADING=1")) + 1


def test_a_frozen_database_does_not_keep_systemd_waiting(frail: Qd) -> None:
    assert isinstance(frail.server, MariaDB)
    daemon = frail.start()
    frail.server.freeze()
    frail.write(queues={"default": ONE, "new": ONE}, workers=[{"queues": ["default", "new"], "threads": 3}])
    assert "READY=1" in reload(daemon)
    frail.write(database={"connect_timeout": "5s", "statement_timeout": "2s"})
    assert "asking the new database" in refused(daemon)
    frail.server.thaw()
    works(frail)
    wait_for(lambda: "configuration reloaded" in reload(daemon), 20, "a reload that is taken on")
    works(frail, "new")
    assert daemon.stop() == 0


def test_a_new_database_that_is_wrong_leaves_the_old_one_at_work(qd: Qd) -> None:
    daemon = qd.start()
    qd.write(database={"password": "a-wrong-secret"})
    assert "a-wrong-secret" not in refused(daemon)
    works(qd)
    qd.write(database={"port": free_port()})
    refused(daemon)
    works(qd)
    assert daemon.metric("qd_database_up") == 1.0 and not daemon.lines("database.lost")
    assert daemon.stop() == 0


def test_jobs_of_a_queue_that_is_removed_run_to_their_end_and_no_more_begin(qd: Qd) -> None:
    qd.write(
        queues={"default": ONE, "old": ONE},
        workers=[{"queues": ["default"], "threads": 1}, {"queues": ["old"], "threads": 2}],
    )
    daemon = qd.start()
    jobs = qd.enqueue("nap", 2, queue="old", seconds=2)
    wait_for(lambda: len(qd.ran("start")) == 2, 5, "both jobs to start")
    qd.write(queues={"default": ONE}, workers=[{"queues": ["default"], "threads": 1}])
    applied(daemon)
    (late,) = qd.enqueue("nap", queue="old", seconds=0)
    wait_for(lambda: sorted(qd.ran("end")) == jobs, 10, "their end")
    wait_for(lambda: qd.jobs() == 1, 5, "them to be settled")
    works(qd)
    assert not qd.ran("start", late) and qd.sql("SELECT attempts, reserved_by FROM qd_jobs WHERE id = %s", (late,)) == [
        (0, None)
    ]
    assert daemon.stop() == 0


def test_workers_become_more_at_once(qd: Qd) -> None:
    qd.write(workers=[{"queues": ["default"], "threads": 1}])
    daemon = qd.start()
    qd.enqueue("nap", 4, seconds=8)
    wait_for(lambda: len(qd.ran("start")) == 1, 5, "the first job")
    qd.write(workers=[{"queues": ["default"], "threads": 4}])
    applied(daemon)
    wait_for(lambda: len(qd.ran("start")) == 4, 2, "four at a time")
    assert daemon.metric('qd_queue_workers{queue="default"}') == 4.0


def test_workers_become_fewer_without_cutting_a_job_off(qd: Qd) -> None:
    qd.write(workers=[{"queues": ["default"], "threads": 4}])
    daemon = qd.start()
    threads = daemon.threads()
    qd.enqueue("nap", 4, seconds=1.5)
    wait_for(lambda: len(qd.ran("start")) == 4, 5, "all four")
    qd.write(workers=[{"queues": ["default"], "threads": 1}])
    applied(daemon)
    wait_for(lambda: len(qd.ran("end")) == 4 and qd.jobs() == 0, 10, "all four done")
    wait_for(lambda: daemon.threads() < threads, 10, "the threads before to end")
    qd.enqueue("nap", 4, seconds=0.3)
    wait_for(lambda: qd.jobs() == 0, 10, "four more")
    assert not qd.ran("cut") and daemon.metric('qd_queue_workers{queue="default"}') == 1.0


def test_a_new_address_that_is_taken_changes_nothing(qd: Qd) -> None:
    daemon = qd.start()
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        qd.write(http={"listen": f"127.0.0.1:{other.getsockname()[1]}"}, queues={"default": ONE, "new": ONE})
        assert str(other.getsockname()[1]) in refused(daemon)
    assert daemon.metric('qd_jobs_claimed_total{queue="new"}') is None
    works(qd)


def test_a_new_address_answers_and_the_old_one_no_more(qd: Qd) -> None:
    daemon, port = qd.start(), free_port()
    qd.write(http={"listen": f"127.0.0.1:{port}"})
    assert "configuration reloaded" in reload(daemon)
    assert daemon.get("/readyz", port)[0] == 200
    wait_for(lambda: daemon.get("/readyz")[0] == 0, 5, "the old address to close")


def test_a_handler_module_is_added_and_a_failing_one_refused(qd: Qd) -> None:
    daemon = qd.start()
    module = qd.folder / "more_handlers.py"
    module.write_text('import qd\n@qd.handler("more")\ndef more(job): pass\nimport missing_thing\n')
    qd.write(handlers={"modules": ["tests.acceptance.daemon_handlers", "more_handlers"]})
    assert "missing_thing" in refused(daemon)
    module.write_text('import qd\n@qd.handler("more")\ndef more(job): pass\n')
    applied(daemon)
    qd.enqueue("more")
    wait_for(lambda: qd.jobs() == 0, 10, "a job of the new type")


def test_a_handler_module_that_takes_too_long_is_refused_in_time_and_taken_later(qd: Qd) -> None:
    daemon = qd.start()
    (qd.folder / "slow_module.py").write_text("import threading\nthreading.Event().wait(3)\n")
    qd.write(handlers={"modules": ["tests.acceptance.daemon_handlers", "slow_module"]})
    assert "importing handlers" in refused(daemon)
    wait_for(lambda: "configuration reloaded" in reload(daemon), 10, "the module to be there")


def test_the_log_follows_the_file(qd: Qd) -> None:
    daemon = qd.start()
    qd.write(log={"format": "json", "jobs": "all"})
    applied(daemon)
    works(qd)
    wait_for(lambda: '"job.succeeded"' in daemon.said(), 5, "the job's line, as JSON")


def test_fifty_reloads_in_a_second_end_with_what_the_file_says_and_leave_no_thread(qd: Qd) -> None:
    daemon = qd.start()
    applied(daemon)
    threads = daemon.threads()
    for number in range(50):
        attempts = {"default": {**ONE, "max_attempts": number + 1}}
        if number == 49:
            attempts["last"] = ONE
        qd.write(queues=attempts)
        daemon.send(signal.SIGHUP)
    wait_for(lambda: daemon.metric('qd_jobs_claimed_total{queue="last"}') == 0.0, 10, "the file's last state")
    wait_for(lambda: closed(daemon), 5, "the last READY=1")
    wait_for(lambda: daemon.threads() <= threads, 20, f"no more than {threads} threads")
    works(qd)
    assert not daemon.lines("daemon.reload_refused") and daemon.stop() == 0
