"""What the tests of shipped files share: the distribution's tools, and the rule which metrics a query may use."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from qd.metrics.catalogue import CATALOGUE, Spec
from tests.support.missing import without
from tests.support.programs import find
from tests.support.server import ServerMissing
from tests.unit.metrics.pages import Page, metrics

ROOT = Path(__file__).parents[3]


def run_tool(program: str, *arguments: str) -> str:
    """Runs a tool of the distribution; what it said, nothing of it if all is well."""
    try:
        found = find(program)
    except ServerMissing as missing:
        without(missing)
    done = subprocess.run([found, *arguments], capture_output=True, text=True, timeout=120)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@cache
def series_names() -> set[str]:
    """The names that a query may use."""
    suffixes = {"histogram": ("_bucket", "_sum", "_count")}
    own = {spec.name + suffix for spec in CATALOGUE for suffix in suffixes.get(spec.kind, ("",))}
    return own | {name for name, _ in Page(metrics()).series if name.startswith("process_")}


def specs(expr: str) -> Iterator[Spec]:
    """The metrics of qd that a query is about."""
    for name in re.findall(r"qd_\w+", expr):
        yield from (spec for spec in CATALOGUE if re.fullmatch(spec.name + "(_bucket|_sum|_count)?", name))


def assert_fits(expr: str) -> None:
    """All metrics exist, and are added up only where each daemon has its own."""
    used = set(re.findall(r"\b(?:qd|process)_[a-z_]+\b", expr))
    assert used <= series_names(), expr
    for part in re.findall(r"(?<!\w)sum(?: (?:by|without) \([^)]*\))? ?\((?!max)[^)]*", expr):
        assert not [spec.name for spec in specs(part) if spec.shared], f"the same from every daemon, needs max: {expr}"
