"""The tests beside the rules notice what is broken in an alert: each comparison, window, wait, and its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.unit.shipped.test_rules import alerts, cases, records
from tests.unit.shipped.tools import ran

COMPARED = re.compile(r"(?:==|>=|>|<) \d+")
WINDOW = re.compile(r"\[\d+m\]")


def mutants(rule: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The alert, broken in one place."""
    yield "it never fires", rule | {"expr": f"({rule['expr']}) and on () vector(0) > 1"}
    yield "it never resolves", rule | {"keep_firing_for": "1d"}
    if "for" in rule:
        yield "it doesn't wait", {key: value for key, value in rule.items() if key != "for"}
        yield "it waits twice as long", rule | {"for": f"{2 * int(rule['for'][:-1])}m"}
    for found in COMPARED.finditer(rule["expr"]):
        for bound, what in (("> -1e9", "always true"), ("> 1e9", "never true")):
            yield f"'{found[0]}' at {found.start()} is {what}", rule | {"expr": put(rule["expr"], found, bound)}
    for found in WINDOW.finditer(rule["expr"]):
        for factor in (0.5, 2):
            window = f"[{int(60 * int(found[0][1:-2]) * factor)}s]"
            yield f"{found[0]} at {found.start()} is {window}", rule | {"expr": put(rule["expr"], found, window)}


def put(expr: str, found: re.Match[str], instead: str) -> str:
    return expr[: found.start()] + instead + expr[found.end() :]


def test_what_is_broken_in_an_alert_is_noticed(tmp_path: Path) -> None:
    files: dict[str, str] = {}
    for rule in alerts():
        own = [test for test in cases() if test["name"].startswith(f"{rule['alert']}: ")]
        for what, mutant in mutants(rule):
            number = len(files)
            used = [record for record in records() if record["record"] in mutant["expr"]]
            group = {"name": "qd", "rules": [*used, mutant]}
            (tmp_path / f"{number}.rules.yml").write_text(yaml.safe_dump({"groups": [group]}))
            suite = {"rule_files": [f"{number}.rules.yml"], "evaluation_interval": "15s", "tests": own}
            files[str(tmp_path / f"{number}.test.yml")] = f"{rule['alert']}: {what}"
            (tmp_path / f"{number}.test.yml").write_text(yaml.safe_dump(suite))
    done = ran("promtool", "test", "rules", *files)
    assert len(re.findall("Unit Testing:", done.stdout)) == len(files) > 50
    unnoticed = re.findall(r"Unit Testing:\s+(\S+)\s+SUCCESS", done.stdout)
    assert sorted(files[file] for file in unnoticed) == []
