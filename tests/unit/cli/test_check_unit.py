"""`qd check` on the systemd service that runs the configuration: read from its files, judged by its time limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qd.cli.checks.unit import of_units, units_of
from qd.cli.checks.unit_files import FOREVER, read_unit, seconds
from qd.config.model import Config, DatabaseConfig, ShutdownConfig
from tests.support.server import ROOT

SOUND = (
    "[Service]\nType=notify\nExecStart=/opt/qd/bin/qd --config /etc/qd/qd.yaml run\n"
    "Restart=always\nWatchdogSec=60s\nKillMode=mixed\nTimeoutStopSec=60s\n"
)
TEMPLATE = SOUND.replace("qd.yaml", "%i.yaml")


class Machine:
    """A root folder with units, and a configuration beside it.

    Attributes:
        file: of the configuration.
    """

    def __init__(self, folder: Path) -> None:
        self.root, self.file = folder / "root", folder / "etc" / "mails.yaml"
        self.file.parent.mkdir()
        self.file.write_text("{}\n")

    def write(self, place: str, text: str) -> None:
        """A file below the root; /etc/qd means where the configuration is."""
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("/etc/qd/qd.yaml", str(self.file)).replace("/etc/qd/", f"{self.file.parent}/"))

    def told(self, grace: float = 30.0, **database: Any) -> list[tuple[str, str]]:
        config = Config(shutdown=ShutdownConfig(grace=grace), database=DatabaseConfig(**database))
        return [(found.level, found.detail) for found in of_units(config, units_of(self.file, self.root))]

    def names(self) -> list[str]:
        return [unit.name for unit in units_of(self.file, self.root)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_where_no_service_runs_this_file_nothing_is_told(machine: Machine) -> None:
    assert machine.told() == []
    machine.write("etc/systemd/system/qd.service", SOUND.replace("/etc/qd/qd.yaml", "/srv/other.yaml"))
    assert machine.told() == []
    machine.write("etc/systemd/system/qd.service", "[Service]\nExecStart=/usr/bin/qd --config /etc/qd/qd.yaml status\n")
    assert machine.told() == [], "something else that is called qd"


@pytest.mark.parametrize(("name", "found"), [("qd.service", "qd.service"), ("qd@.service", "qd@mails.service")])
def test_the_shipped_units_contradict_nothing(machine: Machine, name: str, found: str) -> None:
    machine.write(f"usr/lib/systemd/system/{name}", (ROOT / "systemd" / name).read_text())
    assert machine.names() == [found]
    [(level, said)] = machine.told()
    assert level == "ok"
    assert said == f"{found}: a stop has 1m for a grace of 30s, the watchdog's period is 1m"


def test_beside_qd_service_an_instance_is_named_only_where_it_is_in_use(machine: Machine) -> None:
    machine.file = machine.file.with_name("qd.yaml")
    machine.file.write_text("{}\n")
    machine.write("etc/systemd/system/qd.service", SOUND)
    machine.write("etc/systemd/system/qd@.service", TEMPLATE)
    assert machine.names() == ["qd.service"], "a template runs whatever somebody makes an instance of"
    enabled = machine.root / "etc/systemd/system/multi-user.target.wants/qd@qd.service"
    enabled.parent.mkdir()
    enabled.symlink_to("/etc/systemd/system/qd@.service")
    assert machine.names() == ["qd.service", "qd@qd.service"]
    enabled.unlink()
    machine.write("etc/systemd/system/qd@qd.service.d/own.conf", "[Service]\n")
    assert machine.names() == ["qd.service", "qd@qd.service"]


@pytest.mark.parametrize(
    "command",
    [
        "ExecStart=/opt/qd/bin/qd --config={} run",
        "ExecStart=-/opt/qd/bin/python -m qd --config '{}' run",
        "ExecStart=/opt/qd/bin/qd run\nEnvironment=A=1 QD_CONFIG={}",
        "ExecStart=/bin/false run\nExecStart=\nExecStart=/opt/qd/bin/qd \\\n  # a comment\n  --config {} \\\n  run",
    ],
)
def test_the_file_is_found_however_the_service_names_it(machine: Machine, command: str) -> None:
    machine.write("etc/systemd/system/qd.service", f"[Service]\n{command.format(machine.file)}\n")
    assert machine.names() == ["qd.service"]


@pytest.mark.parametrize("grace", [60.0, 46.0, 45.1])
def test_a_stop_timeout_under_the_grace_and_its_end_is_told_with_what_to_set(machine: Machine, grace: float) -> None:
    machine.write("etc/systemd/system/qd.service", SOUND)
    [(level, said)] = machine.told(grace)
    assert level == "warn"
    assert said.startswith("qd.service: TimeoutStopSec is 1m, but shutdown.grace is ")
    assert "Set it to " in said


def test_the_grace_that_just_fits_is_fine(machine: Machine) -> None:
    machine.write("etc/systemd/system/qd.service", SOUND)
    assert [level for level, _ in machine.told(45.0)] == ["ok"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("WatchdogSec=0", "has no WatchdogSec"),
        ("WatchdogSec=500ms", "WatchdogSec is 500ms: a busy machine"),
        ("Type=simple", "Type is simple"),
        ("KillMode=", "KillMode is control-group"),
        ("KillMode=control-group", "KillMode is control-group: a stop ends programs"),
        ("Restart=no", "has no Restart"),
        ("TimeoutStartSec=30", "TimeoutStartSec is 30s, but with a database that answers slowly READY may take 35s"),
        ("TimeoutSec=10\nTimeoutStopSec=1min", "TimeoutStartSec is 10s"),
        ("TimeoutSec=36s", "TimeoutStopSec is 36s"),
    ],
)
def test_a_drop_in_that_contradicts_is_told(machine: Machine, lines: str, said: str) -> None:
    machine.write("etc/systemd/system/qd.service", SOUND)
    machine.write("etc/systemd/system/qd.service.d/override.conf", f"[Service]\n{lines}\n")
    [(level, told)] = machine.told()
    assert level == "warn" and said in told, told


@pytest.mark.parametrize(
    "line", ["WatchdogSec=", "KillMode=kindly", "TimeoutStopSec=soon", "TimeoutStopSec=", "Type=", "Odd"]
)
def test_what_is_no_value_changes_nothing(machine: Machine, line: str) -> None:
    machine.write("etc/systemd/system/qd.service", SOUND)
    machine.write("etc/systemd/system/qd.service.d/override.conf", f"[Service]\n{line}\n")
    assert [level for level, _ in machine.told()] == ["ok"]


def test_several_contradictions_are_told_at_once(machine: Machine) -> None:
    machine.write("etc/systemd/system/qd.service", "[Service]\nExecStart=/opt/qd/bin/qd --config /etc/qd/qd.yaml run\n")
    assert [level for level, _ in machine.told(120.0)] == ["warn"] * 5


def test_limits_without_end_contradict_nothing(machine: Machine) -> None:
    machine.write("etc/systemd/system/qd.service", SOUND)
    machine.write("run/systemd/system/qd.service.d/x.conf", "[Service]\nTimeoutStopSec=infinity\nTimeoutStartSec=0\n")
    assert [level for level, _ in machine.told(3600.0)] == ["ok"]


def test_later_files_add_to_earlier_ones_and_etc_comes_before_usr(machine: Machine) -> None:
    machine.write("usr/lib/systemd/system/qd@.service", TEMPLATE.replace("TimeoutStopSec=60s", "TimeoutStopSec=1"))
    machine.write("etc/systemd/system/qd@.service", TEMPLATE)
    machine.write("usr/lib/systemd/system/qd@.service.d/20-stop.conf", "[Service]\nTimeoutStopSec=2\n")
    machine.write("etc/systemd/system/qd@.service.d/20-stop.conf", "[Service]\nTimeoutStopSec=3\n")
    machine.write("etc/systemd/system/service.d/10-all.conf", "[Service]\nTimeoutStopSec=4\nUMask=0077\n")
    unit = read_unit("qd@mails.service", machine.root)
    assert unit is not None
    assert (unit.stop_timeout(), unit.value("UMask")) == (3.0, "0077")
    machine.write("etc/systemd/system/qd@mails.service.d/30-own.conf", "[Service]\nTimeoutStopSec=5min 20s\n")
    unit = read_unit("qd@mails.service", machine.root)
    assert unit is not None and unit.stop_timeout() == 320.0
    machine.write("run/systemd/system/qd@mails.service.d/20-stop.conf", "[Service]\nTimeoutSec=1h\n")
    machine.write("etc/systemd/system/qd@mails.service.d/30-own.conf", "[Service]\n")
    unit = read_unit("qd@mails.service", machine.root)
    assert unit is not None and unit.stop_timeout() == 3.0, "/etc comes before /run, whatever the folder is called"


def test_the_managers_own_default_holds_where_the_service_says_nothing(machine: Machine) -> None:
    machine.write("etc/systemd/system/qd.service", SOUND.replace("TimeoutStopSec=60s\n", ""))
    assert [level for level, _ in machine.told(75.0)] == ["ok"], "90 s, as systemd has it"
    machine.write("etc/systemd/system.conf", "[Manager]\n#DefaultTimeoutStopSec=90s\nDefaultTimeoutStopSec=20s\n")
    assert "TimeoutStopSec is 20s" in machine.told()[0][1]
    machine.write("etc/systemd/system.conf.d/x.conf", "[Manager]\nDefaultTimeoutStopSec=2min\n")
    assert [level for level, _ in machine.told()] == ["ok"]


def test_a_masked_an_unreadable_and_a_broken_unit_are_none(machine: Machine, tmp_path: Path) -> None:
    machine.write("usr/lib/systemd/system/qd.service", SOUND)
    masked = machine.root / "etc/systemd/system/qd.service"
    masked.parent.mkdir(parents=True)
    masked.symlink_to("/dev/null")
    assert machine.told() == []
    masked.unlink()
    masked.mkdir()  # no file at all
    assert machine.names() == ["qd.service"]
    machine.write("usr/lib/systemd/system/qd.service", "[Service\nExecStart='\nExecStart\n=\n\\")
    assert machine.told() == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90", 90.0), ("1min 30s", 90.0), ("1min30", 90.0), ("500ms", 0.5), ("2h", 7200.0), ("1.5 min", 90.0),
        ("infinity", FOREVER), ("", None), ("soon", None), ("5 parsecs", None), ("-1", None),
    ],
)  # fmt: skip
def test_time_spans_are_read_as_systemd_reads_them(text: str, value: float | None) -> None:
    assert seconds(text) == value
