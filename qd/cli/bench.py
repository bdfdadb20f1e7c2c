"""`qd bench`: what qd does on the configured database, measured on a real daemon of its own.

May import: bench (inside the functions), the modules of cli.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import click

from qd.cli import ending
from qd.cli.context import Cli, pass_cli
from qd.cli.terminal import confirm, facts, plural, progress, safe, show_json, table

if TYPE_CHECKING:
    from qd.bench.plan import Plan
    from qd.bench.result import Latency, Result

MOST_JOBS = 1_000_000


class BatchSize(click.ParamType):  # type: ignore[type-arg]
    """`auto`, or a number of jobs."""

    name = "batch"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Literal["auto"] | int:
        """As the configuration's key `batch` has it."""
        if value == "auto":
            return "auto"
        number = int(str(value)) if str(value).isascii() and str(value).isdecimal() else 0
        if not 1 <= number <= 1000:
            self.fail("write auto, or a number from 1 to 1000", param, ctx)
        return number


@click.command()
@click.option("--jobs", type=click.IntRange(10, MOST_JOBS), default=10_000, show_default=True, help="In each round.")
@click.option("--rounds", type=click.IntRange(1, 100), default=3, show_default=True, help="Medians are of so many.")
@click.option("--pickups", type=click.IntRange(0, 10_000), default=20, show_default=True,
              help="Single jobs, in each of two ways, into an idle daemon; each takes over a second.")  # fmt: skip
@click.option("--threads", type=click.IntRange(1, 1000), default=4, show_default=True, help="Of each daemon.")
@click.option("--batch", type=BatchSize(), default="auto", show_default=True, metavar="auto|N", help="Jobs in a claim.")
@click.option("--daemons", type=click.IntRange(1, 16), default=1, show_default=True, help="That drain side by side.")
@click.option("--executor", type=click.Choice(["thread", "process"]), default="thread", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--clean", is_flag=True, help="Only remove what benches that were killed have left behind.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@pass_cli
def bench(
    cli: Cli, jobs: int, rounds: int, pickups: int, threads: int, batch: Literal["auto"] | int, daemons: int,
    executor: Literal["thread", "process"], as_json: bool, clean: bool, yes: bool,
) -> int:  # fmt: skip
    """Measure qd on the configured database: enqueuing, draining, pickup, statements, memory.

    Jobs that do nothing are enqueued into a queue of their own, and run by daemons of their own, real
    ones with the shipped settings. Running daemons aren't involved, but share the server with it. All
    that it writes it removes.
    """
    if clean:
        return _clean(cli, yes)
    from qd.bench.plan import Plan

    plan = Plan(jobs, rounds, pickups, threads, batch, daemons, executor)
    _say_what_was_left(cli)
    act = _act(cli, plan)
    if yes:
        _tell(f"this will {act}")
    confirm(plan.rows, act, yes)
    return _measured(cli, plan, as_json)


def _measured(cli: Cli, plan: Plan, as_json: bool) -> int:
    from qd.bench.interrupt import Interrupted
    from qd.bench.run import Bench

    try:
        result = Bench(cli.config, cli.database, plan, _stage, _tell).run()
    except Interrupted as interrupted:
        _tell(f"ended by {interrupted}")
        return 128 + interrupted.number
    if as_json:
        show_json(result.as_json())
    else:
        _show(result)
    return ending.DONE


@contextmanager
def _stage(label: str, jobs: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; elsewhere a line where the stage begins, for who follows a file."""
    if not sys.stderr.isatty():
        _tell(f"{label}: {plural(jobs, 'job')}")
    with progress(label, jobs) as done:
        yield done


def _tell(text: str) -> None:
    click.echo(f"qd: {safe(text)}", err=True)


def _act(cli: Cli, plan: Plan) -> str:
    where, runners = cli.config.database.place, plural(plan.daemons, "daemon")
    return (
        f"write {plural(plan.rows, 'row')} at most into queue {plan.queue} of {where}, load the server with them as "
        f"fast as {runners} of {plural(plan.threads, 'thread')} can, and remove them again"
    )


# -------------------------------------------------------------------- what earlier ones left


def _say_what_was_left(cli: Cli) -> None:
    from qd.bench.presence import found

    left = found(cli.store).left
    if left:
        _tell(f"earlier benches have left {_listed(left)} behind; `qd bench --clean` removes them")


def _clean(cli: Cli, yes: bool) -> int:
    from qd.bench.presence import found

    now = found(cli.store)
    if now.busy:
        _tell(f"left alone, as a bench is at work there, or was within the last minute: {_listed(now.busy)}")
    if confirm(len(now.left), f"remove all that earlier benches have left in {_listed(now.left)}", yes):
        rows = sum(cli.store.clear_own(queue) for queue in now.left)
        click.echo(f"{plural(rows, 'row')} removed from {_listed(now.left)}")
    return ending.DONE


def _listed(queues: list[str]) -> str:
    return f"{plural(len(queues), 'queue')}{': ' if queues else ''}{', '.join(queues)}"


# -------------------------------------------------------------------- for people


def _show(result: Result) -> None:
    table(("MEASURED", "VALUE", ""), [*_rates(result), *_pickups(result), *_costs(result)], right=(1,))
    click.echo()
    facts(_conditions(result))


def _rates(result: Result) -> list[tuple[str, str, str]]:
    singly, bulk, drain = result.singly(), result.bulk(), result.drain()

    def rounds(rates: tuple[float, ...]) -> str:
        return f"; rounds {' '.join(f'{rate:,.0f}' for rate in rates)}" if len(rates) > 1 else ""

    return [
        ("enqueue, one by one", f"{singly.rate:,.0f}/s",
         f"{singly.jobs:,} jobs, each one INSERT and COMMIT{rounds(singly.rounds)}"),
        ("enqueue, in bulk", f"{bulk.rate:,.0f}/s", f"{bulk.jobs:,} jobs, <= 1,000 in a COMMIT{rounds(bulk.rounds)}"),
        ("drain", f"{drain.rate:,.0f}/s",
         f"{drain.jobs:,} jobs, first claim to last finish, start-up not included{rounds(drain.rounds)}"),
    ]  # fmt: skip


WAYS = {"client": "through Client, which wakes the daemon", "insert": "by a plain INSERT, found by its polls"}


def _pickups(result: Result) -> list[tuple[str, str, str]]:
    return [row for way, latency in result.pickup.items() for row in _pickup(way, latency)]


def _pickup(way: str, latency: Latency) -> list[tuple[str, str, str]]:
    count = len(latency.seconds)
    of = f"COMMIT to start, idle daemon, {plural(count, 'job')} {WAYS[way]}"
    few = "; under 100 jobs p99 is the slowest" if count < 100 else ""
    values = [f"{latency.at(share) * 1000:,.1f} ms" for share in (0.5, 0.99, 1.0)]
    return [
        (f"pickup, {way} p50", values[0], of),
        (f"pickup, {way} p99", values[1], few.lstrip("; ")),
        (f"pickup, {way} max", values[2], ""),
    ]


def _costs(result: Result) -> list[tuple[str, str, str]]:
    per_job, peak = result.per_job(), result.peak()
    rows = [
        ("claims per job", f"{per_job['claims']:.3f}", "empty ones too"),
        ("statements per job", f"{per_job['statements']:.3f}", "of the whole daemon, its polls and upkeep too"),
        ("commits per job", f"{per_job['commits']:.3f}", "likewise"),
    ]
    for state, looked in (result.looked or {}).items():
        took = f"for {plural(looked.claimed, 'job')}, {looked.asked:,} asked for" if looked.asked else "takes none"
        rows.append((f"rows read, {state.replace('_', ' ')}", f"{looked.rows:,.0f}", took))
    if result.not_looked:
        rows.append(("rows read", "-", result.not_looked))
    rows.append(("peak memory", "-" if peak is None else f"{peak / 2**20:,.1f} MiB", "of one daemon (VmHWM)"))
    return rows


def _conditions(result: Result) -> list[tuple[str, object]]:
    plan, found = result.plan, result.conditions
    waiting, dead = found.jobs_before, found.failed_before
    before = f"{plural(waiting, 'job')}, {plural(dead, 'dead letter')}" if waiting or dead else "the database was empty"
    return [
        ("daemon", f"{plan.daemons} of {plural(plan.threads, 'thread')}, executor {plan.executor}, batch {plan.batch}"),
        ("", found.as_json(plan)["daemon"]),
        ("qd", f"{found.qd} on Python {found.python}; driver {found.connector}, claim path {found.claim_path}"),
        ("database", f"{found.server} at {found.place}, {'this machine' if found.local else 'another machine'}"),
        ("", ", ".join(f"{name}={value}" for name, value in found.settings.items())),
        ("before", before),
        ("machine", f"{plural(found.cores, 'core')}, load before {' '.join(f'{load:.2f}' for load in found.load)}"),
        ("polls", f"{found.poll[0] * 1000:g} to {found.poll[1] * 1000:g} ms"),
    ]
