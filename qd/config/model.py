"""The configuration as the program sees it: immutable, every default in one place.

Only values and their own limits; reading files, lines and cross-checks are in the loader.
May import: the pure modules.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from qd.backoff import Backoff
from qd.duration import duration, size

Seconds = Annotated[float, BeforeValidator(duration)]
"""A duration: `30s`, `5m`, `1h`, `250ms`, `1d`; held in seconds."""

Bytes = Annotated[int, BeforeValidator(size)]
"""A size: `512MiB`, `1GiB`, `64KiB`; held in bytes."""


class Section(BaseModel):
    """A part of the configuration; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Tls(Section):
    mode: Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"] = "preferred"
    ca: str | None = None


class DatabaseConfig(Section):
    driver: Literal["mysql", "sqlite"] = "mysql"
    host: str = "127.0.0.1"
    port: int = Field(3306, ge=1, le=65535)
    unix_socket: str | None = None
    name: str = "qd"
    user: str = "qd"
    password: str | None = Field(None, repr=False)
    password_file: str | None = None
    path: str = "var/qd.sqlite3"
    tls: Tls = Tls()
    connect_timeout: Seconds = 5.0
    statement_timeout: Seconds = 20.0


class CommandConfig(Section):
    argv: tuple[str, ...] = Field(min_length=1)


class HandlersConfig(Section):
    modules: tuple[str, ...] = ()
    commands: dict[str, CommandConfig] = {}


class BackoffConfig(Section):
    base: Seconds = 10.0
    factor: float = Field(2.0, ge=1.0, le=1000.0, allow_inf_nan=False)
    cap: Seconds = 600.0
    jitter: float = Field(0.2, ge=0.0, le=1.0, allow_inf_nan=False)

    def backoff(self) -> Backoff:
        """The same as the policy's value."""
        return Backoff(self.base, self.factor, self.cap, self.jitter)


class QueueConfig(Section):
    max_attempts: int = Field(3, ge=1, le=65535)
    timeout: Seconds = 300.0
    lease: Seconds = 90.0
    memory: Bytes | None = None
    quarantine: Literal["child", "alone"] = "child"
    backoff: BackoffConfig = BackoffConfig()


class ThreadRange(Section):
    min: int = Field(1, ge=1, le=1000)
    max: int = Field(4, ge=1, le=1000)


class WorkerConfig(Section):
    name: str | None = None
    queues: tuple[str, ...] = ("default",)
    threads: int | ThreadRange = Field(4)
    executor: Literal["thread", "process"] = "thread"

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
    min: Seconds = 0.01
    max: Seconds = 0.25


class HttpConfig(Section):
    listen: str | None = "127.0.0.1:9833"
    refresh: Seconds = 5.0


class ConsoleConfig(Section):
    listen: str | None = None
    users_file: str | None = None
    hosts: tuple[str, ...] = ()
    proxy_header: str | None = None
    payloads: bool = True
    step: bool = False


class ShutdownConfig(Section):
    grace: Seconds = 30.0


class RetentionConfig(Section):
    failed: Seconds = 30 * 86400.0


class LogConfig(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "journal", "text", "json"] = "auto"
    jobs: Literal["all", "slow", "failures"] = "failures"


class Config(Section):
    database: DatabaseConfig = DatabaseConfig()
    handlers: HandlersConfig = HandlersConfig()
    queues: dict[str, QueueConfig] = {"default": QueueConfig()}
    workers: tuple[WorkerConfig, ...] = (WorkerConfig(),)
    poll: PollConfig = PollConfig()
    batch: Literal["auto"] | int = "auto"
    http: HttpConfig = HttpConfig()
    console: ConsoleConfig = ConsoleConfig()
    shutdown: ShutdownConfig = ShutdownConfig()
    retention: RetentionConfig = RetentionConfig()
    log: LogConfig = LogConfig()

    @property
    def served(self) -> tuple[str, ...]:
        """The queues that some worker serves, in the order of the workers, each once."""
        return tuple(dict.fromkeys(queue for worker in self.workers for queue in worker.queues))
