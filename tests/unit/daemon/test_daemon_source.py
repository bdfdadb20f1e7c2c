"""The daemon's configuration, and the credential that systemd hands over beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from qd.config.model import Config
from qd.config.password import why_none
from qd.daemon.source import Source
from qd.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "qd.yaml"


@pytest.fixture
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "credentials"
    folder.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    (folder / "qd.db-password").write_text("geheim\n")
    return folder


def read(file: Path, text: str) -> Config:
    file.write_text(text)
    return Source(str(file)).read()


def test_the_credential_outlives_the_scrubbed_environment(
    file: Path, credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("queues: {default: {}}")
    source = Source(str(file))
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    assert source.read().database.password_file == str(credentials / "qd.db-password")
    assert source.read().database == source.read().database, "a reload would take it for another database"


@pytest.mark.parametrize(
    "database", ["{password: written}", "{password_file: /etc/qd/password}", "{driver: sqlite, path: x}"]
)
def test_the_credential_counts_only_where_the_file_names_no_password(
    file: Path, credentials: Path, database: str
) -> None:
    config = read(file, f"database: {database}\nqueues: {{default: {{}}}}")
    assert config.database.password_file != str(credentials / "qd.db-password")


def test_a_credential_that_was_not_handed_over_is_none(file: Path, credentials: Path) -> None:
    (credentials / "qd.db-password").unlink()
    assert read(file, "queues: {default: {}}").database.password_file is None


def test_what_was_handed_over_without_it_is_known_once_the_environment_is_scrubbed(
    file: Path, credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (credentials / "qd.db-password").unlink()
    file.write_text("queues: {default: {}}")
    source = Source(str(file))
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    said = why_none(source.read().database)
    assert said is not None and f"CREDENTIALS_DIRECTORY, {credentials}; a service gets it at its start only" in said


def test_the_file_is_read_anew_each_time(file: Path) -> None:
    file.write_text("queues: {default: {max_attempts: 3}}")
    source = Source(str(file))
    file.write_text("queues: {default: {max_attempts: 4}}")
    assert source.read().queues["default"].max_attempts == 4
    file.unlink()
    with pytest.raises(ConfigError, match="can't be read"):
        source.read()
