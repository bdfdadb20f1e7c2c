"""The table says every target, what was reached, and who is ahead of qd; on a terminal and on the page."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.measured import Measured
from benchmarks.page import BEGIN, END, PAGE, renewed
from benchmarks.record import Record
from benchmarks.table import as_markdown, as_text, losses
from benchmarks.targets import TARGETS

FIGURES = [
    Measured("drain.qd.auto", 20_000.0, "jobs/s", (19_000.0, 20_000.0, 21_000.0), "4 threads | batch auto"),
    Measured("drain.huey", 5_000.0, "jobs/s", (4_900.0, 5_000.0)),
    Measured("drain.raw.100", 30_000.0, "jobs/s"),
    Measured("drain.rq", 0.0, "jobs/s", (), "NOT RUN: no pip"),
]


def record(scale: float = 1) -> Record:
    return Record(scale, 3, {"drain": FIGURES}, {"idle": "ValueError: it broke"}, {}, {"machine": {"cores": "2"}})


@pytest.mark.parametrize("shown", [as_text, as_markdown])
def test_every_target_is_a_row_with_its_verdict(shown: object) -> None:
    text = "\n".join(shown(record()))  # type: ignore[operator]
    for target in TARGETS:
        assert len(re.findall(rf"^\W*{target.part}\W+{re.escape(target.text)}\s", text, re.MULTILINE)) == 1, target
    assert "4 x (20,000 against 5,000 jobs/s of huey)" in text
    assert "not measured" in text and "it broke" in text and "not asked for" in text


@pytest.mark.parametrize("shown", [as_text, as_markdown])
def test_all_figures_and_conditions_follow(shown: object) -> None:
    text = "\n".join(shown(record()))  # type: ignore[operator]
    for figure in FIGURES:
        assert f"{figure.key} " in text
    assert "19,000 to 21,000" in text and "NOT RUN: no pip" in text
    assert text.index("drain.rq") < text.index("Conditions: machine")


def test_a_run_at_a_smaller_scale_says_first_that_it_is_no_measurement() -> None:
    assert as_text(record(0.05))[0].startswith("SCALE 0.05")
    assert not as_text(record())[0].startswith("SCALE")


def test_the_markdown_is_made_of_whole_tables_whatever_a_note_says() -> None:
    columns = [len(re.split(r"(?<!\\)\|", line)) if line.startswith("|") else 0 for line in as_markdown(record())]
    assert max(columns) == 8
    for one, next_one in pairwise(columns):
        assert 0 in (one, next_one) or one == next_one


def test_who_does_more_in_a_second_than_qd_is_named() -> None:
    figures = [
        *FIGURES,
        Measured("drain.pgqueuer.250", 25_000, "jobs/s"),
        Measured("drain.qd.auto.2daemons", 21_000, "jobs/s"),
        Measured("drain.pgqueuer.250.2workers", 24_000, "jobs/s"),
        Measured("enqueue.qd.single", 900, "jobs/s"),
        Measured("enqueue.rq.single", 4_000, "jobs/s"),
        Measured("enqueue.celery.single", 800, "jobs/s"),
        Measured("enqueue.qd.bulk", 40_000, "jobs/s"),
        Measured("enqueue.huey.bulk", 10_000, "jobs/s"),
        Measured("enqueue.single", 1_000, "rows/s"),
    ]
    assert losses(figures)[0] == "drain: pgqueuer.250, 25,000 against qd's 20,000 jobs/s"
    named = "\n".join(losses(figures))
    assert "pgqueuer.250.2workers" in named and "rq.single" in named
    assert not re.search("huey|celery|drain.rq|raw|: single", named)
    assert losses([]) == []


def test_only_what_stands_between_its_markers_is_written_anew() -> None:
    page = f"# Text\n\n{BEGIN}\nold\n{END}\n\nmore text\n"
    once = renewed(page, record())
    assert once.startswith(f"# Text\n\n{BEGIN}\n") and once.endswith(f"{END}\n\nmore text\n")
    assert "old" not in once and "| drain.huey |" in once
    assert renewed(once, record()) == once


@pytest.mark.parametrize("page", ["", BEGIN, f"{END}{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_page_without_its_markers_is_left_alone(page: str) -> None:
    with pytest.raises(ValueError, match="markers"):
        renewed(page, record())


def test_the_page_that_is_kept_has_its_markers() -> None:
    assert BEGIN in renewed(PAGE.read_text(), record())


def test_the_page_is_in_the_index_of_the_documentation() -> None:
    assert "(benchmarks.md)" in (Path(PAGE).parent / "README.md").read_text()


def test_a_long_table_is_folded_on_the_page_and_whole_on_a_terminal() -> None:
    many = Record(1, 3, {"regimes.mariadb": [Measured(f"regime.mariadb.poll.r{n}.p50", n, "us") for n in range(60)]})
    page, text = as_markdown(many), as_text(many)
    assert page.index("<details>") < page.index("</details>") and "<summary>60 figures</summary>" in page
    assert not [line for line in text if "<" in line and "details" in line]
    assert len([line for line in text if line.startswith("regime.mariadb.poll.r")]) == 60
