"""Ctrl-C while the command is still being loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.server import ROOT


def test_ctrl_c_before_anything_was_begun_is_130_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")  # as if it came in the middle of the imports
    ended = subprocess.run(
        [sys.executable, "-m", "qd", "status"], capture_output=True, text=True, timeout=60, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
