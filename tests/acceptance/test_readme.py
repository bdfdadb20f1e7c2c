"""The README's production path, word for word: its blocks run one after the other in one shell.

Only the address is changed (ports that are free here), and `sudo mariadb` reaches the private server.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.mariadb import MariaDB, free_port
from tests.support.missing import without
from tests.support.server import ADMIN, PASSWORD
from tests.support.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(sh|python|sql|sql grants)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DONE = "the block is done, status "

pytestmark = pytest.mark.server


class Reader:
    """Somebody who copies block after block into a shell, in a checkout of their own.

    Attributes:
        folder: the checkout.
        http: the port that stands for 9833.
    """

    def __init__(self, folder: Path, server: MariaDB) -> None:
        self.folder, self.server, self.http = folder, server, free_port()
        for name in ("docs", "config", "systemd"):
            (folder / name).symlink_to(ROOT / name)
        (folder / ".venv").symlink_to(sys.prefix)
        programs = folder / "programs"
        programs.mkdir()
        self._programs(programs)
        env = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        env.pop("QD_CONFIG", None)
        self.shell = subprocess.Popen(
            ["bash", "-eu", "-o", "pipefail"], cwd=folder, env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self.said: list[str] = []

    def runs(self, language: str, block: str) -> None:
        """Runs a block and expects that every command of it succeeds."""
        block = block.replace("3306", str(self.server.port)).replace("9833", str(self.http))
        if language == "python":
            block = f"python3 - <<'BLOCK'\n{block}BLOCK\n"
        elif language == "sql":
            block = f"mariadb_as_shop <<'BLOCK'\n{block}BLOCK\n"
        assert self.shell.stdin is not None and self.shell.stdout is not None
        self.shell.stdin.write(f"{block}echo; echo '{DONE}'$?\n")
        self.shell.stdin.flush()
        for line in self.shell.stdout:
            self.said.append(line)
            if line.startswith(DONE):
                return
        raise AssertionError(f"this block failed:\n{block}\nso far:\n{self.text()}")

    def text(self) -> str:
        return "".join(self.said)

    def page(self, path: str) -> str:
        """A page of the daemon, or nothing while it doesn't answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def close(self) -> None:
        """Ends the shell and what it started."""
        assert self.shell.stdin is not None and self.shell.stdout is not None
        with suppress(ProcessLookupError):
            os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.stdin.close()
        self.shell.stdout.close()
        self.shell.wait(10)

    def _programs(self, folder: Path) -> None:
        mariadb = shutil.which("mariadb")
        client = f"exec {mariadb} --no-defaults --socket={self.server.socket}"
        scripts = {
            "sudo": '#!/bin/sh\nexec "$@"\n',
            "mariadb": f'#!/bin/sh\n{client} --user={ADMIN} --password={PASSWORD} "$@"\n',
            "mariadb_as_shop": f'#!/bin/sh\n{client} --user=shop --password="$(cat shop.password)" qd\n',
            "curl": f'#!/bin/sh\nexec {sys.executable} -c "{FETCH}" "$2"\n',
            "qd": f'#!/bin/sh\nexec {sys.executable} -m qd "$@"\n',
        }
        if shutil.which("curl"):
            del scripts["curl"]
        for name, script in scripts.items():
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)


FETCH = "import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())"


@pytest.fixture
def reader(tmp_path: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[Reader]:
    if shutil.which("mariadb") is None:
        missing = "the client `mariadb` isn't there (apt-get install mariadb-client-core)"
        without(missing)
    reader = Reader(tmp_path, own_mariadb())
    yield reader
    reader.close()


def test_the_production_path_works_word_for_word(reader: Reader) -> None:
    for language, block in BLOCK.findall(README):
        if language == "sql grants":
            continue
        if "kill" in block:
            wait_for(lambda: not waiting(reader.server), 30, f"all jobs to be done, after\n{reader.text()}")
            counts = succeeded_and_rejected(reader)
        reader.runs(language, block)
        if "umask" in block:
            reader.runs(language, block)  # who pastes it again breaks nothing
        if "qd run &" in block:
            wait_for(lambda: reader.page("/readyz"), 60, "the daemon to be ready")
    assert counts == (4.0, 1.0), reader.text()
    closed = {path.name for path in (reader.folder / "var/shop").iterdir() if path.stat().st_mode & 0o777 == 0o600}
    assert closed == {f"{name}.password" for name in ("qd_migrator", "qd", "shop")}
    assert reader.server.run("SELECT type, reason FROM qd.qd_failed_jobs") == [("send_email", "rejected")]
    assert reader.server.run("SELECT customer FROM qd.orders") == [(7,)]


def test_the_grants_in_the_readme_are_those_of_the_file() -> None:
    (shown,) = [block for language, block in BLOCK.findall(README) if language == "sql grants"]
    assert shown == (ROOT / "docs/grants.sql").read_text()


def test_every_link_in_readme_and_docs_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def waiting(server: MariaDB) -> int:
    return int(server.run("SELECT COUNT(*) FROM qd.qd_jobs WHERE type NOT LIKE 'qd.%'")[0][0])


def succeeded_and_rejected(reader: Reader) -> tuple[float, float]:
    page = reader.page("/metrics")
    counts = dict(re.findall(r'qd_job_attempts_total\{job_type="send_email",outcome="(\w+)",.*\} (\S+)', page))
    return float(counts["succeeded"]), float(counts["rejected"])
