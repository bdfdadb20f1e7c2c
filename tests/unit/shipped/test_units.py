"""The systemd units: valid, alike, hardened, and calling the program as it wants it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from tests.support.missing import without
from tests.unit.shipped.tools import ROOT

SERVICES = ("qd.service", "qd@.service")
UNITS = (*SERVICES, "qd.target")
EXAMPLE = ROOT / "systemd" / "qd.service.d" / "jobs.conf.example"
MOST_EXPOSED = 1.5
"""Of systemd's own measure, 0 to 10; a service that sets nothing has 9.6."""


def text_of(name: str) -> str:
    return (ROOT / "systemd" / name).read_text("utf-8")


def unit(name: str) -> dict[str, str]:
    """The settings of a unit, its last word for each."""
    lines = text_of(name).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    found = which("systemd-analyze")
    if found is None:
        without("systemd-analyze isn't installed (Debian: apt-get install systemd)")
    return subprocess.run([found, *arguments], capture_output=True, text=True, timeout=60)


def installed(folder: Path) -> list[str]:
    """The units as files that can be judged where the program isn't installed."""
    for name in UNITS:
        (folder / name.replace("@.", "@mails.")).write_text(text_of(name).replace("/opt/qd/bin/qd", "/bin/true"))
    return sorted(str(path) for path in folder.iterdir() if path.is_file())


def complaints(files: list[str]) -> list[str]:
    """What systemd has to say about ours; of the machine's other units it may say more."""
    done = analyze("verify", "--man=no", *files)
    ours = [line for line in done.stderr.splitlines() if "qd" in line]
    assert ours or done.returncode == 0, done.stderr
    return ours


def test_systemd_finds_nothing_to_say_about_the_units(tmp_path: Path) -> None:
    assert complaints(installed(tmp_path)) == []


def test_systemd_finds_nothing_to_say_about_any_line_that_jobs_may_need(tmp_path: Path) -> None:
    lines = re.findall(r"^#([A-Za-z]+=.*)$", EXAMPLE.read_text("utf-8"), re.MULTILINE)
    assert len(lines) > 20
    drop_in = tmp_path / "qd.service.d" / "jobs.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\n" + "\n".join(lines))
    assert complaints(installed(tmp_path)) == []


@pytest.mark.parametrize("name", SERVICES)
def test_the_unit_is_hardened_by_systemds_own_measure(tmp_path: Path, name: str) -> None:
    file = tmp_path / name.replace("@.", "@mails.")
    file.write_text(text_of(name))
    done = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:g}", "--no-pager", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Overall exposure level for {file.name}" in done.stdout


@pytest.mark.parametrize("name", SERVICES)
def test_the_unit_gives_the_daemon_time_to_stop_and_restarts_it_but_for_78(name: str) -> None:
    settings = unit(name)
    assert (settings["Type"], settings["KillMode"], settings["Restart"]) == ("notify", "mixed", "always")
    assert settings["RestartPreventExitStatus"] == "78"
    assert settings["StartLimitIntervalSec"] == "0"
    assert int(settings["TimeoutStopSec"].removesuffix("s")) >= 30 + 15  # shutdown.grace by default
    assert "WatchdogSec" in settings
    assert settings["RuntimeDirectory"] == "qd"
    assert "ProcSubset" not in settings, "it would remove the process_* metrics"


def test_the_units_of_one_daemon_and_of_several_are_the_same_but_for_the_instances_name() -> None:
    one, several = (text_of(name).partition("[Unit]")[2] for name in SERVICES)
    described = re.sub(r"^(Description=.*)$", r"\1 (%i)", one, flags=re.MULTILINE)
    assert several == described.replace("/etc/qd/qd.yaml", "/etc/qd/%i.yaml")


@pytest.mark.parametrize("name", SERVICES)
def test_the_unit_calls_the_program_as_the_program_wants_it(name: str) -> None:
    program, *arguments = unit(name)["ExecStart"].split()
    assert program == "/opt/qd/bin/qd"
    called = [sys.executable, "-m", "qd", *arguments, "--help"]
    done = subprocess.run(called, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Run the daemon" in done.stdout


@pytest.mark.parametrize("name", SERVICES)
def test_a_reload_is_judged_by_the_file_without_a_handlers_code(name: str) -> None:
    program, *arguments = unit(name)["ExecReload"].partition("exec ")[2].partition(" >")[0].split()
    assert program == "/opt/qd/bin/qd" and arguments[0] == "--config"
    assert arguments[2:] == ["check", "--file-only"]
