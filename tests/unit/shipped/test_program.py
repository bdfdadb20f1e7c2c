"""What `make install` notes of the program's environment: a run that was cut off anywhere is taken up by the next."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import ROOT


class Environment:
    """A virtual environment with distributions that are made by hand."""

    def __init__(self, prefix: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
        self.prefix, self.note = prefix, prefix / ".qd"
        (self.packages,) = prefix.glob("lib/python*/site-packages")

    def put(self, name: str, *, cut: str = "", needs: str = "") -> Path:
        """A distribution, whole but for one part; its module."""
        needs = f"Requires-Dist: {needs}\n" if needs else ""
        module, info = self.packages / name / "__init__.py", self.packages / f"{name}-1.0.dist-info"
        parts = {
            "module": (module, ""),
            "METADATA": (info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}"),
            "RECORD": (info / "RECORD", f"{name}/__init__.py,,0\n{info.name}/METADATA,,\n{info.name}/RECORD,,\n"),
        }  # fmt: skip
        for part, (path, text) in parts.items():
            path.parent.mkdir(exist_ok=True)
            if part != cut:
                path.write_text(text)
        return module

    def run(self, act: str) -> subprocess.CompletedProcess[str]:
        program = [str(self.prefix / "bin/python"), str(ROOT / "systemd" / "program.py"), act]
        done = subprocess.run(program, capture_output=True, text=True, timeout=30)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def ok(self, act: str) -> str:
        done = self.run(act)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "qd")


def test_what_an_installation_brought_is_ours_and_the_rest_is_not(environment: Environment) -> None:
    environment.put("pip")
    shop = environment.put("shop_jobs")
    environment.ok("before")
    environment.put("qd")
    environment.put("driver")
    environment.ok("after")
    theirs = {str(path) for path in environment.packages.rglob("shop*/*")}
    assert set(environment.ok("strangers").splitlines()) == theirs
    assert shop.exists()


def test_what_a_run_that_was_cut_off_had_brought_is_ours_after_the_next(environment: Environment) -> None:
    environment.put("pip")
    environment.ok("before")
    environment.put("driver", needs="wire (>=2)")
    environment.put("wire")
    environment.ok("before")
    environment.put("qd", needs='driver>=1.0; python_version > "3"')
    environment.ok("after")
    assert environment.ok("strangers") == ""


def test_what_the_user_puts_there_after_a_run_that_was_cut_off_is_the_users(environment: Environment) -> None:
    for act in ("before", "after", "before"):
        environment.ok(act)
    environment.put("shop_jobs", needs="mails")
    environment.put("mails")
    environment.ok("before")
    environment.put("qd", needs='mails; extra == "shop"')
    environment.ok("after")
    left = set(environment.ok("strangers").splitlines())
    assert left == {str(path) for name in ("shop", "mails") for path in environment.packages.rglob(f"{name}*/*")}


def test_what_pip_was_replacing_when_it_was_killed_goes_with_the_next_run(environment: Environment) -> None:
    """It has renamed the folders; their next version may be there by then or not."""
    for act in ("before", "after"):
        environment.ok(act)
    for name in ("qd", "shop_jobs"):
        environment.put(name)
    for name in ("qd", "qd-1.0.dist-info", "shop_jobs", "shop_jobs-1.0.dist-info"):
        (environment.packages / name).rename(environment.packages / f"~{name[1:]}")
    (environment.packages / "~d-1.0.dist-info" / "METADATA").unlink()  # it was being removed
    (environment.packages / "qd" / "inner").mkdir(parents=True)
    environment.ok("before")
    left = {path.name for path in environment.packages.iterdir()}
    assert left == {"qd", "~hop_jobs", "~hop_jobs-1.0.dist-info"}, "another's may be all that is left of it"


def test_what_a_run_that_was_cut_off_had_half_unpacked_pip_may_unpack_anew(environment: Environment) -> None:
    environment.put("pip")
    environment.put("shop_jobs", cut="RECORD")
    environment.ok("before")
    environment.put("driver", cut="RECORD")
    environment.put("qd", cut="METADATA")
    (environment.packages / "qd-1.0.dist-info" / "RECORD").unlink()
    environment.ok("before")
    left = {path.name for path in environment.packages.glob("*.dist-info")}
    assert left == {"pip-1.0.dist-info", "shop_jobs-1.0.dist-info"}, "pip refuses what has no RECORD; the user's stays"


@pytest.mark.parametrize("text", ["", "{", '{"brought": ', "[]", '{"brought": 1}', "\ud800"])
def test_a_note_that_was_cut_off_is_forgotten_in_one_line(environment: Environment, text: str) -> None:
    environment.put("pip")
    environment.note.write_text(text, "utf-8", "surrogatepass")
    done = environment.run("before")
    assert done.returncode == 0
    assert (f"qd: {environment.note} " in done.stderr) is (text != "") and done.stderr.count("\n") == (text != "")
    environment.put("qd")
    environment.ok("after")
    assert json.loads(environment.note.read_text())["brought"] == ["qd"]
    assert environment.ok("strangers") == ""


def test_what_the_user_puts_there_between_two_installations_stays_the_users(environment: Environment) -> None:
    for act in ("before", "after"):
        environment.ok(act)
    environment.note.write_text('{"brought": ["qd"], "before": ["qd"]}\n')  # as earlier versions left it behind
    environment.put("qd")
    environment.put("shop_jobs")
    for act in ("before", "after"):
        environment.ok(act)
    assert "shop_jobs" in environment.ok("strangers") and "qd-1.0" not in environment.ok("strangers")


def test_a_note_is_exchanged_whole(environment: Environment) -> None:
    environment.ok("before")
    held = environment.note.open()
    before = held.read()
    environment.put("qd")
    environment.ok("after")
    held.seek(0)
    assert held.read() == before, "it was another file until it was whole"
    held.close()
    assert [path.name for path in environment.prefix.glob(".qd*")] == [".qd"]


@pytest.mark.parametrize("cut", ["", "module", "METADATA", "RECORD"])
def test_a_pip_that_is_not_whole_is_taken_away_so_that_it_can_be_made_anew(environment: Environment, cut: str) -> None:
    environment.put("shop_jobs", cut="RECORD")
    environment.put("pip", cut=cut)
    done = environment.run("pip")
    assert done.returncode == (1 if cut else 0)
    assert bool([*environment.packages.glob("pip*")]) is (cut == "")
    assert len([*environment.packages.glob("shop*")]) == 2


def test_neither_is_one_with_a_file_that_has_lost_what_was_in_it(environment: Environment) -> None:
    module = environment.put("pip")
    record = environment.packages / "pip-1.0.dist-info" / "RECORD"
    record.write_text(record.read_text().replace("__init__.py,,0", "__init__.py,,5") + "../../../bin/pip3,,200\n")
    module.write_text("pass\n")
    assert environment.run("pip").returncode == 0, "who starts it by a program is no part of it"
    module.write_text("")
    assert environment.run("pip").returncode == 1


def test_where_there_is_no_pip_that_is_said(environment: Environment) -> None:
    assert environment.run("pip").returncode == 1
