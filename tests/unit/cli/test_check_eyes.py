"""`qd check` as root: what the service's own user can't read is found, and where its modules are looked for."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from types import ModuleType
from typing import Any

import pytest

from qd.cli.checks.eyes import hidden, of_eyes
from qd.cli.checks.handlers import of_handlers
from qd.cli.checks.unit_files import Unit
from qd.config.model import CommandConfig, Config, DatabaseConfig, HandlersConfig
from qd.store.protocol import Finding
from tests.support.missing import without

MODULE = "eyed_shop.jobs"


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that anybody may enter, unlike pytest's."""
    if os.geteuid() != 0:
        without("root: only he looks with another's eyes")
    made = Path(tempfile.mkdtemp(prefix="qd-eyes-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    rmtree(made)


class Place:
    """An application in a folder, and a service that runs it as `nobody`."""

    def __init__(self, folder: Path) -> None:
        self.file, self.secret = self.write(folder / "qd.yaml"), self.write(folder / "password")
        self.package, self.jobs = self.write(folder / "eyed_shop/__init__.py"), self.write(folder / "eyed_shop/jobs.py")
        self.python = self.write(folder / "own/bin/python", 0o755)
        self.program = self.write(folder / "bin/qd", 0o755, f"#!{self.python}\n")
        self.folder = folder
        for name, path in (("eyed_shop", self.package), (MODULE, self.jobs)):
            sys.modules[name] = module = ModuleType(name)
            module.__file__ = str(path)

    def write(self, path: Path, mode: int = 0o644, text: str = "") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in (path.parent, path.parent.parent):
            folder.chmod(0o755) if str(folder).startswith("/var/tmp/qd-eyes-") else None
        path.write_text(text)
        path.chmod(mode)
        return path

    def unit(self, *more: tuple[str, str]) -> Unit:
        start = f"{self.program} --config {self.file} run"
        return Unit("qd.service", [("ExecStart", start), ("User", "nobody"), *more])

    def found(self, unit: Unit | None = None, **handlers: Any) -> list[Finding]:
        """What is said of this folder; others' modules are loaded here too."""
        config = Config(
            database=DatabaseConfig(password_file=str(self.secret)),
            handlers=HandlersConfig(modules=(MODULE,), **handlers),
        )
        found = list(of_eyes(config, self.file, [unit or self.unit()]))
        return [finding for finding in found if str(self.folder) in finding.detail or finding.what == "user"]


@pytest.fixture
def place(folder: Path) -> Iterator[Place]:
    yield Place(folder)
    for name in ("eyed_shop", MODULE):
        sys.modules.pop(name, None)


def failures(found: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.what, finding.detail) for finding in found if finding.level == "FAIL"]


def test_what_everybody_may_read_is_fine(place: Place) -> None:
    assert failures(place.found()) == []


@pytest.mark.parametrize(
    ("name", "mode", "what", "act"),
    [
        ("file", 0o600, "config", "read"), ("secret", 0o600, "password", "read"), ("jobs", 0o640, "handlers", "read"),
        ("package", 0o600, "handlers", "read"), ("program", 0o750, "program", "run"),
        ("python", 0o700, "program", "run"),
    ],
)  # fmt: skip
def test_a_file_that_root_alone_may_read_is_told_with_what_to_do(
    place: Place, name: str, mode: int, what: str, act: str
) -> None:
    path: Path = getattr(place, name)
    path.chmod(mode)
    [(found, said)] = failures(place.found())
    assert found == what
    cure = f"chown nobody and chmod 400 {path}" if name == "secret" else "chgrp "
    assert said.startswith(f"qd.service runs as nobody, who may not {act} {path}: {cure}")


@pytest.mark.parametrize("name", ["jobs", "python"])
def test_a_folder_on_the_way_is_told_once(place: Place, name: str) -> None:
    path: Path = getattr(place, name)
    path.parent.chmod(0o700)
    [(_, said)] = failures(place.found())
    assert f"who may not enter {path.parent}, on the way to {path.parent}/" in said and "g+rx" in said


def test_links_are_followed_to_where_they_lead(place: Place) -> None:
    real = place.write(place.folder / "root/bin/python3", 0o755)
    real.parent.parent.chmod(0o700)
    place.python.unlink()
    place.python.symlink_to(real)
    [(what, said)] = failures(place.found())
    assert what == "program" and f"enter {place.folder}/root, on the way to {place.python}" in said


def test_the_groups_of_the_service_count(place: Place) -> None:
    place.jobs.chmod(0o640)  # root's group
    assert failures(place.found(place.unit(("SupplementaryGroups", "root")))) == []
    assert failures(place.found(place.unit(("Group", "root")))) == []


def test_the_program_of_a_command_handler_has_to_be_his_too(place: Place) -> None:
    tool = place.write(place.folder / "tools/report", 0o700)
    [(what, said)] = failures(place.found(commands={"report": CommandConfig(argv=(str(tool),))}))
    assert what == "handlers" and f"run {tool}" in said


def test_what_the_services_own_settings_hide_is_told(place: Place) -> None:
    (_, said), *_ = failures(place.found(place.unit(("PrivateTmp", "yes"))))
    assert said == f"qd.service runs as nobody, from whom PrivateTmp= hides /var/tmp, and so {place.file}: move it, " \
        "as to /opt or /var/lib"  # fmt: skip
    shown = place.unit(("PrivateTmp", "yes"), ("BindReadOnlyPaths", f"-/nowhere {place.folder}"))
    assert failures(place.found(shown)) == []


def test_an_interpreter_below_roots_home_is_hidden_whatever_its_mode() -> None:
    unit = Unit("qd.service", [("ProtectHome", "yes")])
    assert hidden(unit, "/root/.pyenv/bin/python") == ("ProtectHome", "/root")
    assert hidden(unit, "/opt/qd/bin/python") is None
    assert hidden(Unit("qd.service", [("ProtectHome", "read-only")]), "/root/x") is None


@pytest.mark.parametrize("setting", [("User", "no-such-user"), ("RootDirectory", "/srv/image")])
def test_what_can_not_be_judged_is_said_to_be_seen_as_root(place: Place, setting: tuple[str, str]) -> None:
    place.jobs.chmod(0o600)
    [finding] = place.found(place.unit(setting))
    assert (finding.level, finding.what) == ("warn", "user") and "looked at as root" in finding.detail


def test_a_service_of_roots_is_looked_at_by_root(place: Place) -> None:
    place.jobs.chmod(0o600)
    assert place.found(place.unit(("User", "root"))) == []


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Unit:
    """A service that works in a folder of its own; the check runs in the one above."""
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return Unit("qd.service", [("WorkingDirectory", f"{tmp_path}/home")])


def loaded(unit: Unit, module: str) -> list[str]:
    """What is said of a module."""
    config = Config(handlers=HandlersConfig(modules=(module,)))
    return [finding.detail for finding in of_handlers(config, [unit]) if module in finding.detail]


def test_a_module_that_is_not_here_is_said_to_be_looked_for_elsewhere(
    away: Unit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [said] = loaded(away, "no_such_shop")
    assert said.endswith(f"the rest of Python's path; qd.service looks in {tmp_path}/home: cd there first")
    monkeypatch.chdir(tmp_path / "home")
    [said] = loaded(away, "no_such_shop")
    assert said.endswith("the rest of Python's path")


def test_a_module_that_is_only_here_is_said_not_to_be_where_the_service_looks(away: Unit, tmp_path: Path) -> None:
    (tmp_path / "only_here_shop.py").write_text("")
    assert loaded(away, "only_here_shop") == [
        f"only_here_shop may have been found only because {tmp_path} is the folder that the check runs in; "
        f"qd.service looks in {tmp_path}/home: cd there and check again"
    ]
    there = Unit("qd.service", [*away.service, ("Environment", f"PYTHONPATH={tmp_path}")])
    assert loaded(there, "only_here_shop") == []
