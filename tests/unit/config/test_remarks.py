"""What is allowed but probably not meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from qd.config import load_config, remarks, world_readable
from qd.config.model import Config


def of(path: Path, text: str, mode: int = 0o600) -> list[str]:
    """The remarks on a file, without its name."""
    file = path / "qd.yaml"
    file.write_text(text)
    file.chmod(mode)
    return [remark.removeprefix(f"{file}:") for remark in remarks(load_config(str(file), {"P": "p"}))]


def test_a_plain_configuration_has_none(tmp_path: Path) -> None:
    assert of(tmp_path, "database:\n  password: x\n") == []
    assert remarks(Config()) == []


@pytest.mark.parametrize(("mode", "told"), [(0o644, True), (0o604, True), (0o640, False), (0o600, False)])
def test_a_password_that_everybody_may_read_is_remarked(tmp_path: Path, mode: int, told: bool) -> None:
    found = of(tmp_path, "database:\n  password: secretword\n", mode)
    assert [remark.startswith("2: database.password: every user") for remark in found] == [True] * told
    assert "secretword" not in str(found)
    assert of(tmp_path, "database:\n  password: ${P}\n", mode) == []
    assert of(tmp_path, "log: {}\n", mode) == []


def test_a_password_file_that_everybody_may_read_is_remarked(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("x")
    file.chmod(0o644)
    assert world_readable(file) and not world_readable(tmp_path / "none")
    (remark,) = of(tmp_path, f"database:\n  password_file: {file}\n")
    assert remark.startswith("2: database.password_file: every user")


def test_queues_that_nobody_serves_or_that_differ_by_case_are_remarked(tmp_path: Path) -> None:
    found = of(tmp_path, "queues:\n  default: {}\n  Default: {}\nworkers: [{queues: [default]}]\n")
    assert found == [
        "3: queues.Default: no worker of this configuration serves it",
        "3: queues.Default: default and Default differ only by case; they are different queues",
    ]


def test_a_program_that_is_not_found_is_remarked(tmp_path: Path) -> None:
    found = of(tmp_path, "handlers:\n  commands:\n    a: {argv: [/no/such/program]}\n    b: {argv: [sh]}\n")
    assert [remark.split(": ")[:2] for remark in found] == [["3", "handlers.commands.a.argv"]]


def test_metrics_that_are_open_to_the_network_are_remarked(tmp_path: Path) -> None:
    (remark,) = of(tmp_path, "http: {listen: '0.0.0.0:9833'}\n")
    assert remark.startswith("1: http.listen: is open to the network without a login")
