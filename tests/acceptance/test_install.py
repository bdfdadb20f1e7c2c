"""`make install` and `make uninstall` into a folder, as a plain user: what goes where, and what stays yours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.missing import without
from tests.support.server import ROOT

NOBODY = 65534
PARTS = (
    ".ci", "Makefile", "systemd", "config", "docs", "grafana", "qd", "setup.py", "pyproject.toml", "README.md",
    "LICENSE",
)  # fmt: skip
LIB, DOC = "usr/local/lib/systemd/system", "usr/local/share/doc/qd"


def open_python() -> str:
    """A Python that every user can run; the tests' own may lie in somebody's home."""
    for python in (sys.executable, "/usr/bin/python3"):
        told = [python, ROOT / "systemd" / "interpreter.py"]
        if shutil.which(python) and subprocess.run(told, stdout=subprocess.DEVNULL).returncode == 0:
            return python
    return without("there is no Python that every user can run (apt-get install python3-venv)")


class Checkout:
    """A checkout of a plain user's, and a folder that stands for /.

    Attributes:
        plain: whether make is run as that user, else as who runs the tests.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree = folder / "checkout", folder / "tree"
        self.plain = True
        skipped = shutil.ignore_patterns("__pycache__")
        for name in PARTS:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.folder / name, ignore=skipped)
            else:
                shutil.copy(ROOT / name, self.folder / name)
        if os.getuid() == 0:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY)

    def make(self, target: str, umask: int = 0o022, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs make as that user."""
        plain = os.getuid() == 0 and self.plain
        as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if plain else {}
        outer = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"}  # of the make that these tests may be run by
        inherited = {name: value for name, value in os.environ.items() if name not in outer}
        env = {**inherited, "PIP_NO_DEPS": "1", **({"HOME": "/nonexistent"} if plain else {})}
        argv = ["make", "--no-print-directory", target, *(f"{name}={value}" for name, value in variables.items())]
        return subprocess.run(
            argv, cwd=self.folder, env=env, umask=umask, capture_output=True, text=True, timeout=300, **as_user
        )  # type: ignore[call-overload, no-any-return]

    def install(self, **variables: str) -> str:
        """Installs into the tree; what it said."""
        done = self.make("install", **{"DESTDIR": str(self.tree), "PROGRAM": "no", **variables})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, target: str, **variables: str) -> str:
        """The one line in which make was refused."""
        done = self.make(target, **variables)
        complaint = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
        assert done.returncode != 0 and len(complaint) == 1, done.stdout + done.stderr
        assert complaint[0].startswith("qd: ")
        return complaint[0]

    def uninstall(self, **variables: str) -> str:
        """The opposite; what it said."""
        done = self.make("uninstall", **{"DESTDIR": str(self.tree), **variables})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def files(self) -> set[str]:
        """What lies in the tree."""
        return {str(path.relative_to(self.tree)) for path in self.tree.rglob("*") if not path.is_dir()}


@pytest.fixture
def checkout(folder: Path) -> Iterator[Checkout]:
    yield Checkout(folder)


PAPERS = {
    "qd.yaml": "config", "grants.sql": "docs", "jobs.conf.example": "systemd/qd.service.d", "runbook.md": "docs",
    "qd-dashboard.json": "grafana",
    **dict.fromkeys(("prometheus.yml", "qd.rules.yml", "alertmanager.yml"), "config/prometheus"),
}  # fmt: skip
"""What an administrator copies from, and where it lies here."""

UNITS = {f"{LIB}/{name}" for name in ("qd.service", "qd@.service", "qd.target")}
PLACED = UNITS | {
    "usr/local/lib/sysusers.d/qd.conf", "usr/local/lib/tmpfiles.d/qd.conf", *(f"{DOC}/{name}" for name in PAPERS),
}  # fmt: skip
CONFIGURATION = "etc/qd/qd.yaml"
ODD = "a tree: |its| & [odd]* 'name' \"é\" .+\\1"
"""The name of a folder that nothing may take for anything else."""


def test_each_file_lies_where_systemd_looks_and_can_be_read_by_all(checkout: Checkout) -> None:
    done = checkout.make("install", 0o077, DESTDIR=str(checkout.tree), PROGRAM="no")
    assert done.returncode == 0, done.stderr
    assert checkout.files() == PLACED | {CONFIGURATION}
    assert {(checkout.tree / name).stat().st_mode & 0o777 for name in PLACED} == {0o644}
    folders = {path.stat().st_mode & 0o777 for path in checkout.tree.rglob("*") if path.is_dir()}
    assert folders == {0o755}
    for name in UNITS:
        assert (checkout.tree / name).read_bytes() == (ROOT / "systemd" / Path(name).name).read_bytes()
    for name, place in PAPERS.items():
        assert (checkout.tree / DOC / name).read_bytes() == (ROOT / place / name).read_bytes()


def test_the_first_configuration_says_where_every_key_is(checkout: Checkout) -> None:
    checkout.install(LIBDIR="/usr/lib")
    first = (checkout.tree / CONFIGURATION).read_text().splitlines()[0]
    assert first.endswith("; every other key has a default (/usr/share/doc/qd/qd.yaml has them all).")


def test_other_places_are_named_in_the_units(checkout: Checkout) -> None:
    checkout.install(PREFIX="/srv/qd", LIBDIR="/usr/lib", BINDIR="/usr/bin")
    unit = (checkout.tree / "usr/lib/systemd/system/qd.service").read_text()
    assert "ExecStart=/srv/qd/bin/qd --config /etc/qd/qd.yaml run\n" in unit and "/opt/qd" not in unit
    assert "usr/share/doc/qd/qd.yaml" in checkout.files()


def test_what_is_the_users_outlives_a_second_installation_and_the_removal(checkout: Checkout) -> None:
    checkout.install()
    own = {
        CONFIGURATION: "queues: {default: {}}\n", "etc/qd/environment": "A=b\n", "etc/credstore/qd.db-password": "pw\n",
        "etc/systemd/system/qd.service.d/jobs.conf": "[Service]\nUMask=0022\n", f"{LIB}/other.service": "[Unit]\n",
        "usr/local/share/doc/qd/notes": "mine\n", "usr/local/bin/qd": "#!/bin/sh\n",
    }  # fmt: skip
    for name, text in own.items():
        file = checkout.tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (checkout.tree / f"{LIB}/qd.service").write_text("of an earlier version\n")
    assert "qd: upgraded /usr/local/lib/systemd/system/qd.service, in " in checkout.install()
    assert checkout.files() == PLACED | set(own)
    assert (checkout.tree / f"{LIB}/qd.service").read_bytes() == (ROOT / "systemd/qd.service").read_bytes()
    for said in ("qd: removed; yours and kept: /etc/qd, ", "qd: nothing to remove: in "):
        assert said in checkout.uninstall()
        assert {name: (checkout.tree / name).read_text() for name in checkout.files()} == own


def test_the_removal_takes_the_links_of_what_was_enabled_with_it_and_no_others(checkout: Checkout) -> None:
    checkout.plain = False  # whose are the folders that are made here
    checkout.install()
    wants = checkout.tree / "etc/systemd/system/qd.target.wants"
    ours = {"qd.service": "qd.service", "qd@mails.service": "qd@.service", "qd@two.service": "qd@.service"}
    theirs = {"qd@own.service": "/etc/systemd/system/qd@.service", "qd.timer": f"/{LIB}/qd.timer"}
    for folder in (wants, wants.with_name("multi-user.target.wants")):
        folder.mkdir(parents=True)
        for name, target in {**{name: f"/{LIB}/{unit}" for name, unit in ours.items()}, **theirs}.items():
            (folder / name).symlink_to(target)
    checkout.uninstall()
    for folder in (wants, wants.with_name("multi-user.target.wants")):
        assert {path.name for path in folder.iterdir()} == set(theirs)


def test_the_program_is_moved_to_its_place_and_goes_with_all_that_it_brought(checkout: Checkout) -> None:
    checkout.plain = False  # for the sake of pip's cache
    checkout.tree = checkout.folder.parent / ODD
    before = {str(path) for path in checkout.folder.rglob("*")}
    python = open_python()
    broken_off = checkout.make("install", DESTDIR=str(checkout.tree), PYTHON=python, PIP_NO_INDEX="1")
    assert broken_off.returncode != 0 and "qd: pip could not install" in broken_off.stderr
    cut_while_pip_is_unpacked(checkout.tree / "opt/qd")
    checkout.install(PROGRAM="yes", PYTHON=python)
    assert {str(path) for path in checkout.folder.rglob("*")} == before
    program = checkout.tree / "opt/qd"
    assert (checkout.tree / "usr/local/bin/qd").readlink() == Path("/opt/qd/bin/qd")
    assert (program / "bin/qd").read_text().startswith("#!/opt/qd/bin/python")
    scripts = [path for path in (program / "bin").iterdir() if path.is_file() and not path.name.startswith("python")]
    settings = (program / "pyvenv.cfg", *scripts)
    assert not [path for path in settings if ODD.encode() in path.read_bytes() or b"/tmp/" in path.read_bytes()]
    assert list(program.glob("lib/python*/site-packages/qd/store/mysql/*.py"))
    (program / "shop.py").write_text("import qd\n")
    assert "/opt/qd with " in (said := checkout.uninstall()) and "opt/qd/shop.py" in said
    assert not list(program.glob("lib/python*/site-packages/qd")) and (program / "bin/python").exists()
    again = checkout.make("uninstall", DESTDIR=str(checkout.tree))
    assert again.stdout.startswith("qd: nothing to remove: ") and "/opt/qd isn't qd's alone and stays" in again.stdout
    assert again.stderr == "" and again.returncode == 0
    (program / "shop.py").unlink()
    checkout.uninstall()
    assert checkout.files() == {CONFIGURATION} and not program.exists()


def cut_while_pip_is_unpacked(program: Path) -> None:
    """As a power cut or a kill leaves an environment."""
    (packages,) = program.glob("lib/python*/site-packages")
    (info,) = packages.glob("pip-*.dist-info")
    (info / "RECORD").unlink()
    shutil.rmtree(packages / "pip" / "_vendor")
    (program / ".qd").write_text("")


@pytest.mark.parametrize("leads_to", ["empty", "nowhere"])
def test_a_prefix_that_is_a_link_to_no_environment_is_refused(checkout: Checkout, leads_to: str) -> None:
    (checkout.tree / "srv/empty").mkdir(parents=True)
    (checkout.tree / "srv/qd").symlink_to(checkout.tree / "srv" / leads_to)
    os.chmod(checkout.tree, 0o777)
    before = {*checkout.tree.rglob("*")}
    said = checkout.refused("install", DESTDIR=str(checkout.tree), PREFIX="/srv/qd", PYTHON=open_python())
    assert said.startswith("qd: '/srv/qd' is a link") and said.endswith(f"{checkout.tree}/srv/{leads_to}")
    assert {*checkout.tree.rglob("*")} == before


def test_the_removal_takes_the_units_where_the_prefix_is_a_link_to_nothing(checkout: Checkout) -> None:
    checkout.install(PREFIX="/srv/qd")
    (checkout.tree / "srv").mkdir(mode=0o777)
    (checkout.tree / "srv/qd").symlink_to(checkout.tree / "srv/nowhere")
    assert "qd: removed; " in checkout.uninstall(PREFIX="/srv/qd")
    assert checkout.files() == {CONFIGURATION, "srv/qd"}


def test_an_installation_that_was_cut_off_before_it_had_an_environment_is_taken_up(checkout: Checkout) -> None:
    """All that there is is its mark; without that the folder is another's."""
    for name in ("opt/qd/.qd", "opt/qd/lib/python3/site-packages/half"):
        (checkout.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout.tree / name).write_text("")
    checkout.plain = False
    done = checkout.make("install", DESTDIR=str(checkout.tree), PYTHON=open_python(), PIP_NO_INDEX="1")
    assert "qd: pip could not install" in done.stderr and (checkout.tree / "opt/qd/bin/pip").exists()


def test_a_tree_may_have_any_name(checkout: Checkout) -> None:
    checkout.tree = checkout.tree / ODD
    assert str(checkout.tree) in checkout.install()
    assert checkout.files() == PLACED | {CONFIGURATION}
    checkout.uninstall()
    assert checkout.files() == {CONFIGURATION}


def test_a_slash_too_many_changes_nothing(checkout: Checkout) -> None:
    checkout.install(DESTDIR=f"{checkout.tree}//", PREFIX="/srv/qd/", LIBDIR="/usr/lib/")
    unit = (checkout.tree / "usr/lib/systemd/system/qd.service").read_text()
    assert "ExecStart=/srv/qd/bin/qd " in unit and "usr/share/doc/qd/qd.yaml" in checkout.files()
    checkout.uninstall(DESTDIR=f"{checkout.tree}//", PREFIX="/srv/qd/", LIBDIR="/usr/lib/")
    assert checkout.files() == {CONFIGURATION}


def test_for_a_tree_no_package_is_installed_but_the_missing_one_named(checkout: Checkout) -> None:
    """Also by root, as which packages are often made, or seem to be (fakeroot)."""
    checkout.plain = False
    python = checkout.folder.parent / "python3"
    python.write_text(f'#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; esac\nexec {open_python()} "$@"\n')
    apt = checkout.folder / ".ci" / "apt"
    apt.write_text('#!/bin/sh\necho "qd: installing $*"\n')
    for script in (python, apt):
        script.chmod(0o755)
    said = checkout.refused("install", DESTDIR=str(checkout.tree), PYTHON=str(python))
    assert "can't make a virtual environment: install python" in said and said.endswith("-venv)")
    assert checkout.files() == set()


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"DESTDIR": ""}, "run it as root, or give it DESTDIR="),
        ({"DESTDIR": "stage"}, "DESTDIR=stage must be an absolute path"),
        ({"DESTDIR": "./a stage"}, "DESTDIR=./a stage must be an absolute path"),
        ({"DESTDIR": "/tmp/two\nlines"}, "DESTDIR=/tmp/two?lines: no control characters"),
        ({"PREFIX": "opt/qd"}, "'opt/qd' must be an absolute path"),
        ({"PREFIX": "/"}, "'/' must be an absolute path"),
        ({"PREFIX": "/opt/../usr"}, "'/opt/../usr' must be an absolute path"),
        ({"PREFIX": "/opt/my qd"}, "'/opt/my qd': a unit can name only folders of"),
        ({"PREFIX": "/home/qd"}, "'/home/qd': a service doesn't see /home; take a PREFIX like /opt/qd"),
        ({"PREFIX": "//root/"}, "'//root': a service doesn't see /root"),
        ({"PREFIX": "/run/user/7/qd"}, "'/run/user/7/qd': a service doesn't see /run/user"),
        ({"PREFIX": "/tmp/qd"}, "'/tmp/qd': a service doesn't see /tmp"),
        ({"PREFIX": "/var/tmp//qd"}, "'/var/tmp//qd': a service doesn't see /var/tmp"),
        ({"PREFIX": "/proc/self/root/tmp/qd", "DESTDIR": ""}, "'/proc/self/root/tmp/qd': a service doesn't see /tmp"),
        ({"PREFIX": "/usr", "PROGRAM": "yes"}, "usr holds something else: PREFIX is a folder for qd's program alone"),
        ({"PYTHON": "python2.6", "PROGRAM": "yes"}, "'python2.6' isn't there; install python3 (3.10 or newer)"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_before_anything_is_written(
    checkout: Checkout, variables: dict[str, str], words: str
) -> None:
    if os.getuid() == 0 or "DESTDIR" not in variables:
        (checkout.tree / "usr/share").mkdir(parents=True)
        os.chmod(checkout.tree, 0o777)
        before = {*checkout.folder.parent.rglob("*")}
        assert words in checkout.refused("install", **{"DESTDIR": str(checkout.tree), "PROGRAM": "no", **variables})
        assert {*checkout.folder.parent.rglob("*")} == before


@pytest.mark.parametrize(
    "variables",
    [
        {"DESTDIR": "stage"}, {"PREFIX": "opt/qd"}, {"PREFIX": "/opt/my qd"}, {"PREFIX": "/opt/.."}, {"LIBDIR": "lib"},
        {"BINDIR": "/"}, {"PREFIX": "/home/qd"},
    ],
)  # fmt: skip
def test_the_removal_refuses_what_the_installation_refuses(checkout: Checkout, variables: dict[str, str]) -> None:
    checkout.install()
    before = checkout.files()
    said = checkout.refused("uninstall", **{"DESTDIR": str(checkout.tree), **variables})
    assert said == checkout.refused("install", **{"DESTDIR": str(checkout.tree), **variables})
    assert checkout.files() == before
