"""What the conditions say of the place where servers keep their data."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import conditions


@pytest.mark.parametrize(("name", "warned"), [("tmpfs", True), ("ramfs", True), ("ext2/ext3", False)])
def test_a_file_system_in_memory_is_said_to_survive_no_power_cut(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, warned: bool
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *args, **more: subprocess.CompletedProcess(args, 0, f"{name}\n"))
    told = conditions._file_system(tmp_path)
    assert told.startswith(name) and ("NO server here survives a power cut" in told) is warned
