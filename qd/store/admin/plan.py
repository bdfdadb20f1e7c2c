"""How the claim finds its rows, as the database's own EXPLAIN tells: by which index, in which order.

A sort would lock the whole backlog; without a range each claim would walk what was done before.
May import: the pure modules, protocol, dialect, candidate (the claim's statements).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from qd.store.claim.candidate import candidates
from qd.store.dialect import Cursor, Dialect, Session
from qd.store.protocol import Claim, Finding, Spot

INDEX = "qd_jobs_claim"

REMEDY = "compare the table with schema.sql, and make the index again as it stands there"


@dataclass(frozen=True)
class Plan:
    """What an EXPLAIN says of the claim.

    Attributes:
        indexes: that it uses.
        sorts: rows are put in order after they were read.
        ranged: it begins at the low bound and ends at now, instead of walking the lane.
    """

    indexes: frozenset[str]
    sorts: bool
    ranged: bool


def claim_plan(session: Session) -> Iterator[Finding]:
    """Whether the claim walks its index in order, from its low bound up."""
    plan = session.read(lambda cursor: explained(cursor, session.dialect))
    way = f"uses {', '.join(sorted(plan.indexes)) or 'no index'}{' and sorts' if plan.sorts else ''}"
    if plan.indexes != {INDEX} or plan.sorts:
        yield Finding("FAIL", "claim plan", f"the claim {way} instead of walking {INDEX}: {REMEDY}")
    elif not plan.ranged:
        text = f"the claim walks {INDEX} from its beginning, past all that was done before: {REMEDY}"
        yield Finding("warn", "claim plan", text)
    else:
        yield Finding("ok", "claim plan", f"a range of {INDEX}, in its order, without a sort")


def explained(cursor: Cursor, dialect: Dialect) -> Plan:
    """The plan of the claim's own statement."""
    mysql = dialect.name == "mysql"
    explaining = _Explaining(cursor, "EXPLAIN FORMAT=JSON" if mysql else "EXPLAIN QUERY PLAN")
    claim = Claim(queue="default", limit=10, lease=60.0, token="", max_attempts=1)
    candidates(explaining, dialect, claim, 2, Spot("2001-01-01 00:00:00.000000", 1), 10, dialect.lock)
    return (_read_mysql if mysql else _read_sqlite)(explaining.plans)


class _Explaining:
    """A cursor that has each statement explained instead of run; the plans' rows are in `plans`."""

    rowcount = 0
    lastrowid = None

    def __init__(self, cursor: Cursor, word: str) -> None:
        self._cursor, self._word = cursor, word
        self.plans: list[Any] = []

    def execute(self, sql: str, params: Sequence[Any] = ()) -> None:
        self._cursor.execute(f"{self._word} {sql}", params)
        self.plans += self._cursor.fetchall()

    def fetchone(self) -> Any:
        return None

    def fetchall(self) -> list[Any]:
        return []


def _read_mysql(plans: list[Any]) -> Plan:
    """JSON is what all servers offer; the names in it differ by server and version."""
    nodes = [node for row in plans for node in _nodes(json.loads(row[0]))]
    return Plan(
        indexes=frozenset(str(node[key]) for node in nodes for key in ("key", "index_name") if key in node),
        sorts=any(_sorts(node) for node in nodes),
        ranged=any("range" in (node.get("access_type"), node.get("index_access_type", "")[6:11]) for node in nodes),
    )


def _sorts(node: dict[str, Any]) -> bool:
    by_name = "filesort" in node or node.get("using_filesort") is True
    return by_name or str(node.get("operation", "")).startswith("Sort")


def _nodes(plan: Any) -> Iterator[dict[str, Any]]:
    """All objects of a JSON value."""
    if isinstance(plan, dict):
        yield plan
    for value in plan.values() if isinstance(plan, dict) else plan if isinstance(plan, list) else ():
        yield from _nodes(value)


def _read_sqlite(plans: list[Any]) -> Plan:
    steps = [str(row[3]) for row in plans]
    return Plan(
        indexes=frozenset(name for step in steps for name in re.findall(r"USING (?:COVERING )?INDEX (\w+)", step)),
        sorts=any("USE TEMP B-TREE" in step for step in steps),
        ranged=any("available_at>" in step.replace(" ", "") for step in steps),
    )
