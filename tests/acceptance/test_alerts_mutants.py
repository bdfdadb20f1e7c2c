"""The tests beside the rules notice what is broken in an alert: each comparison, window, wait, and its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.shipped.test_rules import ALERTS, alerts, cases, records
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


def unnoticed(folder: Path, rule: dict[str, Any]) -> bool:
    """Whether the tests of an alert pass with what became of it."""
    own = [test for test in cases() if test["name"].startswith(f"{rule['alert']}: ")]
    suite = yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "15s", "tests": own})
    used = [record for record in records() if record["record"] in rule["expr"]]
    others = [other for other in alerts() if other["alert"] in suite and other["alert"] != rule["alert"]]
    group = {"name": "qd", "rules": [*used, *others, rule]}
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [group]}))
    (folder / "test.yml").write_text(suite)
    return ran("promtool", "test", "rules", str(folder / "test.yml")).returncode == 0


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_what_is_broken_in_an_alert_is_noticed(name: str, tmp_path: Path) -> None:
    (rule,) = [rule for rule in alerts() if rule["alert"] == name]
    assert unnoticed(tmp_path, rule), "nothing is broken in it"
    broken = list(mutants(rule))
    assert len(broken) >= 4
    assert [what for what, mutant in broken if unnoticed(tmp_path, mutant)] == []
