"""`qd run` takes the signals over before it loads anything heavy; other verbs leave them alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from qd.cli import verb


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("run", "run"),
        ("--config x.yaml run", "run"),
        ("--config run status", "status"),
        ("--config=run status", "status"),
        ("enqueue run", "enqueue"),
        ("--version", None),
        ("--config", None),
        ("", None),
    ],
)
def test_the_verb_is_found_without_loading_the_command_line(line: str, found: str | None) -> None:
    assert verb(line.split()) == found


LOADED = """
import signal, sys
import qd.cli, qd.daemon.signals as signals
was = signals.install
def install():
    print(sorted({"click", "pydantic", "mysql", "prometheus_client", "yaml"} & set(sys.modules)))
    sys.exit(0)
signals.install = install
sys.argv = ["qd", "--config", "x.yaml", "run"]
qd.cli.main()
"""


def test_signals_are_taken_before_the_libraries_are_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
