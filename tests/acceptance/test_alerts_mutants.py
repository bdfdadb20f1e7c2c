"""The tests beside the rules notice what is broken in an alert: each comparison, window, part, wait, and its end."""

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
UNITS = {"m": 60, "h": 3600}
WINDOW = re.compile(r"(?<=\[)\d+[mh](?=\])|(?<=offset )\d+m")
JOINED = re.compile(r"\b(?:or|and|unless)\b")


def mutants(rule: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The alert, broken in one place."""
    yield "it never fires", rule | {"expr": f"({rule['expr']}) and on () vector(0) > 1"}
    yield "it never resolves", rule | {"keep_firing_for": "1d"}
    if "for" in rule:
        yield "it doesn't wait", {key: value for key, value in rule.items() if key != "for"}
        yield "it waits twice as long", rule | {"for": f"{2 * int(rule['for'][:-1])}m"}
    for what, expr in broken(rule["expr"]):
        yield what, rule | {"expr": expr}


def broken(expr: str) -> Iterator[tuple[str, str]]:
    """The query, broken in one place."""
    for found in COMPARED.finditer(expr):
        for bound, what in (("> -1e9", "always true"), ("> 1e9", "never true")):
            yield f"'{found[0]}' at {found.start()} is {what}", put(expr, found, bound)
    for found in WINDOW.finditer(expr):
        for factor in (0.5, 2):
            window = f"{int(UNITS[found[0][-1]] * int(found[0][:-1]) * factor)}s"
            yield f"{found[0]} at {found.start()} is {window}", put(expr, found, window)
    for found in JOINED.finditer(expr):
        end = operand(expr, found.end())
        yield f"without '{expr[found.start() : end]}'", expr[: found.start()] + expr[end:]


def operand(expr: str, start: int) -> int:
    """Where what a set operator joins ends: at the next one on its level, or with the bracket it stands in."""
    depth = 0
    for at in range(start, len(expr)):
        depth += {"(": 1, ")": -1}.get(expr[at], 0)
        if depth < 0 or (depth == 0 and JOINED.match(expr, at)):
            return at
    return len(expr)


def put(expr: str, found: re.Match[str], instead: str) -> str:
    return expr[: found.start()] + instead + expr[found.end() :]


def own_records(rule: dict[str, Any]) -> list[dict[str, Any]]:
    """The records that no other alert stands on."""
    others = "".join(other["expr"] for other in alerts() if other["alert"] != rule["alert"])
    return [one for one in records() if one["record"] in rule["expr"] and one["record"] not in others]


def unnoticed(folder: Path, rule: dict[str, Any], record: dict[str, Any] | None = None) -> bool:
    """Whether the tests of an alert pass with what became of it, or of a record of its."""
    own = [test for test in cases() if test["name"].startswith(f"{rule['alert']}: ")]
    suite = yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "15s", "tests": own})
    used = [one for one in records() if one["record"] in rule["expr"]]
    if record is not None:
        used = [record if one["record"] == record["record"] else one for one in used]
    others = [other for other in alerts() if other["alert"] in suite and other["alert"] != rule["alert"]]
    group = {"name": "qd", "rules": [*used, *others, rule]}
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [group]}))
    (folder / "test.yml").write_text(suite)
    return ran("promtool", "test", "rules", str(folder / "test.yml")).returncode == 0


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_what_is_broken_in_an_alert_is_noticed(name: str, tmp_path: Path) -> None:
    (rule,) = [rule for rule in alerts() if rule["alert"] == name]
    assert unnoticed(tmp_path, rule), "nothing is broken in it"
    changed = list(mutants(rule))
    assert len(changed) >= 4
    assert [what for what, mutant in changed if unnoticed(tmp_path, mutant)] == []
    for record in own_records(rule):
        found = [(what, record | {"expr": expr}) for what, expr in broken(record["expr"])]
        assert [what for what, mutant in found if unnoticed(tmp_path, rule, mutant)] == []
