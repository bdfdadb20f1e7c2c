"""What must be reached, as data, and the verdict on what was.

Pure. May import: measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from benchmarks.measured import Measured

NOT_RUN = "NOT RUN"
"""How the note of a figure begins that isn't one: its contestant could not be run."""


class Verdict(Enum):
    """What is said of a target."""

    REACHED = "reached"
    MISSED = "NOT reached"
    UNKNOWN = "not measured"
    SHOWN = "shown"


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the table.

    Attributes:
        part: of what must be reached, `1` to `6`.
        text: what is looked at.
        key: the figure that it is about; or a pattern (`*` is any text without a blank), of which the worst counts.
        sign: `>=`, `>`, `<=`, `<`, or nothing where a figure is only to be shown.
        limit: what it is compared with: a number, times the best of `beside` where that names keys.
        unit: of the limit and of what was reached; `x` or `%` (of it) where it is beside others.
        beside: keys of what it is compared with; the highest counts.
        cause: why it was missed on the two cores where that was looked into; said with a miss only.
    """

    part: str
    text: str
    key: str
    sign: str
    limit: float
    unit: str
    beside: tuple[str, ...] = ()
    cause: str = ""

    @property
    def must(self) -> str:
        """What it has to be, for people."""
        return f"{self.sign} {self.limit:,g} {self.unit}".rstrip() if self.sign else "shown"


SERVERS = {"mariadb": "own MariaDB", "mariadb118": "MariaDB 11.8", "mysql97": "MySQL 9.7"}
"""The kinds of `Plan.servers`; the first is whatever the machine has, see the conditions."""

REDIS = tuple(f"drain.{peer}" for peer in ("celery", "rq", "dramatiq", "huey", "taskiq"))
_FULL = "one daemon and the server leave next to nothing idle; a second adds contention"
_SINGLY = "four statements a job in both; qd's some 250 us of Python a job hold the interpreter's lock half the time"
_QD, _PAIR = "drain.qd.auto", "drain.qd.auto.2daemons"


def _on(server: str) -> tuple[Target, ...]:
    name = SERVERS[server]
    shares = {"full_look": "full look", "sweep": "sweep", "sampler": "sampler"}
    return (
        Target("3", f"{name}: claim p50, worst regime", f"regime.{server}.claim*.ratio", "<=", 1.3, "x"),
        Target("3", f"{name}: poll p50, worst regime", f"regime.{server}.poll.*.ratio", "<=", 1.3, "x"),
        Target("3", f"{name}: pickup p99 in a trickle", f"trickle.{server}.p99", "<=", 300, "ms"),
        *(
            Target("3", f"{name}: time taken by the {words}", f"share.{server}.{what}", "", 0, "%")
            for what, words in shares.items()
        ),
    )


def _pickup(how: str, words: str, p50: float, p99: float) -> tuple[Target, ...]:
    return tuple(
        Target("4", f"{words}: pickup {part}", f"pickup.{how}.{part}", "<=", most, "ms")
        for part, most in (("p50", p50), ("p99", p99))
        if most
    )


def _idle(kind: str, words: str) -> tuple[Target, ...]:
    return (
        Target("4", f"idle, {words}: statements", f"idle.statements.{kind}", "<=", 8, "a second"),
        Target("4", f"idle, {words}: of a core", f"idle.cpu.{kind}", "<", 1, "%"),
    )


TARGETS: tuple[Target, ...] = (
    Target("1", "drain: against pgqueuer's best batch", _QD, ">", 1, "x", ("drain.pgqueuer.10", "drain.pgqueuer.250")),
    Target("1", "drain: against the fastest peer on Redis", _QD, ">=", 2, "x", REDIS),
    Target("1", "drain: against django-tasks, same MariaDB", _QD, ">=", 20, "x", ("drain.django_tasks",)),
    Target("1", "drain: of the raw loop, both at batch 100", "drain.qd.100", ">=", 50, "%", ("drain.raw.100",)),
    Target("1", "drain: of the raw loop at 100, qd at auto", _QD, ">=", 50, "%", ("drain.raw.100",)),
    Target("1", "drain: two daemons against one", _PAIR, ">", 1, "x", (_QD,), _FULL),
    Target("1", "drain: two daemons against two pgqueuer", _PAIR, ">", 1, "x", ("drain.pgqueuer.250.2workers",)),
    Target("2", "one at a time: of the raw loop", "drain.qd.1", ">=", 80, "%", ("drain.raw.1",), _SINGLY),
    *(target for server in SERVERS for target in _on(server)),
    *_pickup("insert", "INSERT, daemon idle", 150, 300),
    *_pickup("warm", "INSERT within 1 s of other work", 15, 0),
    *_pickup("client", "Client on this host", 5, 25),
    *_pickup("cli", "qd enqueue on this host", 5, 25),
    *_pickup("wake", "INSERT and qd.wake()", 5, 25),
    *_idle("1queue", "1 queue, 4 threads"),
    *_idle("8queues", "8 queues, 16 threads"),
    Target("5", "enqueue_many of 100,000", "enqueue.bulk", ">=", 30_000, "rows/s"),
    Target("5", "enqueue_many of a million: growth", "enqueue.million.growth", "<=", 4, "MiB"),
    Target("5", "Client, a million: growth", "enqueue.client.growth", "<=", 4, "MiB"),
    Target("5", "qd enqueue --count of a million: growth", "enqueue.cli.growth", "<=", 4, "MiB"),
    Target("5", "qd enqueue --count: steps of its progress", "enqueue.cli.steps", ">=", 10, ""),
    Target("6", "16 threads, a million jobs: peak memory", "memory.peak", "<=", 80, "MiB"),
    Target("6", "growth from 10 % of the jobs to the last", "memory.growth", "<=", 4, "MiB"),
)
"""All of them, in the order of the table."""


@dataclass(frozen=True, slots=True)
class Result:
    """A target beside what was reached.

    Attributes:
        reached: the figures, for people; empty where there are none.
        rounds: how many the figures are the medians of; 0 where there are none.
        remark: why it wasn't measured or is missed, or which of the compared weren't measured; else empty.
    """

    target: Target
    verdict: Verdict
    reached: str = ""
    rounds: int = 0
    remark: str = ""


def judge(figures: Sequence[Measured], missing: Mapping[str, str], targets: Iterable[Target] = TARGETS) -> list[Result]:
    """Every target with its verdict.

    Args:
        figures: what was measured.
        missing: by section (the first part of keys, for regimes also `regime.SERVER` and the like): why it
            gave nothing.
    """
    by_key = {figure.key: figure for figure in figures}
    return [_result(target, by_key, missing) for target in targets]


def _result(target: Target, by_key: Mapping[str, Measured], missing: Mapping[str, str]) -> Result:
    found = [by_key[key] for key in by_key if _matches(target.key, key) and _ran(by_key[key])]
    if not found:
        return _unknown(target, _why(target.key, by_key, missing))
    worst = (max if target.sign.startswith("<") else min)(found, key=lambda figure: figure.value)
    if target.beside:
        return _beside(target, worst, by_key, missing)
    reached = f"{number(worst.value)} {target.unit}"
    if "*" in target.key:
        over = [figure for figure in found if not _holds(target.sign, figure.value, target.limit)]
        reached += f" ({worst.key.split('.', 2)[2].removesuffix('.ratio')}; {len(found)} seen, {len(over)} over)"
    return _told(target, worst.value, reached.rstrip(), _rounds(worst))


def _beside(target: Target, own: Measured, by_key: Mapping[str, Measured], missing: Mapping[str, str]) -> Result:
    others = [by_key[key] for key in target.beside if key in by_key and _ran(by_key[key])]
    absent = [key for key in target.beside if key not in by_key or not _ran(by_key[key])]
    if not others:
        return _unknown(target, _why(target.beside[0], by_key, missing))
    best = max(others, key=lambda figure: figure.value)
    share = own.value / best.value * (100 if target.unit == "%" else 1)
    named = best.key.partition(".")[2]
    reached = f"{number(share)} {target.unit} ({number(own.value)} against {number(best.value)} {own.unit} of {named})"
    without = [f"without {key.partition('.')[2]}: {_why(key, by_key, missing)}" for key in absent]
    return _told(target, share, reached, _rounds(own, best), *without)


def _unknown(target: Target, why: str) -> Result:
    return Result(target, Verdict.UNKNOWN, remark=why)


def _told(target: Target, value: float, reached: str, rounds: int, *remarks: str) -> Result:
    verdict = Verdict.SHOWN
    if target.sign:
        verdict = Verdict.REACHED if _holds(target.sign, value, target.limit) else Verdict.MISSED
    if verdict is Verdict.MISSED and target.cause:
        remarks = (f"found on 2 quiet cores: {target.cause}", *remarks)
    return Result(target, verdict, reached, rounds, "; ".join(remarks))


def _holds(sign: str, value: float, limit: float) -> bool:
    return {">=": value >= limit, ">": value > limit, "<=": value <= limit, "<": value < limit, "": True}[sign]


def _matches(pattern: str, key: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", r"\S*"), key) is not None


def _ran(figure: Measured) -> bool:
    return not figure.note.startswith(NOT_RUN)


def _rounds(*figures: Measured) -> int:
    return min(max(1, len(figure.rounds)) for figure in figures)


def _why(key: str, by_key: Mapping[str, Measured], missing: Mapping[str, str]) -> str:
    """The reason that there is no figure of this key."""
    if key in by_key:
        return by_key[key].note.removeprefix(NOT_RUN).lstrip(": ") or "it could not be run"
    parts = key.split(".")
    for place in (".".join(parts[:2]), parts[0]):
        if place in missing:
            return missing[place]
    return "its section gave no such figure"


def number(value: float) -> str:
    """A figure for people: three or four digits that mean something."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
