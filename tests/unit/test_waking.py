"""Waking: whom it reaches, and that it never harms who calls it."""

from __future__ import annotations

import select
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import qd
import qd.waking
from qd.waking import WakeSocket, wake
from tests.support.waiting import wait_for


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("QD_RUNTIME_DIR", str(tmp_path / "run"))
    yield tmp_path / "run"


def readable(ear: WakeSocket) -> bool:
    return bool(select.select([ear], [], [], 5)[0])


def test_every_daemon_hears_the_names(folder: Path) -> None:
    with closing(WakeSocket()) as one, closing(WakeSocket()) as other:
        qd.wake("mails", "reports")
        for ear in (one, other):
            assert readable(ear)
            assert ear.read() == {"mails", "reports"}
            assert ear.read() == set()


def test_wakes_from_another_process_are_heard(folder: Path) -> None:
    with closing(WakeSocket()) as ear:
        subprocess.run([sys.executable, "-c", "import qd; qd.wake('mails')"], check=True, cwd=Path(__file__).parents[2])
        assert wait_for(ear.read, 5, "the other process's wake") == {"mails"}


def test_waking_without_a_daemon_does_nothing(folder: Path) -> None:
    wake("mails")
    folder.mkdir()
    wake("mails")
    wake()


def test_waking_never_raises_whatever_it_is_given(folder: Path) -> None:
    with closing(WakeSocket()) as ear:
        wake("", "a b", "\0", "x" * 200_000, "é", "mails\n", None, 7)  # type: ignore[arg-type]
        assert ear.read() == set()


def test_waking_never_blocks_when_a_daemon_does_not_read(folder: Path) -> None:
    with closing(WakeSocket()) as ear:
        for _ in range(2000):
            wake("mails")
        assert ear.read() == {"mails"}


def test_strangers_datagrams_are_sifted(folder: Path) -> None:
    with closing(WakeSocket()) as ear, closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as stranger:
        for message in (b"", b"\xff\xfe", b"mails\n" + b"x" * 65, b"<script>\nreports"):
            stranger.sendto(message, str(ear.path))
        assert ear.read() == {"mails", "reports"}


def test_the_folder_and_the_socket_are_closed_to_others(folder: Path) -> None:
    with closing(WakeSocket()) as ear:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(ear.path.stat().st_mode) == 0o660


def test_closing_removes_the_socket(folder: Path) -> None:
    ear = WakeSocket()
    ear.close()
    ear.close()
    assert list(folder.iterdir()) == []


def test_sockets_of_dead_daemons_are_removed_and_live_ones_kept(folder: Path) -> None:
    script = "import os; from qd.waking import WakeSocket; ear = WakeSocket(); os._exit(0)"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[2])
    assert len(list(folder.iterdir())) == 1
    with closing(WakeSocket()) as first, closing(WakeSocket()) as second:
        assert {first.path, second.path} == set(folder.iterdir())


def test_a_long_path_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setenv("QD_RUNTIME_DIR", str(deep))
    with closing(WakeSocket()) as ear:
        wake("mails")
        assert ear.read() == {"mails"}
    assert list(deep.iterdir()) == []


def test_an_application_with_a_runtime_directory_of_its_own_reaches_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QD_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "session"))
    (tmp_path / "session").mkdir()
    (tmp_path / "qd").mkdir()
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "qd"))
    with closing(WakeSocket()) as ear:
        assert ear.path.parent == tmp_path / "qd"
        monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "shop"))
        wake("mails")
        assert ear.read() == set()  # neither knows of the other: the polls find the job
    monkeypatch.delenv("RUNTIME_DIRECTORY")
    with closing(WakeSocket()) as ear:
        monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "shop"))
        wake("mails")
        assert ear.read() == {"mails"}


def test_a_strangers_folder_under_the_temp_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in ("QD_RUNTIME_DIR", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"qd-{os.getuid()}").symlink_to(elsewhere)
    if Path("/run/qd").exists():
        pytest.skip("this machine has /run/qd, which comes first")
    assert WakeSocket.try_bind() is None


def test_without_a_directory_there_is_no_socket_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QD_RUNTIME_DIR", str(tmp_path / "file"))
    assert WakeSocket.try_bind() is None
    wake("mails")


def test_wake_stays_a_function_of_the_package_once_its_module_is_loaded(folder: Path) -> None:
    assert qd.waking.wake is qd.wake
    assert callable(qd.wake) and callable(qd.enqueue) and callable(qd.enqueue_many)
    qd.wake("mails")
    qd.wake("mails")
