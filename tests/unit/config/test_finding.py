"""Where a configuration is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from qd.config import find_config, load, load_config
from qd.config.load import SYSTEM_FILE
from qd.errors import ConfigError


@pytest.fixture
def system_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own, and a place for the machine's file; nothing is there yet."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(load, "SYSTEM_FILE", tmp_path / "system.yaml")
    return tmp_path / "system.yaml"


def test_the_first_of_option_variable_working_directory_and_machine_counts(system_file: Path) -> None:
    system_file.write_text("log: {level: error}")
    assert find_config(None, {}).file == system_file
    Path("qd.yaml").write_text("log: {level: debug}")
    assert find_config(None, {}).file == Path("qd.yaml")
    assert find_config(None, {"QD_CONFIG": "v.yaml"}).file == Path("v.yaml")
    assert find_config("o.yaml", {"QD_CONFIG": "v.yaml"}).file == Path("o.yaml")
    assert find_config(None, {"QD_CONFIG": ""}).file == Path("qd.yaml")
    assert load_config(None, {}).log.level == "debug"


def test_where_none_is_it_says_where_it_looked(system_file: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find_config(None, {})
    for place in ("--config", "$QD_CONFIG", "./qd.yaml", str(system_file)):
        assert place in str(caught.value)
    assert str(SYSTEM_FILE) == "/etc/qd/qd.yaml"


def test_a_named_file_that_is_missing_is_told_and_no_other_is_tried(system_file: Path) -> None:
    Path("qd.yaml").write_text("{}")
    with pytest.raises(ConfigError, match=r"v.yaml: can't be read: No such file"):
        load_config(None, {"QD_CONFIG": "v.yaml"})


def test_a_link_to_nowhere_is_told_rather_than_passed_over(system_file: Path) -> None:
    system_file.write_text("{}")
    Path("qd.yaml").symlink_to("nowhere")
    with pytest.raises(ConfigError, match=r"qd.yaml: can't be read"):
        load_config(None, {})


def test_problems_name_the_file_as_the_user_did(system_file: Path) -> None:
    Path("qd.yaml").write_text("\nport: 1\n")
    for name in ("qd.yaml", "./qd.yaml", str(Path("qd.yaml").absolute())):
        with pytest.raises(ConfigError) as caught:
            load_config(name, {})
        assert caught.value.problems[0].startswith(f"{Path(name)}:2: port: ")
