"""`qd demo` as a newcomer runs it: a process of its own, real files, nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.missing import without
from tests.support.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]


class Runner:
    """Starts the demo with a temporary folder of its own, so that what it leaves can be seen."""

    def __init__(self, folder: Path) -> None:
        self.temporary = folder / "t"
        self.temporary.mkdir()
        self.tree = folder / "tree"
        self.tree.mkdir()
        self.output = folder / "output"

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "TMPDIR": str(self.temporary), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
        with self.output.open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "qd", "demo", *arguments], cwd=ROOT, env=env, stdout=out, stderr=out
            )

    def run(self, *arguments: str) -> int:
        return self.start(*arguments).wait(120)

    def said(self) -> str:
        return self.output.read_text()

    def processes(self) -> dict[int, str]:
        """Command lines, by process id, of what still runs out of the temporary folder."""
        lines = {}
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it ended meanwhile
                lines[int(process.parent.name)] = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return {pid: line for pid, line in lines.items() if str(self.temporary) in line}

    def nothing_is_left(self) -> bool:
        return not list(self.temporary.iterdir()) and not self.processes()


@pytest.fixture
def demo() -> Iterator[Runner]:
    """Not under pytest's own folder: a socket's path has to be short."""
    folder = Path(tempfile.mkdtemp(prefix="qd-t-"))
    yield Runner(folder)
    shutil.rmtree(folder)


def odd_files(folder: Path) -> None:
    """Thirty plain files and some with names and kinds that programs stumble over."""
    for number in range(30):
        (folder / f"{number}.txt").write_text("x" * number)
    for name in (b"not \xff utf-8", b"new\nline\n", b'"quote".txt', b"$(HOME)", b"[bold]", b"--json"):
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(name)
    (folder / "sub").mkdir()
    (folder / "sub" / "empty").touch()
    (folder / "link").symlink_to("0.txt")
    (folder / "loop").symlink_to(folder)
    (folder / "gone").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")


def test_does_every_file_once_and_says_so(demo: Runner) -> None:
    odd_files(demo.tree)
    assert demo.run(str(demo.tree)) == 0, demo.said()
    said = demo.said()
    assert "37 hashed and measured, each once and right, 10 of them by a program" in said
    assert "after 3 attempts, reason error: ValueError" in said
    assert "/metrics" in said and "All as it should be" in said
    assert demo.nothing_is_left()


def test_an_empty_folder_has_the_other_jobs_alone(demo: Runner) -> None:
    assert demo.run(str(demo.tree)) == 0, demo.said()
    assert "0 hashed and measured" in demo.said()


def test_a_missing_folder_is_one_line_and_a_usage_error(demo: Runner) -> None:
    assert demo.run(str(demo.tree / "nowhere")) == 2
    assert len(demo.said().splitlines()) == 1
    assert "nowhere" in demo.said()
    assert demo.nothing_is_left()


def test_a_file_in_place_of_a_folder_is_told_as_such(demo: Runner) -> None:
    (demo.tree / "file").touch()
    assert demo.run(str(demo.tree / "file")) == 2
    assert "is no folder" in demo.said()


def test_ctrl_c_ends_it_and_leaves_nothing(demo: Runner) -> None:
    process = demo.start(str(demo.tree))
    wait_for(lambda: "metrics: " in demo.said() or process.poll() is not None, 60, "the daemon to be started")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, demo.said()
    assert demo.nothing_is_left()
    assert "Traceback" not in demo.said()


def test_a_daemon_that_dies_fails_the_demo_which_says_where_to_look(demo: Runner) -> None:
    process = demo.start(str(demo.tree))
    wait_for(lambda: "metrics: " in demo.said() or process.poll() is not None, 60, "the daemon to be started")
    (daemon,) = [pid for pid, line in demo.processes().items() if line.strip().endswith(" run")]
    os.kill(daemon, signal.SIGKILL)
    assert process.wait(60) == 1, demo.said()
    assert "the daemon ended with -9" in demo.said()
    (kept,) = demo.temporary.iterdir()
    assert f"are kept in {kept}" in demo.said()
    assert {"qd.yaml", "daemon.log", "qd.sqlite3"} <= {path.name for path in kept.iterdir()}
    assert not demo.processes()


@pytest.mark.server
def test_the_same_on_a_private_mariadb_that_is_gone_afterwards(demo: Runner) -> None:
    if shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        missing = "no mariadbd on this machine (apt-get install mariadb-server-core mariadb-client-core)"
        without(missing)
    odd_files(demo.tree)
    assert demo.run("--mysql", str(demo.tree)) == 0, demo.said()
    assert "37 hashed and measured, each once and right" in demo.said()
    assert "a private MariaDB" in demo.said()
    assert demo.nothing_is_left()
