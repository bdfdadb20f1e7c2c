"""The systemd units: valid, and calling the program as it wants it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from tests.unit.shipped.tools import ROOT

UNITS = ("qd.service", "qd@.service")


def unit(name: str) -> dict[str, str]:
    """The settings of a unit, its last word for each."""
    lines = (ROOT / "systemd" / name).read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_systemd_finds_nothing_to_say_about_the_units(tmp_path: Path) -> None:
    for name in UNITS:
        text = (ROOT / "systemd" / name).read_text("utf-8")
        (tmp_path / name.replace("@.", "@mails.")).write_text(text.replace("/opt/qd/bin/qd", "/bin/true"))
    found = which("systemd-analyze")
    if found is None:
        pytest.skip("systemd-analyze isn't installed")
    verify = [found, "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60)
    about_ours = [line for line in done.stderr.splitlines() if "qd" in line]
    assert (about_ours, done.returncode) == ([], 0)


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_gives_the_daemon_time_to_stop_and_restarts_it_but_for_78(name: str) -> None:
    settings = unit(name)
    assert (settings["Type"], settings["KillMode"], settings["Restart"]) == ("notify", "mixed", "always")
    assert settings["RestartPreventExitStatus"] == "78"
    assert settings["StartLimitIntervalSec"] == "0"
    assert int(settings["TimeoutStopSec"].removesuffix("s")) >= 30 + 15  # shutdown.grace by default
    assert "WatchdogSec" in settings
    assert settings["RuntimeDirectory"] == "qd"
    assert "ProcSubset" not in settings, "it would remove the process_* metrics"


def test_both_units_differ_in_their_configuration_and_description_only() -> None:
    one, other = unit("qd.service"), unit("qd@.service")
    assert {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)} == {"Description", "ExecStart"}
    assert "/etc/qd/%i.yaml" in other["ExecStart"]


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_calls_the_program_as_the_program_wants_it(name: str) -> None:
    program, *arguments = unit(name)["ExecStart"].split()
    assert program == "/opt/qd/bin/qd"
    called = [sys.executable, "-m", "qd", *arguments, "--help"]
    done = subprocess.run(called, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Run the daemon" in done.stdout
