"""`qd check`: what the database says: driver, schema, claim path, its clock, and what the store's inspection finds.

May import: config, the modules of cli, protocol's values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qd.cli.context import Cli
from qd.config.model import Config
from qd.config.password import CREDENTIAL, read_password
from qd.duration import spell
from qd.errors import OUT_OF_REACH, QdError, ReadOnlyServer, SetupWrong, StoreError
from qd.store.protocol import Demand, Finding, FullStore, SchemaState

REFUSED = frozenset({1045, 1698})
"""Errors of a login."""

OWN_CONNECTIONS = 6
"""Of a daemon beside those of its threads: lease keeper, poller, sampler, returner, maintenance, and the look at
the schema every 10 s."""

APART = 1.0
"""Seconds by which clocks may differ before it is worth a word."""

LOOKS = 3
"""At the database's clock; the quickest answer counts."""


class OutOfReach(Exception):
    """The database can't be asked, or to write; the rest of the check falls away."""

    def __init__(self, error: QdError) -> None:
        super().__init__(str(error))
        self.how = "takes no writes" if isinstance(error, ReadOnlyServer) else "out of reach"


def connections_of(config: Config) -> int:
    """How many connections a daemon of this configuration opens at most."""
    return sum(worker.most for worker in config.workers) + OWN_CONNECTIONS


def of_database(cli: Cli) -> Iterator[Finding]:
    """All that the server says.

    Raises:
        OutOfReach: it doesn't.
    """
    with _within_reach():
        try:
            state, info = cli.database.schema(), cli.database.info()
        except OUT_OF_REACH:
            raise
        except StoreError as error:
            yield Finding("FAIL", "database", f"{error} ({cli.config.database.place}){_no_password(cli.config, error)}")
            return
        yield Finding("ok", "server", f"{info.server} at {cli.config.database.place}")
        yield from of_connector(info.connector)
        schema = of_schema(state)
        yield schema
        if schema.level != "FAIL":
            yield from _of_rows(cli)


def _of_rows(cli: Cli) -> Iterator[Finding]:
    """What can be asked once there are tables; each part whatever the others found."""
    yield from _found("claim path", lambda: _claim_path(cli))
    demand = Demand(connections_of(cli.config), cli.config.database.statement_timeout)
    yield from _found("server", lambda: cli.opened.inspect(demand))
    if cli.config.database.driver == "mysql":
        yield from _found("clock", lambda: of_clock(cli.opened))


def _no_password(config: Config, error: StoreError) -> str:
    """What may be behind a refused login: who isn't root doesn't see what the daemon is given."""
    if error.errno not in REFUSED or read_password(config.database) is not None:
        return ""
    return f". A service's {CREDENTIAL} is there for root and the daemon alone"


@contextmanager
def _within_reach() -> Iterator[None]:
    try:
        yield
    except OUT_OF_REACH as error:
        raise OutOfReach(error) from error


def _found(what: str, ask: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from ask()
    except OUT_OF_REACH:
        raise
    except QdError as error:
        yield Finding("FAIL", what, str(error))


def _claim_path(cli: Cli) -> Iterator[Finding]:
    info = cli.database.check()
    if info.claim_path is not None:
        yield Finding("ok", "claim path", f"{info.claim_path.value}, found by trying")


def of_connector(connector: str) -> Iterator[Finding]:
    """Which flavour of the driver runs, and why it is the slow one."""
    if connector not in ("c", "pure"):
        yield Finding("ok", "connector", connector)
        return
    from importlib.metadata import version

    driver = f"mysql-connector-python {version('mysql-connector-python')}"
    if connector == "c":
        yield Finding("ok", "connector", f"{driver}, its C extension")
        return
    yield Finding(
        "warn", "connector", f"{driver} in pure Python, about 3 times slower: its C extension doesn't load here"
        f"{_why_not()}. pip install 'mysql-connector-python>=9.7,<10' brings one that does on most systems"
    )  # fmt: skip


def _why_not() -> str:
    from importlib import import_module

    try:
        import_module("_mysql_connector")
    except ImportError as error:
        return f" ({error})"
    return ""


def of_schema(state: SchemaState) -> Finding:
    """Which schema there is, and whether this qd works with it."""
    from qd.store.schema import check_compatible

    try:
        check_compatible(state)
    except SetupWrong as error:
        return Finding("FAIL", "schema", str(error))
    if state.pending:
        text = f"version {state.version}; `qd migrate` would apply {', '.join(state.pending)}"
        return Finding("warn", "schema", text)
    return Finding("ok", "schema", f"version {state.version}")


def of_clock(store: FullStore) -> Iterator[Finding]:
    """How far the database's clock is from this host's, as far as the answer's way lets it be told."""
    ahead, unsure = min((_difference(store) for _ in range(LOOKS)), key=lambda found: found[1])
    if abs(ahead) - unsure <= APART:
        yield Finding(
            "ok", "clock", f"the database's is within {spell(max(abs(ahead) + unsure, 0.001))} of this host's"
        )
        return
    yield Finding(
        "warn", "clock", f"the database's is {spell(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} this host's: "
        "jobs go by the database's alone, but logs and metrics by this one's, and so do people who say --at. Let both "
        "follow the same time server"
    )  # fmt: skip


def _difference(store: FullStore) -> tuple[float, float]:
    """Seconds by which the database is ahead, and by how much that may be wrong."""
    began = time.time()
    then = store.now().timestamp()
    ended = time.time()
    return then - (began + ended) / 2, (ended - began) / 2
