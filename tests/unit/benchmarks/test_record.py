"""A run is kept whole, and parts that were run apart are joined without one passing for the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measured import Measured
from benchmarks.record import Record, joined, read

DRAIN = [
    Measured("drain.qd.auto", 20_000.0, "jobs/s", (19_000.0, 20_000.0, 21_000.0), "a note"),
    Measured("enqueue.rq.bulk", 1, "jobs/s"),
]


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = Record(0.5, 3, {"drain": DRAIN, "idle": []}, {"pickup": "it broke"}, {"trickle.mysql97": "not fetched"})
    record.conditions = {"machine": {"cores": "2"}}
    record.write(tmp_path / "new" / "run.json")
    assert read(tmp_path / "new" / "run.json") == record


@pytest.mark.parametrize("text", ["{}", "[]", '{"format": 0}', "no JSON"])
def test_what_is_no_run_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError):
        read(tmp_path / "run.json")


def test_a_part_that_was_run_again_replaces_the_one_before_and_no_other() -> None:
    first = Record(1, 3, {"drain": DRAIN, "enqueue": [Measured("enqueue.bulk", 1, "rows/s")]}, {"idle": "it broke"})
    second = Record(1, 5, {"idle": [Measured("idle.cpu.1queue", 0.5, "%")]}, {"enqueue": "it broke too"})
    whole = joined([first, second])
    assert list(whole.figures) == ["drain", "idle"]
    assert (whole.broken, whole.rounds) == ({"enqueue": "it broke too"}, 3)


def test_runs_of_different_scale_are_not_joined() -> None:
    for runs in ([], [Record(1, 3), Record(0.1, 3)]):
        with pytest.raises(ValueError, match="scale"):
            joined(runs)


def test_the_conditions_of_joined_runs_name_their_parts() -> None:
    runs = [Record(1, 3, {name: []}, conditions={"run": {"begun": name}}) for name in ("drain", "memory")]
    assert list(joined(runs).conditions) == ["run, run 1: drain", "run, run 2: memory"]
    assert list(joined(runs[:1]).conditions) == ["run"]


def test_every_reason_for_a_missing_figure_is_kept_by_its_keys_beginning() -> None:
    record = Record(1, 3, {"idle": []}, {"regimes.mysql97": "it broke"}, {"trickle.mariadb118": "not fetched"})
    whys = record.why_missing()
    assert whys["drain"] == whys["regime"] == "not asked for"
    assert whys["regime.mysql97"] == whys["share.mysql97"] == "it broke"
    assert whys["trickle.mariadb118"] == "not fetched"
    assert "gave no such figure" in whys["idle"]
