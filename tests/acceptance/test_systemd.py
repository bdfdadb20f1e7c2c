"""The shipped units under a real systemd: start, status, reload, stop, ends, and what the journal shows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from tests.support.mariadb import MariaDB
from tests.support.server import PASSWORD
from tests.support.systemd import Machine
from tests.support.unit import CREDENTIAL, STATE, Unit
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
Units = Callable[..., Unit]

HARD = {"modules": ["tests.acceptance.hard_handlers"]}


def works(unit: Unit) -> int:
    """A job of its is run; its id."""
    (job,) = unit.enqueue("nap", seconds=0)
    wait_for(lambda: unit.ran("end", job), 15, f"a job to run; {unit.said()}")
    return job


def dead_and_left_alone(unit: Unit, status: str) -> None:
    """Failed with this status, and not about to be started again."""
    shown = unit.machine.show(unit.name, "ActiveState", "SubState", "ExecMainStatus", "NRestarts")
    assert shown == {"ActiveState": "failed", "SubState": "failed", "ExecMainStatus": status, "NRestarts": "0"}


# ---------------------------------------------------------------------- start


def test_a_start_is_over_when_it_works_and_the_status_shows_live_numbers(unit: Units) -> None:
    mails = unit("mails")
    mails.write(handlers={"modules": ["tests.acceptance.waiting_handlers"]})
    mails.control("start", "--no-block")
    wait_for(lambda: mails.value("TasksCurrent") not in ("0", "1", "[not set]"), 10, "the import to be waited for")
    assert mails.value("SubState") == "start"
    mails.machine.write(f"{STATE}/go", "")
    mails.control("start")
    assert mails.get("/readyz")[0] == 200
    assert mails.value("StatusText") == "ready, 0 jobs running, 0 waiting"
    mails.enqueue("nap", 5, seconds=14)
    mails.enqueue("nap", 2, queue="unknown", seconds=0)
    wait_for(lambda: mails.value("StatusText") == "ready, 2 jobs running, 5 waiting", 12, "the numbers")
    assert 'Status: "ready, 2 jobs running, 5 waiting"' in mails.control("status")


def test_the_password_is_the_credential_and_is_shown_nowhere(unit: Units, own_mariadb: Callable[..., MariaDB]) -> None:
    server = own_mariadb()
    secret = unit("secret", server)
    secret.control("start")
    works(secret)
    server.stop()
    wait_for(lambda: secret.lines("database.lost"), 15, "the outage")
    server.start()
    works(secret)  # with connections that were made after the start
    pid = secret.pid()
    assert PASSWORD not in secret.machine.sh(f"cat {secret.configuration} /proc/{pid}/environ /proc/{pid}/cmdline")
    assert PASSWORD not in secret.said() + secret.control("show")
    shown = secret.machine.sh(f"stat -c %a:%U {CREDENTIAL}; su -s /bin/sh qd -c 'cat {CREDENTIAL}' || true")
    assert shown.startswith("600:root\n") and "Permission denied" in shown
    assert PASSWORD not in secret.machine.sh("grep -r . /var/lib/qd || true")
    assert re.search(r"^Max core file size +0 +0 ", secret.machine.read(f"/proc/{pid}/limits"), re.MULTILINE)


def test_roots_command_line_has_the_credential_for_the_units_own_file_alone(unit: Units, machine: Machine) -> None:
    shop = unit("shop")
    qd = "/opt/qd/bin/qd --config"
    assert "default" in machine.sh(f"{qd} {shop.configuration} status")
    assert f"password: from {CREDENTIAL}, " in machine.sh(f"{qd} {shop.configuration} check --file-only")
    machine.sh(f"cp {shop.configuration} /tmp/other.yaml")  # it may as well name another server
    assert "using password: NO" in machine.sh(f"{qd} /tmp/other.yaml status || true")
    shop.drop_in("password", LoadCredential="qd.db-password:/etc/hostname")
    assert "password: from /etc/hostname, " in machine.sh(f"{qd} {shop.configuration} check --file-only")
    assert "using password: YES" in machine.sh(f"{qd} {shop.configuration} status || true"), "its own, not another's"


@pytest.mark.parametrize("way", ["password_file: /etc/qd/password", "password: ${SHOP_PASSWORD}"])
def test_a_file_or_a_variable_comes_before_the_credential(unit: Units, machine: Machine, way: str) -> None:
    old = unit("old-ways")
    old.drop_in("password", LoadCredential="qd.db-password:/etc/hostname")  # what would be wrong
    machine.sh(f"printf {PASSWORD} >/etc/qd/password; chmod 640 /etc/qd/password; chgrp qd /etc/qd/password")
    machine.write("/etc/qd/environment", f"SHOP_PASSWORD={PASSWORD}\n", mode=0o600)
    key, _, value = way.partition(": ")
    machine.write(old.configuration, json.dumps({**old.config, "database": {**old.config["database"], key: value}}))
    old.control("start")
    works(old)


def test_without_its_password_it_ends_as_wrong_and_says_what_to_do(unit: Units) -> None:
    poor = unit("poor")
    poor.drop_in("password", LoadCredential="")
    poor.control("start", check=False)
    dead_and_left_alone(poor, "78")
    (line,) = poor.lines("daemon.failed")
    assert "using password: NO" in line.text and line.priority == 3


def test_a_credential_that_comes_after_the_start_counts_at_a_restart_alone_and_the_daemon_says_so(
    unit: Units, machine: Machine, own_mariadb: Callable[..., MariaDB]
) -> None:
    server = own_mariadb()
    early = unit("early", server)
    server.stop()  # else it would have ended with 78
    machine.sh(f"mv {CREDENTIAL} /etc/credstore/later")
    try:
        early.control("start")
        server.start()
        wait_for(lambda: "Access denied" in early.get("/readyz")[1], 30, "the refusal")
    finally:
        machine.sh(f"mv /etc/credstore/later {CREDENTIAL}")
    early.control("reload")
    wait_for(lambda: early.lines("daemon.reload_applied") or early.lines("daemon.reload_refused"), 10, "the reload")
    status, said = early.get("/readyz")
    assert status == 503 and "a service gets it at its start only" in said and "`systemctl restart`" in said
    early.control("restart")
    works(early)


def test_a_wrong_configuration_ends_as_failed_with_78_and_is_not_started_again(unit: Units) -> None:
    wrong = unit("wrong")
    wrong.write(poll={"min": "never"})
    assert "failed" in wrong.control("start", check=False)
    dead_and_left_alone(wrong, "78")
    (line,) = wrong.lines("daemon.failed")
    assert f"{wrong.configuration}:1: poll.min: " in line.text and line.priority == 3
    wrong.write(poll={"min": "10ms"})
    wrong.control("start")
    works(wrong)


@pytest.mark.parametrize("fault", ["module", "schema", "port"])
def test_what_cannot_work_is_never_called_started(unit: Units, fault: str) -> None:
    broken = unit(f"broken-{fault}")
    if fault == "module":
        broken.write(handlers={"modules": ["there.is.none"]})
    elif fault == "schema":
        broken.sql("DROP TABLE qd_jobs")
    else:
        taken = unit("taken")
        taken.control("start")
        broken.write(http=taken.config["http"])
    broken.control("start", "--no-block")
    (line, *_) = wait_for(lambda: broken.lines("daemon.failed"), 15, "its reason")
    assert line.priority == 3 and "\n" not in line.text
    assert not [line for line in broken.journal() if line.text.startswith("Started")]
    if fault == "port":  # somebody else may give it back
        wait_for(lambda: int(broken.value("NRestarts")) >= 1, 10, "another try")
    else:
        broken.wait_state("failed")
        dead_and_left_alone(broken, "78")


def test_a_database_that_is_away_at_the_start_is_waited_for(unit: Units, own_mariadb: Callable[..., MariaDB]) -> None:
    server = own_mariadb()
    early = unit("early", server)
    server.stop()
    early.control("start")
    assert "waiting for database" in early.value("StatusText")
    assert early.get("/readyz")[0] == 503 and early.get("/livez")[0] == 200
    server.start()
    works(early)
    wait_for(lambda: early.value("StatusText").startswith("ready"), 10, "the status")
    assert early.value("NRestarts") == "0"


# ---------------------------------------------------------------------- reload


def test_a_reload_is_applied_or_refused_and_who_asked_for_it_is_told(unit: Units) -> None:
    changing = unit("changing")
    changing.control("start")
    pid = changing.pid()
    changing.write(workers=[{"queues": ["default"], "threads": 1}])
    changing.control("reload")
    (applied,) = wait_for(lambda: changing.lines("daemon.reload_applied"), 5, "its line")
    assert "changed=workers" in applied.text and applied.priority == 6
    changing.write(workers=[{"queues": ["nowhere"]}])
    assert "failed" in changing.control("reload", check=False)
    (refused,) = changing.lines("daemon.reload_refused")
    assert "workers[0].queues" in refused.text and refused.priority == 3
    status = changing.value("StatusText")
    assert "; reload refused: " in status and status.count("refused") == 1
    still = "ready, 0 jobs running, 0 waiting; the last reload was refused: "
    wait_for(lambda: changing.value("StatusText").startswith(still), 10, "the status that stays")
    assert "workers[0].queues" in changing.value("StatusText")
    assert changing.pid() == pid and changing.value("ActiveState") == "active"
    changing.write(workers=[{"queues": ["default"]}], handlers={"modules": ["no_such_module"]})
    changing.control("reload")  # what can be imported the daemon alone says
    wait_for(lambda: "no_such_module" in changing.lines("daemon.reload_refused")[-1].text, 5, "its line")
    works(changing)


# ---------------------------------------------------------------------- the journal


def test_the_journal_has_a_level_and_one_line_for_each_event(unit: Units) -> None:
    telling = unit("telling")
    telling.write(log={"jobs": "all"}, queues={"default": {"max_attempts": 1}}, handlers=HARD)
    telling.control("start")
    telling.enqueue("longer_later", seconds=[0], raises=True)
    telling.enqueue("no_such_type")
    works(telling)
    wait_for(lambda: telling.lines("job.dead_lettered"), 10, "the dead letter")
    levels = {"daemon.ready": 6, "job.succeeded": 6, "job.type_unknown": 4, "job.failed": 4, "job.dead_lettered": 3}
    for event, level in levels.items():
        assert {line.priority for line in telling.lines(event)} == {level}, event
        assert all(line.text.startswith("event=") and "\n" not in line.text for line in telling.lines(event))
    assert len(telling.lines("job.dead_lettered")) == 1
    pid = telling.pid()
    warned = [line.text for line in telling.journal("--priority=warning") if line.pid == pid]
    assert {text.split()[0] for text in warned} == {
        "event=job.failed", "event=job.dead_lettered", "event=job.type_unknown"
    }  # fmt: skip
    assert {line.fields["SYSLOG_IDENTIFIER"] for line in telling.journal() if line.pid == pid} == {"qd"}
    telling.kill("QUIT")
    wait_for(lambda: any("MainThread" in line.text for line in telling.lines("daemon.stack_shown")), 5, "the stacks")


def test_a_storm_of_signals_amid_thousands_of_lines_changes_nothing_but_a_stop_stops(unit: Units) -> None:
    stormy = unit("stormy")
    stormy.write(log={"jobs": "all", "level": "debug"})
    stormy.control("start")
    pid = stormy.pid()
    stormy.enqueue("nap", 3000, seconds=0)
    wait_for(lambda: len(stormy.ran("end")) > 100, 15, "work")
    stormy.machine.sh(f"for _ in $(seq 100); do kill -HUP {pid}; kill -USR1 {pid}; kill -QUIT {pid}; done")
    wait_for(lambda: stormy.lines("daemon.reload_applied"), 15, "an answer to the first of them")
    stormy.control("stop")
    assert (stormy.value("Result"), stormy.value("ExecMainStatus"), stormy.value("NRestarts")) == ("success", "0", "0")
    own = [line for line in stormy.journal() if line.pid == pid]
    assert len(stormy.lines("job.succeeded")) == len(stormy.ran("end"))
    assert not [line.text for line in own if not line.text.startswith("event=")]
    assert {line.priority for line in own} == {6}


# ---------------------------------------------------------------------- stop


def test_a_stop_lets_jobs_end_and_hands_back_what_does_not(unit: Units) -> None:
    draining = unit("draining")
    draining.write(shutdown={"grace": "3s"})
    draining.control("start")
    short, long = draining.enqueue("nap", seconds=1.5), draining.enqueue("nap", seconds=60)
    wait_for(lambda: len(draining.ran("start")) == 2, 10, "both to run")
    draining.control("stop", "--no-block")
    wait_for(lambda: draining.value("StatusText").startswith("stopping, "), 5, "the status")
    draining.wait_state("inactive")
    assert draining.ran("end") == short and draining.ran("cut") == long
    assert draining.machine.show(draining.name, "Result", "ExecMainStatus") == {
        "Result": "success",
        "ExecMainStatus": "0",
    }
    assert draining.sql("SELECT id, lane, attempts FROM qd_jobs WHERE type = 'nap'") == [(long[0], 0, 0)]


def test_a_grace_beyond_the_units_time_is_granted(unit: Units) -> None:
    patient = unit("patient")
    patient.write(shutdown={"grace": "10s"})
    patient.drop_in("hasty", TimeoutStopSec="1s")
    patient.control("start")
    (job,) = patient.enqueue("nap", seconds=3)
    wait_for(lambda: patient.ran("start", job), 10, "the job")
    patient.control("stop")
    assert patient.ran("end", job) and patient.value("Result") == "success"


def test_children_die_with_the_unit_however_it_ends(unit: Units) -> None:
    parent = unit("parent")
    parent.write(handlers={**HARD, "commands": {"sit": {"argv": ["sh", "-c", "setsid sleep 601 & exec sleep 602"]}}})
    parent.control("start")
    parent.enqueue("leave_a_program")
    parent.enqueue("sit")

    def asleep() -> int:
        return len(parent.machine.run("pgrep", "-u", "qd", "sleep", check=False).stdout.split())

    wait_for(lambda: asleep() == 3, 10, "the programs of both")
    parent.kill("KILL")
    wait_for(lambda: not asleep(), 10, "their end")
    parent.wait_restarted(1, 10)
    parent.enqueue("leave_a_program")
    wait_for(asleep, 10, "another")
    parent.control("stop")
    assert not asleep()


@pytest.mark.parametrize("how", ["exit_zero", "segfault"])
def test_a_handler_that_ends_the_daemon_does_so_for_a_moment_only(unit: Units, how: str) -> None:
    mortal = unit(f"mortal-{how.replace('_', '-')}")
    mortal.write(handlers=HARD, queues={"default": {"max_attempts": 1, "lease": "3s"}})
    mortal.control("start")
    mortal.enqueue(how)
    mortal.wait_restarted(1, 15)
    works(mortal)


def test_the_target_stops_all_daemons_and_starts_those_that_are_enabled(unit: Units, machine: Machine) -> None:
    both = [unit("first"), unit("second")]
    for one in both:
        one.control("enable", "--now")
    machine.run("systemctl", "stop", "qd.target")
    assert [one.value("ActiveState") for one in both] == ["inactive", "inactive"]
    both[1].control("disable")
    machine.run("systemctl", "start", "qd.target")
    both[0].wait_state("active")
    assert both[1].value("ActiveState") == "inactive"
    pid = both[0].pid()
    machine.run("systemctl", "restart", "qd.target")
    wait_for(lambda: both[0].pid() not in (0, pid), 20, "another process")
    both[0].control("disable")


def test_the_metrics_have_the_processs_own(unit: Units) -> None:
    seen = unit("seen")
    seen.control("start")
    page = seen.get("/metrics")[1]
    assert (
        "process_resident_memory_bytes" in page and "process_open_fds" in page and "process_start_time_seconds" in page
    )
