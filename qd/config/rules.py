"""Rules between keys: contradictions, references, and what this version doesn't have yet.

A rule looks only at values that are sound themselves. A contradiction is told at every line that
takes part in it, for any of them may be the one to change.
May import: the pure modules, and what lies below it in this package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qd.config.limits import is_loopback, listen_address
from qd.config.model import Config, WorkerConfig
from qd.config.problems import Path, Problems, dotted
from qd.config.reader import Reader, hint
from qd.duration import spell

LEASE_STATEMENTS = 3
"""Statements that may run into their time limit, one after the other, before a lease is lost."""

_MYSQL_ONLY = ("host", "port", "unix_socket", "name", "user", "password", "password_file", "tls")


@dataclass(frozen=True)
class Draft:
    """A configuration with its defaults in place of what is broken, and what is known of the file."""

    config: Config
    reader: Reader
    problems: Problems

    def given(self, path: Path) -> bool:
        """Whether the file sets the key, to something else than null."""
        return path in self.reader.lines and self.reader.values.get(path, path) is not None

    def sound(self, *paths: Path) -> bool:
        """Whether all of these can be judged."""
        return all(self.problems.sound(path) for path in paths)

    def wrong(self, path: Path, message: str) -> None:
        """A problem at the key, or at the nearest one around it that the file sets, or at its queues."""
        lines = self.reader.lines
        around = [path[:n] for n in range(len(path), 0, -1)] + [("queues",)]
        line = next((lines[near] for near in around if near in lines), 1)
        self.problems.tell(line, path, message)

    def clash(self, *parts: tuple[Path, str]) -> None:
        """A contradiction between keys, told once a line."""
        told: set[int] = set()
        for path, message in parts:
            line = self.reader.lines.get(path)
            if line is not None and line not in told:
                told.add(line)
                self.problems.tell(line, path, message)


def check(draft: Draft) -> None:
    """Notes every rule that is broken."""
    rules: tuple[Callable[[Draft], None], ...] = (
        _driver, _password, _socket, _tls, _queues, _workers, _poll, _listen, _console,
    )  # fmt: skip
    for rule in rules:
        rule(draft)


def _driver(draft: Draft) -> None:
    driver = draft.config.database.driver
    if not draft.sound(("database", "driver")):
        return
    alien = _MYSQL_ONLY if driver == "sqlite" else ("path",)
    for key in alien:
        if draft.given(("database", key)):
            draft.wrong(("database", key), f"has no meaning with database.driver: {driver}; leave it out")


def _password(draft: Draft) -> None:
    one, other = ("database", "password"), ("database", "password_file")
    if draft.given(one) and draft.given(other):
        words = "stands beside {}; leave one of the two out"
        draft.clash((one, words.format(dotted(other))), (other, words.format(dotted(one))))


def _socket(draft: Draft) -> None:
    socket = ("database", "unix_socket")
    rivals = [path for path in (("database", "host"), ("database", "port")) if draft.given(path)]
    if draft.given(socket) and rivals:
        both = " and ".join(dotted(path) for path in rivals)
        draft.clash(
            (socket, f"stands beside {both}; connect by the socket or by the network, not both"),
            *((path, "stands beside database.unix_socket; leave one of the two out") for path in rivals),
        )


def _tls(draft: Draft) -> None:
    mode, ca = ("database", "tls", "mode"), ("database", "tls", "ca")
    tls = draft.config.database.tls
    if draft.sound(mode, ca) and tls.mode == "disabled" and tls.ca is not None:
        words = "database.tls.ca is set, but database.tls.mode is disabled; leave one of the two out"
        draft.clash((ca, words), (mode, words))


def _queues(draft: Draft) -> None:
    if draft.reader.names.get(("queues",)) == []:
        draft.wrong(("queues",), "names no queue; write at least one, or leave it out for the queue default")
    for name, queue in draft.config.queues.items():
        path = ("queues", name)
        base, cap = (*path, "backoff", "base"), (*path, "backoff", "cap")
        _ordered(draft, base, queue.backoff.base, cap, queue.backoff.cap)
        if draft.given((*path, "memory")) and draft.sound((*path, "memory"), ("workers",)):
            _memory(draft, name)
    _leases(draft)


def _leases(draft: Draft) -> None:
    """A lease outlasts the statements that may hang before it is renewed."""
    statement: Path = ("database", "statement_timeout")
    limit = draft.config.database.statement_timeout
    least = LEASE_STATEMENTS * limit
    leases: dict[Path, float] = {("queues", name, "lease"): queue.lease for name, queue in draft.config.queues.items()}
    short = {path: lease for path, lease in leases.items() if lease < least and draft.sound(path, statement)}
    if not short:
        return

    def words(path: Path) -> str:
        return (
            f"{dotted(path)} ({spell(short[path])}) is under {LEASE_STATEMENTS} times {dotted(statement)} "
            f"({LEASE_STATEMENTS} x {spell(limit)}); make the lease at least {spell(least)}, or the other shorter"
        )

    lines = draft.reader.lines
    for path in short:
        if path in lines:
            draft.wrong(path, words(path))
    if statement in lines and lines[statement] not in [lines.get(path) for path in short]:
        draft.wrong(statement, words(min(short, key=lambda path: short[path])))


def _ordered(draft: Draft, low: Path, least: float, high: Path, most: float, unit: str = "s") -> None:
    """`low` may not be more than `high`."""
    if not draft.sound(low, high) or least <= most:
        return
    small, large = (spell(least), spell(most)) if unit else (f"{least:g}", f"{most:g}")
    words = f"{dotted(low)} ({small}) is more than {dotted(high)} ({large}); it may be equal at most"
    draft.clash((low, words), (high, words))


def _workers(draft: Draft) -> None:
    path, bad = ("workers",), draft.problems.bad
    if draft.reader.names.get(path) == []:
        draft.wrong(path, "names no worker; write at least one, or leave it out for one that serves default")
    labels: dict[str, int] = {}
    for n, worker in enumerate(draft.config.workers if path not in bad else ()):
        here = (*path, n)
        if here in bad:
            continue
        _served(draft, here, worker)
        _label(draft, here, worker, n, labels)
        if not isinstance(worker.threads, int):
            threads = (*here, "threads")
            _ordered(draft, (*threads, "min"), worker.least, (*threads, "max"), worker.most, unit="")
        _recycling(draft, here, worker)


def _memory(draft: Draft, queue: str) -> None:
    """A limit on memory is kept by a process's end, so each worker of the queue must have processes."""
    executors = [("workers", n, "executor") for n, worker in enumerate(draft.config.workers) if queue in worker.queues]
    threads = [dotted(path[:2]) for path in executors if draft.config.workers[path[1]].executor == "thread"]
    if threads and draft.sound(*executors):
        words = f"needs executor: process, but {' and '.join(threads)} would run its jobs in threads; leave it null"
        draft.wrong(("queues", queue, "memory"), words)


def _recycling(draft: Draft, worker: Path, values: WorkerConfig) -> None:
    for key in ("max_jobs", "max_memory"):
        if draft.given((*worker, key)) and draft.sound((*worker, "executor")) and values.executor == "thread":
            words = "is the life of a child process, but executor is thread; write executor: process, or leave it out"
            draft.wrong((*worker, key), words)


def _served(draft: Draft, worker: Path, values: WorkerConfig) -> None:
    """Its queues exist, each once."""
    path = (*worker, "queues")
    written = draft.reader.names.get(path)
    if written == []:
        draft.wrong(path, "names no queue; write at least one, or leave it out for the queue default")
    if path in draft.problems.bad or ("queues",) in draft.problems.bad:
        return
    if written is None:
        _known(draft, path, values.queues[0], ", its default,")
        return
    seen: set[str] = set()
    for n in range(len(written)):
        name = str(draft.reader.values.get((*path, n), ""))
        if not name:
            continue
        if name in seen:
            draft.wrong((*path, n), f'"{name}" stands twice in this worker; leave one')
        else:
            _known(draft, (*path, n), name)
        seen.add(name)


def _known(draft: Draft, path: Path, name: str, origin: str = "") -> None:
    known = draft.reader.names.get(("queues",), list(draft.config.queues))
    if not known or name in known:
        return
    draft.wrong(path, f'"{name}"{origin} is not in queues; {hint(name, known, "queues has")}')


def _label(draft: Draft, worker: Path, values: WorkerConfig, n: int, labels: dict[str, int]) -> None:
    name, queues = (*worker, "name"), (*worker, "queues")
    if not draft.sound(name, queues):
        return
    if values.label in labels:
        words = f"the name {values.label} is that of workers[{labels[values.label]}] too; give each its own name"
        draft.wrong(name if values.name else queues, words)
    labels.setdefault(values.label, n)


def _poll(draft: Draft) -> None:
    poll = draft.config.poll
    _ordered(draft, ("poll", "min"), poll.min, ("poll", "max"), poll.max)


def _listen(draft: Draft) -> None:
    http, console = ("http", "listen"), ("console", "listen")
    for path, address in ((http, draft.config.http.listen), (console, draft.config.console.listen)):
        if draft.sound(path) and address is not None and listen_address(address)[1] == 0:
            draft.wrong(path, "has port 0, which nobody could find; write a port from 1 to 65535")
    if draft.sound(http, console) and _overlap(draft.config.http.listen, draft.config.console.listen):
        words = "http.listen and console.listen are the same address; give each its own port"
        draft.clash((http, words), (console, words))


def _overlap(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return False
    (host, port), (second, second_port) = listen_address(one), listen_address(other)
    everywhere = {"0.0.0.0", "::"}
    return port == second_port and (host.lower() == second.lower() or bool({host, second} & everywhere))


def _console(draft: Draft) -> None:
    path, console = ("console", "listen"), draft.config.console
    if not draft.given(path):
        return
    if (
        console.listen
        and not is_loopback(listen_address(console.listen)[0])
        and not draft.given(("console", "users_file"))
    ):
        risk = "opens the console to the network without a login: anybody there could read payloads and delete jobs"
        draft.wrong(path, f"{risk}; set console.users_file, or listen at 127.0.0.1")
    draft.wrong(path, "the console is not in this version; leave it null")
