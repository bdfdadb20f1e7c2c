"""The console's users file: readable by its owner only, whole at every moment, hashes that hold."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from qd.cli import users
from qd.cli.root import cli
from qd.errors import ConfigError


def passwd(file: Path, *args: str, password: str = "correct horse") -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["console", "passwd", "--file", str(file), *args], input=password + "\n")
    return result.exit_code, result.output


def test_a_password_from_stdin_is_stored_as_a_hash_that_only_it_fits(tmp_path: Path) -> None:
    file = tmp_path / "users"
    assert passwd(file, "--role", "operator", "ann")[0] == 0
    assert "correct horse" not in file.read_text()
    ann = users.read_users(file)["ann"]
    assert ann["role"] == "operator"
    assert users.verified("correct horse", ann["password"])
    assert not users.verified("correct horse ", ann["password"])


def test_the_file_is_its_owners_only_and_the_other_users_stay(tmp_path: Path) -> None:
    file = tmp_path / "users"
    passwd(file, "--role", "operator", "ann")
    before = users.read_users(file)["ann"]
    file.chmod(0o644)
    passwd(file, "bob")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert users.read_users(file)["ann"] == before
    assert users.read_users(file)["bob"]["role"] == "viewer"
    assert [path.name for path in tmp_path.iterdir()] == ["users"]


def test_a_new_password_keeps_the_role_unless_another_is_named(tmp_path: Path) -> None:
    file = tmp_path / "users"
    passwd(file, "--role", "operator", "ann")
    passwd(file, "ann", password="another one")
    assert users.read_users(file)["ann"]["role"] == "operator"
    passwd(file, "--role", "viewer", "ann")
    assert users.read_users(file)["ann"]["role"] == "viewer"


def test_the_file_is_yaml_and_json_with_one_user_a_line(tmp_path: Path) -> None:
    file = tmp_path / "users"
    passwd(file, "ann")
    passwd(file, "bob")
    assert yaml.safe_load(file.read_text()) == json.loads(file.read_text())
    assert sum(line.startswith('"') for line in file.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("user", "password"), [("a b", "long enough"), ("", "long enough"), ("ann", "short"), ("ann", "")]
)
def test_a_bad_name_or_password_is_refused_and_nothing_is_written(tmp_path: Path, user: str, password: str) -> None:
    code, _ = passwd(tmp_path / "users", user, password=password)
    assert code == 2
    assert not (tmp_path / "users").exists()


def test_a_file_that_is_no_users_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("database:\n  password: secret\n")
    code, said = passwd(file, "ann")
    assert code == 78
    assert "secret" not in said
    assert file.read_text() == "database:\n  password: secret\n"


def test_a_folder_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    code, said = passwd(tmp_path / "no" / "users", "ann")
    assert code == 1
    assert "Traceback" not in said


@pytest.mark.parametrize("stored", ["", "plain", "scrypt$1$2", "scrypt$99$8$1$AA==$AA==", "scrypt$x$8$1$AA==$AA=="])
def test_a_malformed_hash_fits_no_password(stored: str) -> None:
    assert not users.verified("whatever", stored)


def test_a_user_without_a_hash_makes_the_file_wrong(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text('{"ann": {"role": "operator"}}')
    with pytest.raises(ConfigError, match="ann"):
        users.read_users(file)
