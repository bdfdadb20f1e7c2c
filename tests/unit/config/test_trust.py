"""Root takes a configuration that it wasn't given by name only where root alone can write it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from qd.config import load, load_config
from qd.config.trust import changeable_by_others
from qd.daemon.source import Source
from qd.errors import ConfigError
from tests.support.missing import without

NOBODY = pwd.getpwnam("nobody").pw_uid
TEXT = "log: {level: debug}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of root's, with a configuration that is found there."""
    if os.geteuid() != 0:
        without("root: only root can give a file away, and only root has to distrust one")
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    (folder / "qd.yaml").write_text(TEXT)
    (folder / "qd.yaml").chmod(0o644)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("QD_CONFIG", raising=False)
    monkeypatch.setattr(load, "SYSTEM_FILE", tmp_path / "system.yaml")
    return folder


def give_folder(here: Path) -> None:
    os.chown(here, NOBODY, 0)


def give_file(here: Path) -> None:
    os.chown(here / "qd.yaml", NOBODY, 0)


def open_folder(here: Path) -> None:
    here.chmod(0o775)


def open_file(here: Path) -> None:
    (here / "qd.yaml").chmod(0o646)


def share_folder(here: Path) -> None:
    """As /tmp is: what is root's stays root's, but its name may have been another's choice."""
    here.chmod(0o1777)


def link_into_anothers(here: Path) -> None:
    """A link of root's through a folder of another's, who can lead it on to any file of root's."""
    between = here.parent / "between"
    between.mkdir()
    (here / "qd.yaml").rename(here / "real.yaml")
    (between / "qd.yaml").symlink_to(here / "real.yaml")
    (here / "qd.yaml").symlink_to(between / "qd.yaml")
    os.chown(between, NOBODY, 0)


def link_of_anothers(here: Path) -> None:
    (here / "qd.yaml").rename(here / "real.yaml")
    (here / "qd.yaml").symlink_to("real.yaml")
    os.chown(here / "qd.yaml", NOBODY, 0, follow_symlinks=False)


OTHERS = [
    give_folder, give_file, open_folder, open_file, share_folder, link_into_anothers, link_of_anothers,
]  # fmt: skip


@pytest.mark.parametrize("change", OTHERS)
def test_root_takes_no_found_file_that_another_can_change(here: Path, change: Callable[[Path], None]) -> None:
    change(here)
    with pytest.raises(ConfigError) as caught:
        load_config(None, {})
    [line] = caught.value.problems
    assert line.startswith("qd.yaml: ") and "\n" not in line
    assert str(here.parent) in line and f"--config {here}/qd.yaml" in line


def test_what_another_may_have_planted_is_not_what_root_is_told_to_name(here: Path) -> None:
    give_folder(here)
    (here.parent / "system.yaml").write_text(TEXT)
    with pytest.raises(ConfigError, match=rf"--config {here.parent}/system\.yaml,"):
        load_config(None, {})


@pytest.mark.parametrize("change", OTHERS)
def test_a_named_one_is_roots_own_choice(here: Path, change: Callable[[Path], None]) -> None:
    change(here)
    assert load_config("qd.yaml", {}).log.level == "debug"
    assert load_config(None, {"QD_CONFIG": "qd.yaml"}).log.level == "debug"


def test_what_root_alone_can_write_is_taken_also_through_links_of_roots(here: Path) -> None:
    assert load_config(None, {}).log.level == "debug"
    (here / "qd.yaml").rename(here.parent / "real.yaml")
    (here / "qd.yaml").symlink_to("../real.yaml")
    assert load_config(None, {}).log.level == "debug"


def test_a_folder_of_roots_in_anothers_checkout_is_roots(here: Path) -> None:
    """As where a container's root works in a checkout that is mounted."""
    os.chown(here.parent, NOBODY, 0)
    assert load_config(None, {}).log.level == "debug"
    assert changeable_by_others(str(here)) == f"{here.parent} belongs to nobody", "code is another matter"


def test_the_machines_own_file_is_judged_likewise(here: Path) -> None:
    (here / "qd.yaml").rename(here.parent / "system.yaml")
    assert load_config(None, {}).log.level == "debug"
    os.chown(here.parent / "system.yaml", NOBODY, 0)
    with pytest.raises(ConfigError, match=r"system\.yaml belongs to nobody"):
        load_config(None, {})


def test_it_is_not_even_parsed(here: Path) -> None:
    (here / "qd.yaml").write_text("database: {user: '${SECRET_OF_ROOTS'\n")
    give_folder(here)
    with pytest.raises(ConfigError) as caught:
        load_config(None, {})
    assert len(caught.value.problems) == 1 and "SECRET" not in str(caught.value)


def test_a_daemon_of_roots_judges_it_anew_at_each_reload(here: Path) -> None:
    source = Source(None)
    assert source.read().log.level == "debug"
    give_file(here)
    with pytest.raises(ConfigError, match="belongs to nobody"):
        source.read()
    assert Source("qd.yaml").read().log.level == "debug"


def test_another_than_root_takes_what_it_finds(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_folder(here)
    monkeypatch.setattr("os.geteuid", lambda: NOBODY)
    assert load_config(None, {}).log.level == "debug"


def test_a_loop_of_links_has_an_end(here: Path) -> None:
    (here / "a").symlink_to("b")
    (here / "b").symlink_to("a")
    assert changeable_by_others(str(here / "a")) is None, "it leads nowhere, and so to nothing of another's"
    (here / "qd.yaml").unlink()
    (here / "qd.yaml").symlink_to("a")
    with pytest.raises(ConfigError, match="can't be read"):
        load_config(None, {})
