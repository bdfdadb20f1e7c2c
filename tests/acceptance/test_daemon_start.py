"""How a daemon starts: what READY means, what keeps it from starting, what doesn't."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.support.changing import changing
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB, free_port
from tests.support.waiting import wait_for


def refused(daemon: Daemon, status: int) -> str:
    """The one line with which a daemon that can't start ends, before READY."""
    assert daemon.wait_exit(15) == status, daemon.said()
    assert not daemon.notify.times("READY=1")
    assert "Traceback" not in daemon.said()
    (line,) = daemon.lines("daemon.failed")
    return line


def test_ready_is_said_when_everything_stands(qd: Qd) -> None:
    daemon = qd.start()
    assert daemon.get("/readyz") == (200, "ok\n")
    assert daemon.get("/livez") == (200, "ok\n")
    assert daemon.metric('qd_queue_jobs{queue="default",state="ready"}') == 0.0
    assert daemon.metric("qd_database_up") == 1.0 and daemon.metric("qd_config_last_reload_successful") == 1.0
    assert len(daemon.lines("daemon.started")) == len(daemon.lines("daemon.ready")) == 1
    assert daemon.stop() == 0
    assert len(daemon.lines("daemon.stopping")) == len(daemon.lines("daemon.stopped")) == 1
    assert len(daemon.notify.times("READY=1")) == len(daemon.notify.times("STOPPING=1")) == 1


def test_an_abstract_notify_socket_is_told_too(qd: Qd) -> None:
    daemon = qd.start(abstract=True)
    assert daemon.stop() == 0 and daemon.notify.times("STOPPING=1")


def test_without_systemd_it_runs_all_the_same(qd: Qd) -> None:
    daemon = qd.start(ready=False, NOTIFY_SOCKET="")
    wait_for(lambda: daemon.get("/readyz")[0] == 200, 30, "/readyz")
    assert daemon.stop() == 0


def test_a_handler_module_that_can_not_be_imported_is_78_in_one_line(qd: Qd) -> None:
    (qd.folder / "broken.py").write_text("import no_such_module_anywhere\n")
    qd.write(handlers={"modules": ["broken"]})
    line = refused(qd.start(ready=False), 78)
    assert "no_such_module_anywhere" in line and "handlers" in line


def test_a_taken_port_is_1_in_one_line(qd: Qd) -> None:
    with closing(socket.create_server(("127.0.0.1", qd.port))):
        line = refused(qd.start(ready=False), 1)
    assert f"127.0.0.1:{qd.port}" in line


def test_a_wrong_password_is_78_and_is_not_said(qd: Qd) -> None:
    qd.write(database={"password": "a-wrong-secret"})
    daemon = qd.start(ready=False)
    assert "qd" in refused(daemon, 78)
    assert "a-wrong-secret" not in daemon.said()


def test_a_database_without_tables_is_78_and_says_what_to_run(qd: Qd) -> None:
    name = qd.server.new_database(schema=False)
    qd.server.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name}.* TO '{qd.user}'@'%'")
    qd.write(database={"name": name})
    line = refused(qd.start(ready=False), 78)
    qd.server.drop_database(name)
    assert "qd migrate" in line


def test_a_schema_that_this_version_can_not_work_with_is_78(qd: Qd) -> None:
    qd.sql("UPDATE qd_schema SET version = 999, compatible_from = 999")
    assert "999" in refused(qd.start(ready=False), 78)


def test_a_schema_that_is_changed_under_it_ends_it_with_78(qd: Qd) -> None:
    daemon = qd.start()
    qd.sql("UPDATE qd_schema SET version = 999, compatible_from = 999")
    assert daemon.wait_exit(25) == 78, daemon.said()
    assert "999" in daemon.lines("daemon.failed")[0] and len(daemon.lines("daemon.stopped")) == 1


def test_a_table_that_is_being_changed_at_its_start_is_waited_for(qd: Qd) -> None:
    with changing(qd.server, qd.database, "qd_failed_jobs"):
        daemon = qd.start()
        wait_for(lambda: daemon.lines("daemon.problem_seen"), 20, "the log to say why")
        assert daemon.get("/readyz")[0] == 503 and "lost" not in daemon.get("/readyz")[1]
    (job,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.ran("end", job), 20, "a job to run once the table is free")
    wait_for(lambda: daemon.get("/readyz")[0] == 200, 10, "/readyz")
    assert daemon.stop() == 0


def test_a_table_that_is_being_changed_under_it_is_no_reason_to_be_unready(qd: Qd) -> None:
    daemon = qd.start()
    with changing(qd.server, qd.database, "qd_failed_jobs"):
        looks = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE %s AND id <> CONNECTION_ID()"
        look = "SELECT column_name FROM information_schema.columns%"
        for under_way in (1, 0, 1):  # the next one: what the first has found is known by then
            wait_for(lambda: qd.one(looks, (look,)) == under_way, 30, "a look at the schema, its end, another")  # noqa: B023
        assert daemon.get("/readyz") == (200, "ok\n")
    assert daemon.stop() == 0 and "lost" not in daemon.said()


def test_a_bad_configuration_is_78_with_every_problem(qd: Qd) -> None:
    qd.file.write_text("database: {port: abc}\nqueues:\n  default: {max_atempts: 3}\n")
    daemon = qd.start(ready=False)
    assert daemon.wait_exit(15) == 78
    assert "qd.yaml:1: database.port" in daemon.said() and "qd.yaml:3: queues.default.max_atempts" in daemon.said()
    assert "Traceback" not in daemon.said() and not daemon.notify.got


def test_a_database_that_is_away_is_waited_for(frail: Qd) -> None:
    assert isinstance(frail.server, MariaDB)
    frail.server.stop()
    daemon = frail.start()
    assert daemon.notify.with_line("READY=1") == ["READY=1\nSTATUS=waiting for database"]
    assert daemon.get("/readyz") == (503, "waiting for database\n")
    assert daemon.get("/livez") == (200, "ok\n")
    assert daemon.metric("qd_database_up") == 0.0
    frail.server.start()
    (job,) = frail.enqueue("nap", seconds=0)
    wait_for(lambda: frail.ran("end", job), 10, "a job to run once the database is there")
    wait_for(lambda: daemon.get("/readyz")[0] == 200, 5, "/readyz")
    wait_for(lambda: daemon.notify.with_line("STATUS=ready"), 7, "the status")
    assert len(daemon.lines("daemon.ready")) == 1 and daemon.stop() == 0


def test_a_database_that_is_frozen_keeps_nobody_waiting_for_ready(frail: Qd) -> None:
    assert isinstance(frail.server, MariaDB)
    frail.server.freeze()
    daemon = frail.start()
    assert daemon.notify.with_line("READY=1") == ["READY=1\nSTATUS=waiting for database"]
    assert daemon.stop() == 0


def test_a_password_that_turns_wrong_later_is_retried_and_told(frail: Qd) -> None:
    assert isinstance(frail.server, MariaDB)
    frail.server.stop()
    frail.write(database={"password": "another"})
    daemon = frail.start()
    frail.server.start()
    wait_for(lambda: "denied" in daemon.get("/readyz")[1], 20, "the reason in /readyz")
    assert daemon.get("/livez")[0] == 200
    frail.server.run(f"ALTER USER '{frail.user}'@'%' IDENTIFIED BY 'another'")
    (job,) = frail.enqueue("nap", seconds=0)
    wait_for(lambda: frail.ran("end", job), 40, "a job to run once the password is right")
    assert daemon.stop() == 0


SLOW_MODULE = """
import os, threading
open(os.environ["LEDGER"] + ".importing", "w").close()
threading.Event().wait({seconds})
"""


def importing(qd: Qd, seconds: float) -> Daemon:
    """A daemon in the middle of importing a handler module."""
    (qd.folder / "slow_module.py").write_text(SLOW_MODULE.format(seconds=seconds))
    qd.write(handlers={"modules": ["slow_module", "tests.acceptance.daemon_handlers"]})
    daemon = qd.start(ready=False)
    wait_for(lambda: (qd.folder / "ledger.importing").exists(), 30, "the import to begin")
    return daemon


def test_a_reload_asked_for_before_ready_comes_after_it(qd: Qd) -> None:
    daemon = importing(qd, 0.5)
    daemon.send(signal.SIGHUP)
    daemon.wait_ready()
    wait_for(lambda: daemon.notify.times("RELOADING=1"), 5, "the reload")
    assert daemon.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_during_an_import_that_never_ends_is_0(qd: Qd, number: signal.Signals) -> None:
    daemon = importing(qd, 600)
    daemon.send(number)
    assert daemon.wait_exit(5) == 0
    assert "Traceback" not in daemon.said() and not daemon.notify.times("READY=1")


MOMENTS: dict[str, Callable[[Daemon], object]] = {
    "handlers imported": lambda daemon: (daemon.qd.folder / "ledger.mark").exists(),
    "started": lambda daemon: daemon.lines("daemon.started"),
    "http answers": lambda daemon: daemon.get("/livez")[0],
    "ready": lambda daemon: daemon.notify.times("READY=1"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_stop_at_any_moment_of_the_start_is_0(qd: Qd, moment: str) -> None:
    (qd.folder / "mark.py").write_text('import os\nopen(os.environ["LEDGER"] + ".mark", "w").close()\n')
    qd.write(handlers={"modules": ["mark", "tests.acceptance.daemon_handlers"]})
    daemon = qd.start(ready=False)
    wait_for(lambda: MOMENTS[moment](daemon), 30, moment)
    assert daemon.stop() == 0, daemon.said()
    assert "Traceback" not in daemon.said()


def test_two_configurations_on_one_host_run_side_by_side(qd: Qd) -> None:
    first = qd.start()
    port = free_port()
    config = {**json.loads(qd.file.read_text()), "http": {"listen": f"127.0.0.1:{port}", "refresh": "1s"}}
    qd.file.write_text(json.dumps(config))
    second = qd.start()
    assert second.get("/readyz", port)[0] == 200
    assert first.stop() == second.stop() == 0
