"""Runs one section by itself and prints its rows."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measured import Measured, Plan


def alone(measure: Callable[[Plan], list[Measured]]) -> None:
    """Reads the plan from the command line, and prints what the section gives."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full numbers, e.g. 0.05")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--servers", nargs="+", default=["mariadb"], help="mariadb, mariadb118, mysql97")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qd-bench-") as folder:
        plan = Plan(asked.rounds, Path(folder), _say, asked.scale, asked.servers)
        for row in measure(plan):
            rounds = f"  [{', '.join(f'{value:.4g}' for value in row.rounds)}]" if len(row.rounds) > 1 else ""
            print(f"{row.key:60} {row.value:12.4g} {row.unit}{rounds}  {row.note}".rstrip())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
