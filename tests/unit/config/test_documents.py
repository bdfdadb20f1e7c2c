"""The shipped files and the documentation say what the model says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qd.config import load_config, parse_config
from qd.config.model import Config
from tests.unit.config.catalogue import keys

ROOT = Path(__file__).parents[3]
COMPLETE = ROOT / "config/qd.yaml"
DOCS = ROOT / "docs/configuration.md"


def rows() -> list[list[str]]:
    """The cells of the table of keys."""
    table = DOCS.read_text(encoding="utf-8").partition("## Keys")[2].partition("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")
    ]


def test_the_table_has_every_key_with_its_type_default_and_limits() -> None:
    said = [tuple(cell.strip("`") if n in (0, 2) else cell for n, cell in enumerate(row[:4])) for row in rows()]
    assert said == [(key.path, key.kind, key.default, key.allowed) for key in keys()]


def test_each_row_says_what_the_key_does_and_how_it_changes_on_reload() -> None:
    legend = set(re.findall(r"^- \*\*(.+?)\*\*:", DOCS.read_text(encoding="utf-8"), re.MULTILINE))
    for row in rows():
        assert len(row) == 6 and len(row[4]) > 10
        assert row[5] in legend | {"—"}
    assert {row[5] for row in rows()} >= legend


def test_the_complete_file_is_valid_as_it_stands_and_says_the_defaults() -> None:
    assert load_config(str(COMPLETE), {}) == Config()


def test_the_complete_file_has_every_key() -> None:
    text = COMPLETE.read_text(encoding="utf-8")
    for key in keys():
        name = key.path.rpartition(".")[2].removesuffix("[]")
        if ".threads." not in key.path:
            assert re.search(rf"^[ #-]*{name}:", text, re.MULTILINE), key.path
    assert "{min: 1, max: 16}" in text


def test_what_the_complete_file_has_in_comments_is_valid_too() -> None:
    text = COMPLETE.read_text(encoding="utf-8")
    text = (
        text.replace("commands: {}  ", "commands:  ")
        .replace("# path:", "path:")
        .replace("driver: mysql", "driver: sqlite")
    )
    text = re.sub(r"^  #( +\w+:.*)$", r" \1", text, flags=re.MULTILINE)
    text = re.sub(r"^  (host|port|name|user|tls):.*$", "", text, flags=re.MULTILINE).replace(
        "    mode: preferred ", "# "
    )
    text = text.replace("    ca: null ", "# ")
    config = parse_config(text, environ={})
    assert config.handlers.commands["make_thumbnail"].argv == ("/usr/local/bin/thumbnail", "--size", "200")
    assert config.database.path == Config().database.path


def test_the_minimal_file_needs_only_the_password() -> None:
    minimal = ROOT / "config/qd.minimal.yaml"
    assert load_config(str(minimal), {"QD_DB_PASSWORD": "x"}).database.password == "x"
    assert len(minimal.read_text(encoding="utf-8").splitlines()) < 20


@pytest.mark.parametrize(
    "line", [line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("/etc/qd")]
)
def test_the_messages_that_the_documentation_shows_are_real(line: str) -> None:
    _, number, rest = line.split(":", 2)
    rows = [""] * 20
    rows[3], rows[11] = "  port: 99999", "  mails: {max_atempts: 1}"
    rows[0], rows[10], rows[15], rows[16] = "database:", "queues:", "workers:", "  - queues: [defualt]"
    rows[12] = "  default: {}"
    with pytest.raises(Exception) as caught:
        parse_config("\n".join(rows), "/etc/qd/qd.yaml", {})
    assert f"/etc/qd/qd.yaml:{number}:{rest}" in str(caught.value).splitlines()
