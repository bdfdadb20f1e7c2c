"""Measures qd beside its peers and against its targets: `make bench`.

usage: python -m benchmarks [--rounds N] [--scale S] [--sections NAME...] [--servers KIND...] [--json FILE] [--write]
       python -m benchmarks --render FILE... [--write]      what earlier runs kept, joined, without measuring

Says each figure as it comes, then prints one table: every target beside what was reached; then all figures and the
conditions. What a run has is kept in var/bench/last.json from section to section. `--write` renews docs/benchmarks.md.
Exit: 0 it ran, whatever was reached; 1 a section broke; 2 usage.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from benchmarks import conditions, page
from benchmarks.measured import Measured, Plan
from benchmarks.record import Record, joined, read
from benchmarks.sections import BY_NAME, SECTIONS, Part, parts
from benchmarks.table import as_text
from benchmarks.targets import SERVERS, number
from tests.support.server import ServerMissing

FOLDER = Path(__file__).resolve().parents[1] / "var" / "bench"
LAST = FOLDER / "last.json"
"""What a run has so far, so that one that is cut off isn't lost."""


def main(arguments: Sequence[str]) -> int:
    """Runs what is asked for; the exit status."""
    asked = _parser().parse_args(arguments)
    whole = not asked.sections and asked.scale == 1
    if asked.write and not asked.render and not whole:
        print("qd: --write wants a whole run at scale 1; join parts with --render", file=sys.stderr)
        return 2
    try:
        record = joined(map(read, asked.render)) if asked.render else _measured(asked)
    except (OSError, ValueError) as error:
        print(f"qd: {error}", file=sys.stderr)
        return 2
    print("\n" + "\n".join(as_text(record)))
    if asked.json:
        record.write(asked.json)
    if asked.write:
        page.renew(record)
        print(f"\n{page.PAGE.name} is renewed")
    return 1 if record.broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=_from_one, default=3, help="interleaved rounds (3)")
    parser.add_argument("--scale", type=_share, default=1.0, help="share of the full numbers (1)")
    parser.add_argument("--sections", nargs="+", choices=list(BY_NAME), default=[], help="only these")
    parser.add_argument("--servers", nargs="+", choices=list(SERVERS), default=list(SERVERS), help="for the regimes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything there too")
    parser.add_argument("--write", action="store_true", help="renew docs/benchmarks.md")
    parser.add_argument("--render", type=Path, nargs="+", metavar="FILE", help="show earlier runs instead")
    return parser


def _from_one(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share, over 0 and at most 1")
    return share


def _measured(asked: argparse.Namespace) -> Record:
    """Runs the sections, one after the other; what one of them does ends no other."""
    sections = [section for section in SECTIONS if section.name in asked.sections or not asked.sections]
    names = [section.name for section in sections]
    plan = Plan(asked.rounds, FOLDER, _say, asked.scale, tuple(asked.servers))
    began, ticks = time.monotonic(), conditions.stolen()
    record = Record(plan.scale, plan.rounds, conditions=conditions.before(plan, names))
    for part in parts(sections, plan.servers):
        _say(f"== {part.title}")
        run_part(part, plan, record)
        record.conditions |= conditions.after(plan, part, record.conditions)
        record.conditions["run"]["took"] = conditions.whole_time(began)
        record.conditions["machine"]["stolen by its host meanwhile"] = conditions.stolen_since(ticks)
        record.write(LAST)
    return record


def run_part(part: Part, plan: Plan, record: Record) -> None:
    """Runs one part and notes what it gave, or why it gave nothing; never raises for it."""
    servers = (part.server,) if part.server else plan.servers
    own = Plan(plan.rounds, plan.folder, plan.say, plan.scale, servers)
    try:
        figures = list(part.section.measure()(own))
    except ServerMissing as missing:
        record.missing[part.name] = str(missing)
        _say(f"{part.title} could not be run: {missing}")
    except Exception as error:  # every section has its turn, whatever becomes of one
        record.broken[part.name] = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        _say(traceback.format_exc())
        _say(f"{part.title} BROKE: {record.broken[part.name]}")
    else:
        record.figures[part.name] = figures
        for figure in figures:
            _say(f"  {_told(figure)}")


def _told(figure: Measured) -> str:
    rounds = f"  [{', '.join(map(number, figure.rounds))}]" if len(figure.rounds) > 1 else ""
    return f"{figure.key} {number(figure.value)} {figure.unit}{rounds}  {figure.note}".rstrip()


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # servers and workers end with it
    sys.exit(main(sys.argv[1:]))
