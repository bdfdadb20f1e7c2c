"""`qd check` on a machine with a real systemd: it reads of the daemon's service what systemd reads."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from qd.cli.checks.unit_files import seconds
from tests.support.systemd import CHECKOUT, PROGRAM, Machine
from tests.support.unit import STATE, Unit

pytestmark = pytest.mark.server
Units = Callable[..., Unit]

READ = (
    "import json, sys; from qd.cli.checks.unit_files import read_unit; unit = read_unit(sys.argv[1]); "
    "print(json.dumps([unit.stop_timeout(), unit.start_timeout(), unit.watchdog(), unit.choice('KillMode'), "
    "unit.choice('Type'), unit.choice('Restart')]))"
)
WATCHED = f"""
import os

import qd

try:
    os.setuid(0)
except PermissionError:
    with open("{STATE}/ran", "a") as ran:
        print(*os.getresuid(), *os.getresgid(), *sorted({{*os.getgroups(), os.getgid()}}), file=ran)
qd.handler("watched")(print)
os.write(1, b"\\x1b[2Jwatched\\n")
if os.fork() == 0:
    os.setsid()
    os.execlp("sleep", "sleep", "4711")
"""
"""A module that writes down as whom it is imported, having tried to be root, and leaves a process behind."""
SHOWN = ("TimeoutStopUSec", "TimeoutStartUSec", "WatchdogUSec", "KillMode", "Type", "Restart")


def checked(unit: Unit, *options: str) -> list[str]:
    """What a check says of the service, as root on its machine."""
    machine = unit.machine
    done = machine.run(f"{PROGRAM}/bin/qd", "--config", unit.configuration, "check", "--json", *options, check=False)
    return [
        f"{found['level']} {found['detail']}"
        for found in json.loads(done.stdout)["findings"]
        if found["what"] == "unit"
    ]


def read_alike(machine: Machine, name: str) -> list[object]:
    """What qd reads of a service's files, having been held against what systemd shows."""
    python = f"{PROGRAM}/bin/python"
    read = json.loads(machine.run(python, "-c", READ, name, PYTHONPATH=CHECKOUT).stdout)
    shown = machine.show(name, "ActiveState", *SHOWN)
    if shown["ActiveState"] != "active":  # until then systemd shows no watchdog
        shown["WatchdogUSec"] = str(read[2])
    assert read == [seconds(shown[key]) if key.endswith("USec") else shown[key] for key in SHOWN]
    return list(read)


def test_the_installed_unit_is_found_by_its_configuration_and_contradicts_nothing(unit: Units) -> None:
    mails = unit("mails")
    [said] = checked(mails)
    assert said.startswith("ok qd@mails.service: a stop has 1m for a grace of 10s")
    mails.control("start")
    assert read_alike(mails.machine, mails.name)[:3] == [60.0, 90.0, 60.0]


def test_drop_ins_count_as_systemd_counts_them(unit: Units) -> None:
    reports = unit("reports")
    machine = reports.machine
    places = {
        "/etc/systemd/system/service.d/10-all.conf": "KillMode=process\nRestart=on-failure",
        "/etc/systemd/system/qd@.service.d/30-both.conf": "TimeoutStopSec=2min 30s",
        "/run/systemd/system/qd@.service.d/40-run.conf": "WatchdogSec=5s",
        "/etc/systemd/system/qd@reports.service.d/20-own.conf": "TimeoutStopSec=3\nTimeoutStartSec=infinity",
        "/run/systemd/system/qd@reports.service.d/30-both.conf": "TimeoutStopSec=7s",
        "/etc/systemd/system/qd@.service.d/25-same.conf": "TimeoutStopSec=9s",
        "/etc/systemd/system/qd@reports.service.d/25-same.conf": "TimeoutStopSec=8s\nKillMode=\nType=\n"
        "Restart=sometimes\nRestart=",
        "/etc/systemd/system/qd@reports.service.d/50-last.conf": "TimeoutSec=50s\nTimeoutStopSec=12s\nWatchdogSec=\n"
        "TimeoutStartSec=infinity",
    }
    try:
        for path, lines in places.items():
            machine.write(path, f"[Service]\n{lines}\n")
        machine.run("systemctl", "daemon-reload")
        assert read_alike(machine, reports.name)[:3] == [12.0, float("inf"), 5.0]
        machine.sh("rm -f '/etc/systemd/system/qd@reports.service.d/50-last.conf'; systemctl daemon-reload")
        assert read_alike(machine, reports.name)[0] == 150.0
        machine.sh("rm -f '/etc/systemd/system/qd@.service.d/30-both.conf'; systemctl daemon-reload")
        assert read_alike(machine, reports.name)[0] == 7.0
        machine.sh("rm -f '/run/systemd/system/qd@reports.service.d/30-both.conf'; systemctl daemon-reload")
        assert read_alike(machine, reports.name)[0] == 8.0
        said = checked(reports, "--offline")
        assert any("TimeoutStopSec is 8s, but shutdown.grace is 10s" in line for line in said)
        assert any("WatchdogSec is 5s" in line for line in said)
    finally:
        for path in places:
            machine.sh(f"rm -f '{path}'")
        machine.run("systemctl", "daemon-reload")


def test_the_managers_defaults_hold_where_a_service_says_nothing(unit: Units) -> None:
    plain = unit("plain")
    machine = plain.machine
    machine.write("/etc/systemd/system.conf.d/50-stop.conf", "[Manager]\nDefaultTimeoutStopSec=7s\n")
    text = machine.read(plain.value("FragmentPath")).replace("TimeoutStopSec=", "#TimeoutStopSec=")
    machine.write(f"/etc/systemd/system/{plain.name}", text.replace("TimeoutStartSec=", "#TimeoutStartSec="))
    try:
        machine.run("systemctl", "daemon-reload")
        assert read_alike(machine, plain.name)[:2] == [7.0, 90.0]
        assert any("TimeoutStopSec is 7s" in line for line in checked(plain, "--offline"))
    finally:
        machine.sh(f"rm -f /etc/systemd/system.conf.d/50-stop.conf /etc/systemd/system/{plain.name}")
        machine.run("systemctl", "daemon-reload")


def test_a_check_by_root_fails_where_the_service_will(unit: Units) -> None:
    eyed = unit("eyed")
    machine, module = eyed.machine, f"{STATE}/eyed_jobs.py"
    check = f"{PROGRAM}/bin/qd --config {eyed.configuration} check --offline || true"
    machine.write(module, "import qd\n\nqd.handler('eyed')(print)\n", mode=0o600)
    try:
        eyed.write(handlers={"modules": ["eyed_jobs"]})
        said = machine.sh(f"cd / && {check}")
        assert f"in / and the rest of Python's path; {eyed.name} looks in {STATE}: cd there first" in said
        may_not = f"FAIL  handlers: {eyed.name} runs as qd, who may not read {module}: chgrp qd and chmod g+r it"
        assert may_not in machine.sh(f"cd {STATE} && {check}")
        assert "failed" in eyed.control("start", check=False)
        machine.sh(f"chgrp qd {module}; chmod g+r {module}")
        said = machine.sh(f"cd {STATE} && {check}")
        assert "FAIL" not in said and f"ok    user: {eyed.name} runs as qd, who may read its" in said
        eyed.control("start")
    finally:
        machine.sh(f"rm -f {module}")


def test_the_handlers_code_never_runs_as_root_in_a_check_by_root(unit: Units) -> None:
    watched = unit("watched")
    machine, module = watched.machine, f"{STATE}/watched_jobs.py"
    machine.write(module, WATCHED)
    machine.sh(f"rm -f {STATE}/ran; chown qd:qd {module}")
    user, group = (machine.sh(f"id -{letter} qd").strip() for letter in "ug")
    groups = sorted(map(int, machine.sh("id -G qd").split()))
    command = f"cd {STATE} && {PROGRAM}/bin/qd --config {watched.configuration} check"
    try:
        watched.write(handlers={"modules": ["watched_jobs"]})
        said = machine.sh(f"{command} || true")
        assert "ok    handlers: 1: watched" in said and f"ok    user: {watched.name} runs as qd, who may" in said
        assert "ok    server: " in said, "the password, which root alone may read, was read before"
        assert "\\x1b[2Jwatched" in said and "\x1b" not in said, "no imported code writes to root's terminal"
        assert machine.sh("grep -lxz 4711 /proc/[0-9]*/cmdline 2>/dev/null || true") == "", "nor outlives the check"
        ran = machine.read(f"{STATE}/ran").splitlines()
        assert set(ran) == {" ".join([*3 * [user], *3 * [group], *map(str, groups)])}

        elsewhere = f"{watched.configuration}.copy"
        machine.sh(f"cp {watched.configuration} {elsewhere}; rm {STATE}/ran")
        said = machine.sh(f"{command.replace(watched.configuration, elsewhere)} --offline || true")
        assert f"warn  handlers: not imported: another user than root can write {STATE}, and" in said
        assert machine.sh(f"ls {STATE}/ran 2>/dev/null || true") == ""
    finally:
        machine.sh(f"rm -f {module} {STATE}/ran {watched.configuration}.copy")
