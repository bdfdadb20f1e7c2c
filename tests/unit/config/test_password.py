"""The password, from where the configuration has it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qd.config import parse_config, read_password
from qd.config.model import DatabaseConfig
from qd.config.password import password_place
from qd.errors import ConfigError


def test_the_one_in_the_configuration_counts_and_is_plain_text_for_the_driver() -> None:
    found = read_password(DatabaseConfig(password="a'b"), {"CREDENTIALS_DIRECTORY": "/nowhere"})
    assert found == "a'b" and type(found) is str
    assert read_password(DatabaseConfig(password=""), {}) == ""


@pytest.mark.parametrize(
    ("raw", "password"),
    [
        ("a\n", "a"),
        ("a\r\n", "a"),
        ("a", "a"),
        ("a\n\n", "a\n"),
        (" a ", " a "),
        ("a\nb", "a\nb"),
        ("ß\r", "ß\r"),
        ("$${X}\n", "$${X}"),
    ],
)
def test_of_a_file_one_line_break_at_the_end_is_dropped_and_nothing_else(
    tmp_path: Path, raw: str, password: str
) -> None:
    file = tmp_path / "password"
    file.write_bytes(raw.encode())
    assert read_password(DatabaseConfig(password_file=str(file)), {}) == password
    (tmp_path / "qd.db-password").write_bytes(raw.encode())
    assert read_password(DatabaseConfig(), {"CREDENTIALS_DIRECTORY": str(tmp_path)}) == password


def test_a_named_file_comes_before_the_credential_and_without_either_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "qd.db-password").write_text("credential")
    (tmp_path / "file").write_text("file")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert read_password(DatabaseConfig(password_file=str(tmp_path / "file")), environ) == "file"
    assert read_password(DatabaseConfig(), environ) == "credential"
    assert read_password(DatabaseConfig(), {"CREDENTIALS_DIRECTORY": str(tmp_path / "none")}) is None
    assert read_password(DatabaseConfig(driver="sqlite"), environ) is None


def test_what_the_service_is_given_counts_only_where_it_was_found_to_be_this_configurations(tmp_path: Path) -> None:
    stored = tmp_path / "stored"
    stored.write_text("stored\n")
    mine, empty = DatabaseConfig(), str(tmp_path / "none")
    mine._credential = stored
    assert read_password(mine, {}) == "stored"
    assert read_password(mine, {"CREDENTIALS_DIRECTORY": empty}) is None, "systemd gives this process another, or none"
    assert read_password(DatabaseConfig(), {}) is None
    for own in (DatabaseConfig(password="own"), DatabaseConfig(password_file=str(stored))):
        own._credential = tmp_path / "never-read"
        assert read_password(own, {}) in ("own", "stored")


def test_the_place_of_the_password_is_told_and_never_the_password(tmp_path: Path) -> None:
    (tmp_path / "qd.db-password").write_text("secret")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    told = {
        "from database.password": DatabaseConfig(password="secret"),
        "from /a/file (database.password_file)": DatabaseConfig(password_file="/a/file"),
        f"from {tmp_path}/qd.db-password, the systemd credential qd.db-password": DatabaseConfig(),
    }
    for text, database in told.items():
        place = password_place(database, environ)
        assert place is not None and place.told == text
    assert password_place(DatabaseConfig(), {}) is None


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "holds no password"),
        (b"\n", "holds no password"),
        (b"\xff", "not UTF-8"),
        (b"a\0b", "NUL"),
        (b"a" * 70000, "too large"),
    ],
)
def test_a_file_that_holds_no_password_is_told_with_key_and_line(tmp_path: Path, raw: bytes, words: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(raw)
    config = parse_config(f"database:\n  password_file: {file}\n", "my.yaml", {})
    with pytest.raises(ConfigError) as caught:
        read_password(config.database, {})
    assert str(caught.value).startswith(f"my.yaml:2: database.password_file: {file} ") and words in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ConfigError, match=r"database.password_file: .* can't be read"):
            read_password(DatabaseConfig(password_file=str(path)), {})
    (tmp_path / "qd.db-password").mkdir()
    with pytest.raises(ConfigError, match=r"systemd credential qd.db-password: .* can't be read"):
        read_password(DatabaseConfig(), {"CREDENTIALS_DIRECTORY": str(tmp_path)})


def test_a_named_pipe_is_refused_at_once_and_keeps_nobody_waiting_for_its_writer(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match=r"database.password_file: .* is no regular file"):
        read_password(DatabaseConfig(password_file=str(pipe)), {})


def test_a_file_that_is_refused_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with pytest.raises(ConfigError):
            read_password(DatabaseConfig(password_file=str(tmp_path)), {})
    assert len(os.listdir("/proc/self/fd")) == before
