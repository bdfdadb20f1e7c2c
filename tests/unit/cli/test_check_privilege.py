"""`qd check` as root: no handler's code that others can change runs as root."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from qd.config.trust import changeable_by_others
from tests.support.missing import without
from tests.support.server import ROOT

NOBODY = pwd.getpwnam("nobody")
JOBS = """
import os
from pathlib import Path

import qd

Path(__file__).with_name("ran").write_text(f"{os.getresuid()} {os.getresgid()} {sorted(os.getgroups())}")
qd.handler("send_email")(print)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One that `nobody` owns, with a module for handlers."""
    if os.geteuid() != 0:
        without("root: nobody else has anything to give up")
    made = tmp_path / "state"
    made.mkdir(mode=0o755)
    (made / "planted_jobs.py").write_text(JOBS)
    (made / "secret").write_text("pw-of-roots\n")
    os.chown(made, NOBODY.pw_uid, NOBODY.pw_gid)
    return made


def configure(folder: Path, modules: str = "[planted_jobs]") -> None:
    secret = folder / "secret"
    (folder / "qd.yaml").write_text(f"database: {{password_file: {secret}}}\nhandlers: {{modules: {modules}}}\n")


def check(folder: Path, tmp_path: Path) -> str:
    """What the installed program says there: its own folder is the first of Python's path."""
    program = tmp_path / "qd"
    program.write_text("from qd.cli import main\n\nmain()\n")
    done = subprocess.run(
        [sys.executable, str(program), "--config", "qd.yaml", "check", "--offline"],
        cwd=folder, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def test_where_none_does_root_imports_nothing_that_another_can_write(folder: Path, tmp_path: Path) -> None:
    configure(folder)
    said = check(folder, tmp_path)
    assert f"warn  handlers: not imported: another user than root can write {folder}, and what lies there" in said
    assert "run the check as the daemon's user" in said and not (folder / "ran").exists()


def test_a_module_of_anothers_in_a_folder_of_roots_is_not_imported(folder: Path, tmp_path: Path) -> None:
    configure(folder)
    os.chown(folder, 0, 0)
    os.chown(folder / "planted_jobs.py", NOBODY.pw_uid, 0)
    assert f"can write {folder}/planted_jobs.py, and" in check(folder, tmp_path)
    assert not (folder / "ran").exists()


def test_what_is_roots_alone_is_imported_by_root(folder: Path, tmp_path: Path) -> None:
    configure(folder)
    os.chown(folder, 0, 0)
    assert "ok    handlers: 1: send_email" in check(folder, tmp_path)


def test_nothing_that_lies_there_is_taken_for_a_module_of_qds_where_no_module_is_named(
    folder: Path, tmp_path: Path
) -> None:
    configure(folder, "[]")
    for name in ("mysql", "resource", "multiprocessing", "json", "prometheus_client"):
        (folder / f"{name}.py").write_text(JOBS)
    assert "warn  handlers: there is none" in check(folder, tmp_path) and not (folder / "ran").exists()


@pytest.mark.parametrize(("mode", "changeable"), [(0o755, False), (0o775, True), (0o757, True), (0o1777, True)])
def test_a_folder_that_others_can_write_is_changeable(folder: Path, mode: int, changeable: bool) -> None:
    os.chown(folder, 0, 0)
    folder.chmod(mode)
    assert bool(changeable_by_others(str(folder))) is changeable
    inner = folder / "inner"
    inner.mkdir(mode=0o755)
    keeps = mode == 0o1777  # what is root's
    assert bool(changeable_by_others(str(inner))) is (changeable and not keeps)


def test_a_link_of_anothers_to_a_folder_of_roots_is_changeable(folder: Path, tmp_path: Path) -> None:
    (folder / "link").symlink_to(tmp_path)
    os.chown(folder, 0, 0)
    assert changeable_by_others(str(folder / "link")) is None
    os.chown(folder, NOBODY.pw_uid, 0)
    assert changeable_by_others(str(folder / "link")) == f"{folder} belongs to nobody"


ASKS = """
import sys

from qd.cli.checks.privilege import who_imports
from qd.cli.checks.unit_files import Unit
from qd.config import find_config, read_config

user, sys.executable = sys.argv[1], sys.argv[2]
_, finding = who_imports(read_config(find_config("qd.yaml")), [Unit("qd.service", [("User", user)])])
print(finding.level, finding.what, finding.detail)
"""


@pytest.mark.parametrize("user", ["nobody", "nosuchuser"])
def test_root_imports_nothing_for_a_user_that_it_cannot_become(folder: Path, tmp_path: Path, user: str) -> None:
    """Not even what root alone can write: it is that user's code."""
    configure(folder)
    os.chown(folder, 0, 0)
    tmp_path.chmod(0o700)
    (tmp_path / "python").symlink_to(sys.executable)
    done = subprocess.run(
        [sys.executable, "-c", ASKS, user, str(tmp_path / "python")],
        cwd=folder, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.startswith(f"warn handlers not imported: qd.service runs as {user}, who isn't known here or")
    assert str(tmp_path / "python") in done.stdout and "runuser" in done.stdout
