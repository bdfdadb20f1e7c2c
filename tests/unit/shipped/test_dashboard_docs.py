"""docs/dashboard.md: a section and a picture for each row, samples that are valid, variables as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import grafana.pictures
from tests.unit.shipped.board import rows, variables
from tests.unit.shipped.tools import ROOT

PAGE = ROOT / "docs" / "dashboard.md"
TITLES = [row["title"] for row in rows()]


def sections() -> dict[str, str]:
    """The page's sections by their title."""
    parts = re.split(r"^## (.+)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def sample(name: str) -> Any:
    """A sample of the page, by the word behind its language."""
    (found,) = re.findall(rf"^```yaml {name}\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return yaml.safe_load(found)


def test_every_row_has_its_section_in_order() -> None:
    assert [title for title in sections() if title in TITLES] == TITLES


@pytest.mark.parametrize("title", TITLES)
def test_every_row_has_a_picture_that_is_small(title: str) -> None:
    ((said, place),) = re.findall(r"!\[([^]]+)\]\(([^)]+)\)", sections()[title])
    picture = PAGE.parent / place
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG") and len(content) < 100_000
    assert len(said) > 20, "who can't see it reads this"


def test_no_picture_is_left_over() -> None:
    shown = {Path(place).name for place in re.findall(r"\(pictures/([^)]+)\)", PAGE.read_text("utf-8"))}
    assert {file.name for file in (PAGE.parent / "pictures").iterdir()} == shown


def test_the_samples_for_provisioning_are_what_grafana_reads() -> None:
    (provider,) = sample("dashboards")["providers"]
    assert provider["type"] == "file" and provider["options"]["path"].startswith("/")
    (source,) = sample("datasources")["datasources"]
    scrape = yaml.safe_load((ROOT / "config/prometheus/prometheus.yml").read_text("utf-8"))["global"]["scrape_interval"]
    assert source["type"] == "prometheus" and source["jsonData"]["timeInterval"] == scrape
    assert sample("dashboards")["apiVersion"] == sample("datasources")["apiVersion"] == 1


def test_the_variables_are_named_as_they_are() -> None:
    table = re.findall(r"^\| ([A-Z][\w ]+) \|", sections()["What is chosen above the rows"], flags=re.MULTILINE)
    assert table == ["Variable", *(one["label"] for one in variables().values())]


def test_page_and_readme_say_that_grafana_itself_was_not_run() -> None:
    for page in (PAGE, ROOT / "README.md"):
        said = " ".join(page.read_text("utf-8").split())
        assert re.search(r"Grafana itself (isn't|can't be) run", said), page


def test_its_commands_are_there() -> None:
    text = sections()["Change it"]
    assert set(re.findall(r"`make (\w+)", text)) <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    for module in re.findall(r"python -m ([\w.]+)", text):
        place = ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), module


def test_the_parts_that_draw_are_those_that_their_package_names() -> None:
    parts = {file.stem for file in (ROOT / "grafana" / "pictures").glob("[a-z]*.py")}
    said = str(grafana.pictures.__doc__)
    assert set(re.findall(r"`(\w+)`", said.partition("May import")[0])) == parts
