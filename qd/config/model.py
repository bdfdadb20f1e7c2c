"""The configuration as the program sees it: immutable, every default in one place.

Only values and their own limits; reading files, lines and rules between keys are in the loader.
The limits stand in the annotations, so they hold for a configuration that is built in code too.
May import: the pure modules, limits and problems.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from qd.backoff import Backoff
from qd.config.limits import (
    Between,
    FilePath,
    HeaderName,
    Host,
    Line,
    Listen,
    Module,
    Name,
    Program,
    listen_address,
)
from qd.config.problems import Origin
from qd.duration import duration, size

DAY = 86400.0


class Secret(str):
    """Text that no repr shows: a traceback with locals, a dump, a log line of the object."""

    def __repr__(self) -> str:
        return "'***'"


def octets(value: object) -> int:
    """Bytes of a size as people write it, or as it is held."""
    return value if isinstance(value, int) else size(value)


Seconds = Annotated[float, BeforeValidator(duration)]
"""A duration: `30s`, `5m`, `1h`, `250ms`, `1d`; held in seconds."""

Bytes = Annotated[int, BeforeValidator(octets)]
"""A size: `512MiB`, `1GiB`, `64KiB`; held in bytes."""

Password = Annotated[str, AfterValidator(Secret)]
Timeout = Annotated[Seconds, Between(0.001, 600.0, "s")]
QueueName = Annotated[str, Name(64)]
TypeName = Annotated[str, Name(128)]
ListenAddress = Annotated[str, Listen()]
File = Annotated[str, FilePath()]
Threads = Annotated[int, Between(1, 1000)]


class Section(BaseModel):
    """A part of the configuration; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class Tls(Section):
    mode: Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"] = "preferred"
    ca: File | None = None


class DatabaseConfig(Section):
    driver: Literal["mysql", "sqlite"] = "mysql"
    host: Annotated[str, Host()] = "127.0.0.1"
    port: Annotated[int, Between(1, 65535)] = 3306
    unix_socket: File | None = None
    name: Annotated[str, Line(64, "a database's name, 1 to 64 characters")] = "qd"
    user: Annotated[str, Line(128, "a user's name, 1 to 128 characters")] = "qd"
    password: Password | None = Field(default=None, repr=False, exclude=True)
    password_file: File | None = None
    path: File = "var/qd.sqlite3"
    tls: Tls = Tls()
    connect_timeout: Timeout = 5.0
    statement_timeout: Timeout = 20.0

    _origin: Origin = PrivateAttr(default=Origin())
    _credential: Path | None = PrivateAttr(default=None)
    """Where the password of the service that runs this configuration is, for who may read it."""
    _handed: str | None = PrivateAttr(default=None)
    """Where systemd's credentials of this process were at its start, for what is told once they are hidden."""
    _known: Secret | None = PrivateAttr(default=None)
    """The password, where it was read while this process could."""

    @property
    def place(self) -> str:
        """Where it is, for people: the file, or the server's address and the database's name."""
        if self.driver == "sqlite":
            return self.path
        return f"{self.unix_socket or f'{self.host}:{self.port}'}/{self.name}"


class CommandConfig(Section):
    argv: Annotated[tuple[str, ...], Program()]


class HandlersConfig(Section):
    modules: tuple[Annotated[str, Module()], ...] = ()
    commands: dict[TypeName, CommandConfig] = {}


@cache
def _backoff(base: float, factor: float, cap: float, jitter: float) -> Backoff:
    return Backoff(base, factor, cap, jitter)


class BackoffConfig(Section):
    base: Annotated[Seconds, Between(0, 30 * DAY, "s")] = 10.0
    factor: Annotated[float, Between(1, 1000)] = 2.0
    cap: Annotated[Seconds, Between(0, 30 * DAY, "s")] = 600.0
    jitter: Annotated[float, Between(0, 1)] = 0.2

    def backoff(self) -> Backoff:
        """The same as the policy's value."""
        return _backoff(self.base, self.factor, self.cap, self.jitter)


class QueueConfig(Section):
    max_attempts: Annotated[int, Between(1, 65535)] = 3
    timeout: Annotated[Seconds, Between(0.001, 30 * DAY, "s")] = 300.0
    lease: Annotated[Seconds, Between(3.0, DAY, "s", ", and at least 3 times database.statement_timeout")] = 90.0
    memory: Annotated[Bytes, Between(1 << 20, 1 << 40, "B")] | None = None
    quarantine: Literal["child", "alone"] = "child"
    backoff: BackoffConfig = BackoffConfig()


class ThreadRange(Section):
    min: Threads = 1
    max: Threads = 4


class WorkerConfig(Section):
    name: QueueName | None = None
    queues: tuple[QueueName, ...] = ("default",)
    threads: Threads | ThreadRange = 4
    executor: Literal["thread", "process"] = "thread"
    max_jobs: Annotated[int, Between(1, 1_000_000_000)] = 1000
    max_memory: Annotated[Bytes, Between(1 << 20, 1 << 40, "B")] = 128 << 20

    @property
    def label(self) -> str:
        """Its name, or its queues joined by +."""
        return self.name or "+".join(self.queues)

    @property
    def least(self) -> int:
        """Threads that always run."""
        return self.threads if isinstance(self.threads, int) else self.threads.min

    @property
    def most(self) -> int:
        """Threads at most."""
        return self.threads if isinstance(self.threads, int) else self.threads.max


class PollConfig(Section):
    min: Annotated[Seconds, Between(0.001, 60.0, "s")] = 0.01
    max: Annotated[Seconds, Between(0.001, 60.0, "s")] = 0.25


class HttpConfig(Section):
    listen: ListenAddress | None = "127.0.0.1:9833"
    refresh: Annotated[Seconds, Between(1.0, 3600.0, "s")] = 5.0

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of `listen`, or None for off; an IPv6 host without its brackets."""
        return None if self.listen is None else listen_address(self.listen)


class ConsoleConfig(Section):
    listen: ListenAddress | None = None
    users_file: File | None = None
    hosts: tuple[Annotated[str, Host()], ...] = ()
    proxy_header: Annotated[str, HeaderName()] | None = None
    payloads: bool = True
    step: bool = False


class ShutdownConfig(Section):
    grace: Annotated[Seconds, Between(0, DAY, "s")] = 30.0


class RetentionConfig(Section):
    failed: Annotated[Seconds, Between(1.0, 3650 * DAY, "s")] = 30 * DAY


class LogConfig(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "journal", "text", "json"] = "auto"
    jobs: Literal["all", "slow", "failures"] = "failures"


class Config(Section):
    database: DatabaseConfig = DatabaseConfig()
    handlers: HandlersConfig = HandlersConfig()
    queues: dict[QueueName, QueueConfig] = {"default": QueueConfig()}
    workers: tuple[WorkerConfig, ...] = (WorkerConfig(),)
    poll: PollConfig = PollConfig()
    batch: Literal["auto"] | Annotated[int, Between(1, 1000)] = "auto"
    http: HttpConfig = HttpConfig()
    console: ConsoleConfig = ConsoleConfig()
    shutdown: ShutdownConfig = ShutdownConfig()
    retention: RetentionConfig = RetentionConfig()
    log: LogConfig = LogConfig()

    _origin: Origin = PrivateAttr(default=Origin())

    @property
    def served(self) -> tuple[str, ...]:
        """The queues that some worker serves, in the order of the workers, each once."""
        return tuple(dict.fromkeys(queue for worker in self.workers for queue in worker.queues))
