"""Runs the contract suite and the short chaos over each kind of server: `make test-servers`.

usage: python -m tests.servers [KIND...] [-- PYTEST ARGUMENTS]     (KINDs: all, or some of `kinds.MODULES`)

Exit: 0 all passed on all, 1 something didn't, 2 no such kind. What was fetched stays in var/servers.
"""

from __future__ import annotations

import shutil
import signal
import sys
from dataclasses import dataclass, field

from qd.clock import monotonic
from qd.events import Events
from qd.store.mysql.database import MySqlDatabase
from tests.servers.kinds import MODULES, ServerKind, kind_named
from tests.servers.suites import OWN, SUITES, Counts, log_of, run_suite, suites_of
from tests.support.server import ROOT, ServerMissing

COLUMNS = (*SUITES, OWN)


@dataclass
class Row:
    """One kind's line of the table."""

    title: str
    version: str = "-"
    claims: str = "-"
    counts: dict[str, Counts] = field(default_factory=dict)
    seconds: float = 0.0
    missing: str = ""

    def good(self) -> bool:
        """Whether all was run and passed."""
        return not self.missing and bool(self.counts) and all(counts.ended_well for counts in self.counts.values())

    def cells(self) -> list[str]:
        """For the table."""
        if self.missing:
            return [self.title, "NOT RUN", "-", *["-" for _ in COLUMNS], f"{self.seconds:.0f}"]
        told = [str(self.counts.get(suite, "-")) for suite in COLUMNS]
        return [self.title, self.version, self.claims, *told, f"{self.seconds:.0f}"]


def main(arguments: list[str]) -> int:
    """Runs everything; returns the exit status."""
    names, more = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        names, more = arguments[:at], arguments[at + 1 :]
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        print(f"qd: no kind of server is named {', '.join(unknown)}; there are {', '.join(MODULES)}", file=sys.stderr)
        return 2
    rows = [_row(name, more) for name in names or MODULES]
    _print_table([["server", "version", "claim path", *COLUMNS, "seconds"], *(row.cells() for row in rows)])
    for row in rows:
        if row.missing:
            print(f"qd: {row.title} could not be run: {row.missing}", file=sys.stderr)
    return 0 if all(row.good() for row in rows) else 1


def _row(name: str, more: list[str]) -> Row:
    began, row = monotonic(), Row(name)
    try:
        kind = kind_named(name)
        row.title = kind.title
        print(f"== {kind.title}: fetching, unless it is there", flush=True)
        kind.fetch()
        row.version, row.claims = _who(kind)
    except (ServerMissing, ModuleNotFoundError) as missing:
        row.missing = str(missing)
        print(f"    {missing}", flush=True)
    else:
        for suite in suites_of(name):
            print(f"== {kind.title}: {suite}, some minutes, see {log_of(name, suite).relative_to(ROOT)}", flush=True)
            row.counts[suite] = run_suite(name, suite, more)
    row.seconds = monotonic() - began
    return row


def _who(kind: ServerKind) -> tuple[str, str]:
    """Version and claim path, as qd itself finds them."""
    server = kind.new_server()
    try:
        config = server.config(server.new_database())
        claims = MySqlDatabase(config, Events()).check().claim_path
        return str(server.run("SELECT VERSION()")[0][0]).split(" ")[0], claims.value if claims else "-"
    finally:
        server.discard()


def _print_table(rows: list[list[str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print("", "-" * min(sum(widths) + 2 * len(widths), shutil.get_terminal_size((120, 1)).columns), sep="\n")
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # what it runs ends with it
    sys.exit(main(sys.argv[1:]))
