"""The suites that are run over each kind of server, and what came of them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.support.server import ROOT

RESULTS = ROOT / "var" / "servers" / "results"

SUITES = {
    "contract": ("tests/contract", "-k", "not sqlite"),  # the embedded store is the same beside every server
    "chaos": ("tests/faults", "-m", "not long"),
}
"""What pytest is asked to run; with the workers' and the caller's own arguments behind."""

OWN = "its own"
"""The suite of what only one kind has: nodes that lag or leave, a primary that moves."""


def suites_of(kind: str) -> dict[str, tuple[str, ...]]:
    """The suites for a kind of server."""
    own = Path("tests/servers") / f"test_{kind}.py"
    return {**SUITES, OWN: (str(own),)} if (ROOT / own).exists() else SUITES


@dataclass(frozen=True)
class Counts:
    """How a suite ended."""

    passed: int
    failed: int
    skipped: int
    ended_well: bool

    def __str__(self) -> str:
        parts = {"passed": self.passed, "FAILED": self.failed, "skipped": self.skipped}
        told = ", ".join(f"{count} {what}" for what, count in parts.items() if count or what == "passed")
        return told if self.ended_well or self.failed else f"{told}, ENDED BADLY"


def log_of(kind: str, suite: str) -> Path:
    """Where the output of a suite goes."""
    return RESULTS / f"{kind}-{suite.split()[-1]}.log"


def run_suite(kind: str, suite: str, more: list[str]) -> Counts:
    """Runs one over private servers of a kind; its output is kept, what failed or was skipped is printed.

    Args:
        more: further arguments of pytest.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    log = log_of(kind, suite)
    report = log.with_suffix(".xml")
    report.unlink(missing_ok=True)
    env = {name: value for name, value in os.environ.items() if name != "QD_TEST_DSN"}
    env |= {"QD_TEST_SERVER": kind, "CI": "true"}  # CI: what can't be run is a failure
    with log.open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *suites_of(kind)[suite], f"--junitxml={report}", *more],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    _tell(log)
    return _counts(report, done.returncode)


def _tell(log: Path) -> None:
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith(("FAILED ", "ERROR ", "SKIPPED ", "ERROR: ")):
            print(f"    {line}", flush=True)
    print(f"    all of it: {log.relative_to(ROOT)}", flush=True)


def _counts(report: Path, status: int) -> Counts:
    if not report.exists():
        return Counts(0, 0, 0, False)
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    total, failures, errors, skipped = (int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped"))
    return Counts(total - failures - errors - skipped, failures + errors, skipped, status == 0)
