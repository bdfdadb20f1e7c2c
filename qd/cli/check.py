"""`qd check`: is everything as qd needs it. May import: config, metrics, the modules of cli,
protocol's values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict

import click

from qd.cli import ending, paging
from qd.cli.context import Cli, pass_cli
from qd.cli.terminal import safe, show_json
from qd.config.model import Config
from qd.duration import spell
from qd.errors import ConfigError, ConnectionLost, QdError, ReadOnlyServer, ServerBusy
from qd.registry import Registry
from qd.store.protocol import Finding, SchemaState


class OutOfReach(Exception):
    """The database can't be asked, or to write; the rest of the check falls away."""

    def __init__(self, error: QdError) -> None:
        super().__init__(str(error))
        self.how = "takes no writes" if isinstance(error, ReadOnlyServer) else "out of reach"


@click.command()
@click.option("--offline", is_flag=True, help="Only what needs no database.")
@paging.as_json
@pass_cli
def check(cli: Cli, offline: bool, as_json: bool) -> int:
    """Check configuration, handlers, server, schema, grants and the claim's plan.

    Exits 78 where anything is wrong (69: only that the database is out of reach).
    """
    findings: list[Finding] = []

    def tell(finding: Finding) -> None:
        findings.append(finding)
        if not as_json:
            click.echo(line(finding))

    out_of_reach = _run(cli, offline, tell)
    code = exit_code(findings, out_of_reach)
    if as_json:
        show_json({"ok": code == ending.DONE, "findings": [asdict(finding) for finding in findings]})
    return code


def line(finding: Finding) -> str:
    """`ok    server: MariaDB 10.11`."""
    return f"{finding.level:<4}  {safe(finding.what)}: {safe(finding.detail)}"


def exit_code(findings: list[Finding], out_of_reach: bool) -> int:
    """78 where anything failed, 69 where that is only the database's absence."""
    failures = sum(finding.level == "FAIL" for finding in findings)
    if failures > out_of_reach:
        return ending.SETUP_WRONG
    return ending.OUT_OF_REACH if out_of_reach else ending.DONE


def _run(cli: Cli, offline: bool, tell: Callable[[Finding], None]) -> bool:
    """Tells all findings as they come; True: the database is out of reach."""
    try:
        config = cli.config
    except ConfigError as error:
        for problem in error.problems:
            tell(Finding("FAIL", "config", problem))
        return False
    for finding in of_config(cli, config):
        tell(finding)
    if offline:
        return False
    try:
        for finding in of_database(cli):
            tell(finding)
    except OutOfReach as error:
        tell(Finding("FAIL", "database", f"{error.how} at {cli.config.database.place}: {error}"))
        return True
    return False


def of_config(cli: Cli, config: Config) -> Iterator[Finding]:
    """What needs no database: the file, what is odd in it, handlers, limits."""
    from qd.config import find_config
    from qd.config.remarks import remarks

    yield Finding("ok", "config", str(find_config(cli.config_path)))
    yield from (Finding("warn", "config", remark) for remark in remarks(config))
    yield from of_password(config)
    yield from of_handlers(config)
    yield from of_limits(config)


def of_password(config: Config) -> Iterator[Finding]:
    """Whether the password can be read; never the password."""
    from qd.config.password import read_password

    try:
        read_password(config.database)
    except ConfigError as error:
        yield from (Finding("FAIL", "password", problem) for problem in error.problems)


def of_handlers(config: Config) -> Iterator[Finding]:
    """Whether the handlers can be loaded, and what they name."""
    from qd.config.handlers import load_handlers

    try:
        registry = load_handlers(config)
    except ConfigError as error:
        for problem in error.problems:
            yield Finding("FAIL", "handlers", problem)
        return
    types = registry.names()
    if types:
        yield Finding("ok", "handlers", f"{len(types)}: {', '.join(types)}")
    else:
        yield Finding("warn", "handlers", "there is none: name modules or commands in `handlers:`")
    yield from _of_declared_queues(config, registry)
    yield from of_series(config, registry)
    yield from of_children(config, registry)


def of_children(config: Config, registry: Registry) -> Iterator[Finding]:
    """Whether a child process for handlers can be started, where any would run in one."""
    from qd.clock import monotonic
    from qd.events import Events
    from qd.executors import Children
    from qd.executors.children import modules_of

    in_processes = any(worker.executor == "process" for worker in config.workers)
    in_quarantine = any(queue.quarantine == "child" for queue in config.queues.values())
    if not any(handler.function for handler in registry.handlers()) or not (in_processes or in_quarantine):
        return
    children, began = Children(modules_of(config.handlers.modules, registry), None, Events()), monotonic()
    child = children.start("check", lambda: None)
    if child is None:
        use = "executor: process" if in_processes else "quarantine: child"
        yield Finding("FAIL" if in_processes else "warn", "children", f"{use} needs them: {children.problem}")
        return
    size = child.memory()
    child.retire()
    took = f"a child process for handlers starts in {spell(round(monotonic() - began, 2))}"
    yield Finding("ok", "children", took if size is None else f"{took} and takes {size >> 20} MiB of memory")


def of_series(config: Config, registry: Registry) -> Iterator[Finding]:
    """Whether the metrics have every pair of queue and handler."""
    from qd.metrics.series import LIMIT, collapsed, series_count

    if collapsed(config, registry):
        yield Finding(
            "warn", "metrics",
            f"{len(registry.names()):,} handlers x {len(config.queues):,} queues would be "
            f"{series_count(config, registry):,} series of qd_job_attempts_total, over {LIMIT:,}: only the pairs that "
            "handlers declare (queues=[...]) have their own, the rest is under _other",
        )  # fmt: skip


def _of_declared_queues(config: Config, registry: Registry) -> Iterator[Finding]:
    for handler in registry.handlers():
        unknown = [queue for queue in handler.queues or () if queue not in config.queues]
        if unknown:
            yield Finding(
                "warn", "handlers", f"{handler.name} expects queues that `queues:` lacks: {', '.join(unknown)}"
            )


def of_limits(config: Config) -> Iterator[Finding]:
    """Time limits that contradict each other."""
    database = config.database
    slowest = database.connect_timeout + database.statement_timeout
    troubles = [
        f"queues.{name}.lease is {spell(queue.lease)}, but a connect and a statement may take {spell(slowest)}: after "
        "a broken connection a renewal can come too late. Raise it to twice that, or lower database's timeouts"
        for name, queue in config.queues.items()
        if database.driver == "mysql" and queue.lease < 2 * slowest
    ]
    for trouble in troubles:
        yield Finding("warn", "time limits", trouble)
    longest = max((queue.timeout for queue in config.queues.values()), default=0.0)
    if not troubles:
        yield Finding(
            "ok", "time limits",
            f"jobs may run {spell(longest)}; at a stop they have {spell(config.shutdown.grace)}, then are handed back",
        )  # fmt: skip


def of_database(cli: Cli) -> Iterator[Finding]:
    """What the server says.

    Raises:
        OutOfReach: it doesn't.
    """
    try:
        state = cli.database.schema()
        info = cli.database.check() if state.version else cli.database.info()
    except (ConnectionLost, ReadOnlyServer, ServerBusy) as error:
        raise OutOfReach(error) from error
    except QdError as error:
        yield Finding("FAIL", "database", f"{error} ({cli.config.database.place})")
        return
    yield Finding("ok", "server", f"{info.server} at {cli.config.database.place}")
    yield from of_connector(info.connector)
    yield from of_schema(state)
    if not state.version:
        return
    if info.claim_path is not None:
        yield Finding("ok", "claim path", f"{info.claim_path.value}, found by trying")
    yield from _inspected(cli)


def _inspected(cli: Cli) -> Iterator[Finding]:
    try:
        yield from cli.store.inspect()
    except (ConnectionLost, ReadOnlyServer, ServerBusy) as error:
        raise OutOfReach(error) from error
    except QdError as error:
        yield Finding("FAIL", "server", str(error))


def of_connector(connector: str) -> Iterator[Finding]:
    """Which flavour of the driver runs."""
    if connector == "pure":
        yield Finding(
            "warn", "connector", "pure Python, about 3 times slower: the driver's C extension doesn't load here"
        )
    else:
        yield Finding("ok", "connector", "the driver's C extension" if connector == "c" else connector)


def of_schema(state: SchemaState) -> Iterator[Finding]:
    """Which schema there is."""
    if not state.version:
        yield Finding("FAIL", "schema", "there is none: run `qd migrate`")
    elif state.pending:
        yield Finding("warn", "schema", f"version {state.version}; `qd migrate` would apply {', '.join(state.pending)}")
    else:
        yield Finding("ok", "schema", f"version {state.version}")
