"""`qd run` and `qd work`: the daemon, and a worker in the foreground.

May import: daemon (inside the functions), the modules of cli.
"""

from __future__ import annotations

import click

from qd.cli import ending
from qd.cli.context import Cli, pass_cli
from qd.cli.terminal import plural

DEFAULT_THREADS = (1, 1)
"""Of `qd work`: one thread runs jobs strictly one after the other."""

COUNT = click.IntRange(1)
THREADS = click.IntRange(1, 1000)


@click.command()
@pass_cli
def run(cli: Cli) -> int:
    """Run the daemon until SIGTERM. SIGHUP reloads the configuration."""
    from qd.daemon.app import run as run_daemon

    return run_daemon(cli.config_path)


@click.command()
@click.option(
    "--queue", "queues", metavar="A,B", help="Queues in strict order, the first first; else all that the config serves."
)
@click.option("--threads", type=THREADS, help="Jobs run at once.  [default: 1]")
@click.option("--min-threads", type=THREADS, help="Threads that always run; with --max-threads.")
@click.option("--max-threads", type=THREADS, help="Threads at most.")
@click.option("--once", is_flag=True, help="Run one job at most, then end.")
@click.option("--max", "most", type=COUNT, metavar="N", help="Run N jobs at most, then end.")
@click.option("--drain", is_flag=True, help="End when nothing is ready or running any more.")
@click.option("--fail", is_flag=True, help="Exit 1 if an attempt failed.")
@pass_cli
def work(
    cli: Cli, queues: str | None, threads: int | None, min_threads: int | None, max_threads: int | None,
    once: bool, most: int | None, drain: bool, fail: bool,
) -> int:  # fmt: skip
    """Run jobs in the foreground, until SIGTERM, or until --once, --max or --drain is fulfilled.

    Exits 0 when it did its duty, whatever became of the jobs.
    """
    if once + (most is not None) + drain > 1:
        raise click.UsageError("--once, --max and --drain exclude each other")
    span = thread_span(threads, min_threads, max_threads)
    names = split(queues) if queues is not None else cli.config.served
    wrong = cli.unknown_queues(names)
    if wrong is not None:
        click.echo(f"qd: {wrong}", err=True)
        return ending.SETUP_WRONG
    from qd.daemon.work import end
    from qd.daemon.work import work as run_worker

    report = run_worker(cli.config, names, threads=span, limit=1 if once else most, drain=drain)
    attempts = report.succeeded + report.failed + report.released
    click.echo(
        f"{plural(attempts, 'attempt')}: {report.succeeded:,} succeeded, {report.failed:,} failed, "
        f"{report.released:,} given back",
        err=True,
    )
    return end(report, ending.COULD_NOT if fail and report.failed else ending.DONE)


def split(queues: str) -> tuple[str, ...]:
    """The names in a list with commas, each once.

    Raises:
        click.UsageError: there is none.
    """
    names = tuple(dict.fromkeys(name.strip() for name in queues.split(",") if name.strip()))
    if not names:
        raise click.UsageError("--queue: name at least one queue")
    return names


def thread_span(threads: int | None, least: int | None, most: int | None) -> tuple[int, int]:
    """Threads at least and at most.

    Raises:
        click.UsageError: the options contradict each other.
    """
    if threads is not None:
        if least is not None or most is not None:
            raise click.UsageError("--threads excludes --min-threads and --max-threads")
        return threads, threads
    if least is None and most is None:
        return DEFAULT_THREADS
    if most is None:
        raise click.UsageError("--min-threads needs --max-threads")
    if (least or 1) > most:
        raise click.UsageError(f"--min-threads {least} is more than --max-threads {most}")
    return least or 1, most
