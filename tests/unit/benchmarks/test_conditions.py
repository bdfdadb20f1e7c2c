"""What the conditions say of the place where servers keep their data, and what is asked for again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import conditions
from benchmarks.measured import Plan
from benchmarks.sections import part_named


@pytest.mark.parametrize(("name", "warned"), [("tmpfs", True), ("ramfs", True), ("ext2/ext3", False)])
def test_a_file_system_in_memory_is_said_to_survive_no_power_cut(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, warned: bool
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *args, **more: subprocess.CompletedProcess(args, 0, f"{name}\n"))
    told = conditions._file_system(tmp_path)
    assert told.startswith(name) and ("NO server here survives a power cut" in told) is warned


def test_what_was_found_is_not_asked_again_and_what_was_not_found_out_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan, part = Plan(1, tmp_path, print), part_named("memory")
    answers = [OSError("not there yet"), {"version": "1"}]
    asked: list[str] = []

    def find(server: str) -> conditions.Facts:
        asked.append(server)
        answer = answers[len(asked) - 1]
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(conditions, "_mysql", find)
    known: conditions.Conditions = {}
    for _ in range(3):
        known |= conditions.after(plan, part, known)
    assert known == {"server mariadb": {"version": "1"}} and len(asked) == 2
