"""The private MariaDB where it can't be had: one line that says what to do, nothing left."""

from __future__ import annotations

from pathlib import Path

import pytest

from qd.demo import process
from qd.demo.mariadb import PrivateMariaDB, ServerUnavailable


def test_without_its_programs_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "SEARCH", "/nowhere")
    with pytest.raises(ServerUnavailable, match="apt-get install mariadb-server-core"), PrivateMariaDB(tmp_path / "db"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_come_up_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in (("mariadbd", "echo no room on the disk >&2; exit 1"), ("mariadb-install-db", "exit 0")):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setattr(process, "SEARCH", str(programs))
    with pytest.raises(ServerUnavailable, match="no room on the disk"), PrivateMariaDB(tmp_path / "db"):
        pass
    assert not (tmp_path / "db").exists()
