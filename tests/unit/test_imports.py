"""Imports go down only: the layers of pyproject.toml, held here too so that `make test` says it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_imports_go_down_only() -> None:
    pytest.importorskip("importlinter", reason="import-linter comes with the extra `dev`; CI has it and runs this rule")
    done = python("from importlinter.cli import lint_imports_command as lint; lint()")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_handler_module_loads_neither_driver_nor_daemon() -> None:
    done = python(
        "import sys, qd\n"
        "qd.handler('t')(lambda job: None)\n"
        "heavy = {'mysql.connector', 'pydantic', 'rich', 'click', 'prometheus_client', 'qd.daemon', 'qd.store'}\n"
        "print(*sorted(heavy & set(sys.modules)))\n"
    )
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


def python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
