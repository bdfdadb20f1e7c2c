"""The frame: every section has its turn whatever becomes of another, and qd itself knows nothing of it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.__main__ import main, run_part
from benchmarks.measured import Measured, Plan
from benchmarks.record import Record
from benchmarks.sections import SECTIONS, Part, Section, part_named, parts
from benchmarks.seen import percentile
from tests.support.server import ROOT, ServerMissing


@dataclass(frozen=True, slots=True)
class Made(Section):
    """A section whose outcome the test decides."""

    act: Callable[[Plan], Sequence[Measured]] = lambda plan: []

    def measure(self) -> Callable[[Plan], Sequence[Measured]]:
        return self.act


def ran(part: Part, folder: Path) -> tuple[Record, list[str]]:
    record, said = Record(1, 2), list[str]()
    run_part(part, Plan(2, folder, said.append, 1.0, ("mariadb", "mysql97")), record)
    return record, said


def test_each_figure_is_kept_and_said(tmp_path: Path) -> None:
    figure = Measured("idle.cpu", 0.512, "%", (0.4, 0.6), "of a core")
    record, _ = ran(Part(Made("idle", "Idle", ("idle",), act=lambda plan: [figure])), tmp_path)
    assert record.figures == {"idle": [figure]} and not record.broken


def test_a_section_that_breaks_is_said_with_its_error_and_ends_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(plan: Plan) -> list[Measured]:
        raise AssertionError("it\nbroke")

    record, _ = ran(Part(Made("idle", "Idle", ("idle",), act=broken)), tmp_path)
    assert record.broken == {"idle": "AssertionError: it broke"}
    assert "Idle BROKE" in capsys.readouterr().out


def test_a_server_that_cannot_be_had_breaks_nothing(tmp_path: Path) -> None:
    def missing(plan: Plan) -> list[Measured]:
        raise ServerMissing("not fetched")

    record, _ = ran(Part(Made("trickle", "Trickle", ("trickle",), True, missing), "mysql97"), tmp_path)
    assert (record.broken, record.missing) == ({}, {"trickle.mysql97": "not fetched"})


def test_a_section_on_several_servers_is_given_one_at_a_time(tmp_path: Path) -> None:
    asked: list[Sequence[str]] = []

    def noted(plan: Plan) -> list[Measured]:
        asked.append(plan.servers)
        return []

    for part in parts([Made("trickle", "Trickle", ("trickle",), True, noted)], ["mariadb", "mysql97"]):
        ran(part, tmp_path)
    assert asked == [("mariadb",), ("mysql97",)]


def test_every_section_is_a_module_that_measures() -> None:
    for section in SECTIONS:
        assert callable(section.measure())


def test_a_part_is_found_again_by_its_name() -> None:
    for part in parts(SECTIONS, ["mariadb", "mysql97"]):
        assert part_named(part.name) == part


@pytest.mark.parametrize(
    "arguments", [["--rounds", "0"], ["--scale", "2"], ["--scale", "x"], ["--sections", "nonsense"]]
)
def test_what_cannot_be_meant_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2


@pytest.mark.parametrize("arguments", [["--write", "--scale", "0.1"], ["--write", "--sections", "idle"]])
def test_the_page_is_not_written_from_less_than_a_whole_run(arguments: list[str]) -> None:
    assert main(arguments) == 2


def test_an_earlier_run_is_shown_without_measuring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Record(1, 3, {"memory": [Measured("memory.peak", 71.5, "MiB", (70, 71.5, 72))]}).write(tmp_path / "run.json")
    assert main(["--render", str(tmp_path / "run.json")]) == 0
    assert "71.5 MiB" in capsys.readouterr().out
    Record(1, 3, {}, {"memory": "it broke"}).write(tmp_path / "broken.json")
    assert main(["--render", str(tmp_path / "run.json"), str(tmp_path / "broken.json")]) == 1
    assert main(["--render", str(tmp_path / "none.json")]) == 2


@pytest.mark.parametrize(
    ("count", "share", "place"), [(1, 0.99, 0), (200, 0.5, 100), (200, 0.99, 198), (100, 0.99, 99), (200, 1.0, 199)]
)
def test_a_percentile_is_one_of_the_values(count: int, share: float, place: int) -> None:
    assert percentile([float(value) for value in reversed(range(count))], share) == place


def test_qd_is_shipped_without_its_benchmarks_and_never_imports_them() -> None:
    assert 'packages=find_packages(include=["qd", "qd.*"])' in (ROOT / "setup.py").read_text()
    for file in (ROOT / "qd").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name.split(".")[0] in ("benchmarks", "tests")], file
