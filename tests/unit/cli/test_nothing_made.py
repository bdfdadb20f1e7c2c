"""A verb that only looks makes no database: root's would belong to root, and lie wherever the configuration says."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from qd import Client
from qd.cli.root import cli
from qd.errors import SetupWrong


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qd.yaml").write_text(
        f"database: {{driver: sqlite, path: '{tmp_path}/new/a file?.sqlite3'}}\nqueues: {{default: {{}}}}\n"
    )
    return tmp_path


def qd(folder: Path, *args: str) -> Result:
    return CliRunner().invoke(cli, ["--config", str(folder / "qd.yaml"), *args])


VERBS = ["check", "status", "explain 1", "jobs list", "failed list", "failed show 1", "queues list", "enqueue x"]


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_not_there_is_said_and_not_made(folder: Path, verb: str) -> None:
    result = qd(folder, *verb.split())
    assert result.exit_code == 78 and "qd migrate" in result.output
    assert [path.name for path in folder.iterdir()] == ["qd.yaml"]


def test_a_check_says_that_there_is_no_file(folder: Path) -> None:
    assert f"there is no file yet at {folder}/new/a file?.sqlite3\n" in qd(folder, "check").stdout


def test_what_a_migration_would_do_is_told_without_a_file(folder: Path) -> None:
    result = qd(folder, "migrate", "--status")
    assert result.exit_code == 0 and "there is no schema yet" in result.stdout
    assert not (folder / "new").exists()


def test_a_migration_makes_it(folder: Path) -> None:
    assert qd(folder, "migrate").exit_code == 0
    assert (folder / "new" / "a file?.sqlite3").exists()
    assert qd(folder, "status").exit_code == 0


def test_who_enqueues_makes_none(folder: Path) -> None:
    with Client.from_config(str(folder / "qd.yaml")) as client, pytest.raises(SetupWrong, match="qd migrate"):
        client.enqueue("x")
    assert not (folder / "new").exists()
