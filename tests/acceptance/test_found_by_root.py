"""What lies in a folder that jobs write to tells root's command line nothing: no server, no file to send it."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread

import pytest

from tests.support.missing import without
from tests.support.server import ROOT

NOBODY = pwd.getpwnam("nobody").pw_uid


class Listener:
    """A socket of a job's that stands for a server, and counts who comes.

    Attributes:
        callers: how many came.
    """

    def __init__(self, path: Path) -> None:
        self.callers = 0
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._thread = Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._socket.accept()
                self.callers += 1
                caller.close()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The folder that jobs write to, where root works."""
    if os.geteuid() != 0:
        without("root: nobody else is asked for what others may not read")
    folder = tmp_path / "state"
    folder.mkdir(mode=0o750)
    os.chown(folder, NOBODY, 0)
    return folder


@pytest.fixture
def listener(state: Path) -> Iterator[Listener]:
    with closing(Listener(state / "s.sock")) as made:
        yield made


def qd(state: Path, *args: str) -> subprocess.CompletedProcess[str]:
    program = state.parent / "qd"  # as the installed one: the folder isn't Python's
    program.write_text("from qd.cli import main\n\nmain()\n")
    environment = {name: value for name, value in os.environ.items() if name != "QD_CONFIG"}
    return subprocess.run(
        [sys.executable, str(program), *args], cwd=state, capture_output=True, text=True, timeout=60,
        env={**environment, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "verb",
    ["status", "failed list", "jobs list", "queues list", "explain 1", "check", "migrate --status", "enqueue x", "run",
     "work --once", "recover", "queues pause x"],
)  # fmt: skip
def test_no_verb_of_roots_goes_by_it(state: Path, listener: Listener, verb: str) -> None:
    secret = state.parent / "secret"
    secret.write_text("pw-of-roots\n")
    secret.chmod(0o600)
    (state / "qd.yaml").write_text(
        f"database: {{unix_socket: {state}/s.sock, user: x, name: x, password_file: {secret}}}\n"
    )
    done = qd(state, *verb.split())
    said = done.stdout + done.stderr
    assert "root takes no configuration that it only finds" in said and f"{state} belongs to nobody" in said
    assert all(f" {way}" in said for way in ("--config /", "QD_CONFIG=/", "from_config('/"))
    assert done.returncode == 78 and listener.callers == 0 and len(said.splitlines()) == 1
    if verb == "status":
        qd(state, "--config", "qd.yaml", "status")
        assert listener.callers > 0, "a file that is named is root's own choice"
