"""The peers' environments: made once, renewed with their pins, and refused with a reason. Needs no package index."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.environments import Environments
from benchmarks.processes import NotRun


def test_an_environment_is_made_once_and_again_when_its_pins_change(tmp_path: Path) -> None:
    said: list[str] = []
    pins = tmp_path / "pins"
    pins.mkdir()
    (pins / "peer.txt").write_text("# nothing\n")
    program = Environments(tmp_path / "made", said.append, pins).bin("peer") / "python"
    assert program.exists()
    assert [line.split(" into ")[0] for line in said] == ["installing peer", "peer: nothing"]

    again = Environments(tmp_path / "made", said.append, pins)
    assert again.bin("peer") / "python" == program
    assert len(said) == 2, "it is there"
    assert again.versions("peer") == {}

    (pins / "peer.txt").write_text(f"{tmp_path}/nowhere.whl\n")
    with pytest.raises(NotRun, match=r"pip install: .*nowhere\.whl"):
        again.bin("peer")
    (pins / "peer.txt").unlink()
    with pytest.raises(NotRun, match=r"nowhere\.whl"):
        again.bin("peer")  # not tried again in every round
    assert len(said) == 3
