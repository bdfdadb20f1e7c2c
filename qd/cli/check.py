"""`qd check`: is everything as qd needs it. What is looked at stands in qd.cli.checks.

May import: config, the modules of cli, protocol's values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import click

from qd.cli import ending, paging
from qd.cli.checks.apart import EndedEarly, run_apart
from qd.cli.checks.configuration import of_file, of_password
from qd.cli.checks.eyes import of_eyes, of_hidden
from qd.cli.checks.handlers import of_handlers
from qd.cli.checks.limits import of_limits
from qd.cli.checks.privilege import who_imports
from qd.cli.checks.server import OutOfReach, of_database
from qd.cli.checks.unit import of_units, units_of
from qd.cli.checks.unit_files import Unit
from qd.cli.context import Cli, pass_cli
from qd.cli.terminal import safe, show_json
from qd.config.model import Config
from qd.errors import ConfigError
from qd.store.protocol import Finding


@click.command()
@click.option("--offline", is_flag=True, help="Only what needs no database.")
@click.option("--file-only", is_flag=True, help="Only the file and its password: no handler's code is run.")
@paging.as_json
@pass_cli
def check(cli: Cli, offline: bool, file_only: bool, as_json: bool) -> int:
    """Check configuration, handlers, server, schema, grants and the claim's plan.

    Exits 78 where anything is wrong (69: only that the database is out of reach).
    """
    findings: list[Finding] = []

    def tell(finding: Finding) -> None:
        findings.append(finding)
        if not as_json:
            click.echo(line(finding))

    out_of_reach = _run(cli, offline, file_only, tell)
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


def _run(cli: Cli, offline: bool, file_only: bool, tell: Callable[[Finding], None]) -> bool:
    """Tells all findings as they come; True: the database is out of reach."""
    try:
        config = cli.config
    except ConfigError as error:
        for problem in error.problems:
            tell(Finding("FAIL", "config", problem))
        return False
    for finding in (*of_file(cli.file, config), *of_password(config)):
        tell(finding)
    return False if file_only else _run_handlers(cli, config, offline, tell)


def _run_handlers(cli: Cli, config: Config, offline: bool, tell: Callable[[Finding], None]) -> bool:
    """The same of what comes once handlers' code may have run, in a process of its own."""
    units = units_of(cli.file)
    seen = list(of_eyes(config, cli.file, units))  # by root, who alone sees what stops the service's user
    become, forbidden = who_imports(config, units)

    def work(send: Callable[[object], None]) -> bool:
        for finding in of_config(config, units, seen, forbidden):
            send(asdict(finding))
        return not offline and _run_database(cli, lambda finding: send(asdict(finding)))

    try:
        return bool(run_apart(become, work, lambda told: tell(Finding(**told))))
    except EndedEarly as early:
        tell(Finding("FAIL", "handlers", f"the check ended before its end: a module ended the process ({early})"))
        return False


def _run_database(cli: Cli, tell: Callable[[Finding], None]) -> bool:
    try:
        for finding in of_database(cli):
            tell(finding)
    except OutOfReach as error:
        tell(Finding("FAIL", "database", f"{error.how} at {cli.config.database.place}: {error}"))
        return True
    finally:
        cli.close()
    return False


def of_config(
    config: Config, units: Sequence[Unit], seen: Sequence[Finding], forbidden: Finding | None
) -> Iterator[Finding]:
    """What needs no database: handlers, limits, the service that runs it.

    Args:
        seen: with the service's user's eyes.
        forbidden: why handlers are not imported.
    """
    yield from of_handlers(config, units) if forbidden is None else [forbidden]
    yield from of_limits(config)
    yield from of_units(config, units)
    yield from of_hidden(config, units, seen)
