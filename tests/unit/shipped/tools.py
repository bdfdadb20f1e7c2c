"""What the tests of shipped files share: the distribution's tools, and the rule which metrics a query may use."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from qd.metrics.catalogue import CATALOGUE, Spec
from tests.support.missing import without
from tests.support.programs import find
from tests.support.server import ServerMissing
from tests.unit.metrics.pages import Page, metrics

ROOT = Path(__file__).parents[3]
RULES = ROOT / "config" / "prometheus" / "qd.rules.yml"
RECORD = re.compile(r"[a-z_]+:[a-z_]+:[a-z0-9_]+")


def run_tool(program: str, *arguments: str) -> str:
    """Runs a tool of the distribution; what it said, nothing of it if all is well."""
    done = ran(program, *arguments)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def ran(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same, with all that it said and its exit status."""
    try:
        found = find(program)
    except ServerMissing as missing:
        without(missing)
    return subprocess.run([found, *arguments], capture_output=True, text=True, timeout=120)


@cache
def rules() -> list[dict[str, Any]]:
    """The shipped rules, records and alerts."""
    return [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]


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
    """All metrics exist, and are added up only where each daemon has its own; all records are among the rules."""
    assert set(RECORD.findall(expr)) <= {rule.get("record") for rule in rules()}, expr
    raw = RECORD.sub("", expr)
    assert set(re.findall(r"\b(?:qd|process)_[a-z_]+\b", raw)) <= series_names(), expr
    for part in re.findall(r"(?<!\w)sum(?: (?:by|without) \([^)]*\))? ?\((?!max)[^)]*", raw):
        assert not [spec.name for spec in specs(part) if spec.shared], f"the same from every daemon, needs max: {expr}"
