"""What a run gave, for people: the one table of targets, the full figures, what was lost, and the conditions.

Pure. The same content as text for a terminal and as Markdown for docs/benchmarks.md. May import: the package's
pure modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from textwrap import wrap

from benchmarks.measured import Measured
from benchmarks.record import Record
from benchmarks.sections import part_named
from benchmarks.targets import NOT_RUN, Result, Verdict, judge, number

HEADS = ("", "target", "must be", "reached", "verdict", "rounds")
FIGURE_HEADS = ("figure", "value", "unit", "lowest and highest round", "note")
LONG = 50
"""Lines of a table that a page shows at once."""

REACHED_WIDTH = 58
"""Columns of a terminal that `reached` takes at most; longer ones are wrapped."""

Rows = Sequence[Sequence[str]]
Layout = Callable[[Sequence[str], Rows], list[str]]
"""Makes lines of heads and rows."""


def as_text(record: Record) -> list[str]:
    """Lines for a terminal."""
    return _whole(record, _plain, lambda title: ["", title, "-" * len(title)], lambda lines: lines)


def as_markdown(record: Record) -> list[str]:
    """Lines for a page."""
    return _whole(record, _markdown, lambda title: ["", f"### {title}", ""], _folded)


def _folded(lines: list[str]) -> list[str]:
    """A long table, shown when it is asked for."""
    if len(lines) <= LONG:
        return lines
    return ["<details>", f"<summary>{len(lines) - 2} figures</summary>", "", *lines, "", "</details>"]


def _whole(
    record: Record,
    layout: Layout,
    heading: Callable[[str], list[str]],
    folded: Callable[[list[str]], list[str]],
) -> list[str]:
    results = judge(record.all_figures(), record.why_missing())
    lines = [*_warning(record), *layout(HEADS, [_cells(result) for result in results]), "", _sum(results)]
    for title, text in (
        ("Where others are ahead", losses(record.all_figures())),
        ("What could not be measured", _broken(record)),
    ):
        if text:
            lines += [*heading(title), *(f"- {line}" for line in text)]
    for name in record.figures:
        rows = [*map(_figure, record.figures[name])]
        lines += [*heading(part_named(name).title), *folded(layout(FIGURE_HEADS, rows))]
    for group, facts in record.conditions.items():
        lines += [*heading(f"Conditions: {group}"), *layout(("", ""), list(facts.items()))]
    return lines


def _warning(record: Record) -> list[str]:
    if record.scale == 1:
        return []
    return [f"SCALE {record.scale:g}: too few jobs for any of these to be a measurement; it shows that it runs.", ""]


def _cells(result: Result) -> list[str]:
    target = result.target
    reached = result.reached or result.remark
    if result.reached and result.remark:
        reached = f"{result.reached}; {result.remark}"
    rounds = str(result.rounds) if result.rounds else "-"
    return [target.part, target.text, target.must, reached, result.verdict.value, rounds]


def _sum(results: Iterable[Result]) -> str:
    counts: dict[Verdict, int] = dict.fromkeys(Verdict, 0)
    for result in results:
        counts[result.verdict] += 1
    return ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count) + "."


def _broken(record: Record) -> list[str]:
    told = {**record.missing, **record.broken}
    return [f"{part_named(name).title}: {told[name]}" for name in record.parts() if name in told]


def _figure(figure: Measured) -> list[str]:
    if figure.note.startswith(NOT_RUN):
        return [figure.key, "-", "", "", figure.note]
    spread = f"{number(min(figure.rounds))} to {number(max(figure.rounds))}" if len(figure.rounds) > 1 else ""
    return [figure.key, number(figure.value), figure.unit, spread, figure.note]


def losses(figures: Iterable[Measured]) -> list[str]:
    """What a peer does more of in a second than qd, each in a line: drains and enqueues."""
    ran = [figure for figure in figures if not figure.note.startswith(NOT_RUN)]
    by_key = {figure.key: figure for figure in ran}
    lines = []
    for own, rivals, act in _RACES:
        mine = by_key.get(own)
        for figure in ran if mine else ():
            if rivals(figure.key) and mine and figure.value > mine.value:
                ahead = f"{number(figure.value)} against qd's {number(mine.value)} {mine.unit}"
                lines.append(f"{act}: {figure.key.partition('.')[2]}, {ahead}")
    return lines


def _drains(key: str) -> bool:
    own = key.startswith(("drain.qd.", "drain.raw."))  # the raw loop is no queue; the table has it
    return key.startswith("drain.") and not own and not key.endswith("2workers")


def _enqueues(how: str) -> Callable[[str], bool]:
    """Of a peer: `enqueue.PEER.HOW`."""
    return lambda key: key.startswith("enqueue.") and key.endswith(f".{how}") and key.count(".") > 1


_RACES: tuple[tuple[str, Callable[[str], bool], str], ...] = (
    ("drain.qd.auto", _drains, "drain"),
    ("drain.qd.auto.2daemons", lambda key: key.startswith("drain.") and key.endswith("2workers"), "drain by two"),
    ("enqueue.qd.single", _enqueues("single"), "enqueue, one by one"),
    ("enqueue.qd.bulk", _enqueues("bulk"), "enqueue, in bulk"),
)


def _plain(heads: Sequence[str], rows: Rows) -> list[str]:
    tall = [line for row in rows for line in _wrapped(row)]
    widths = [max(map(len, column)) for column in zip(heads, *tall, strict=True)]
    told = [heads, ["-" * width for width in widths], *tall] if any(heads) else tall
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in told]


def _wrapped(row: Sequence[str]) -> list[list[str]]:
    """A row as lines, long cells broken."""
    cells = [wrap(cell, REACHED_WIDTH) or [""] for cell in row]
    return [[cell[line] if line < len(cell) else "" for cell in cells] for line in range(max(map(len, cells)))]


def _markdown(heads: Sequence[str], rows: Rows) -> list[str]:
    told = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in told]
